"""`gt.stream.hotpath_detector`, under the path that the specification names. Clients detect repeats too."""

from gt.stream.hotpath_detector import HotPathDetector

__all__ = ["HotPathDetector"]
