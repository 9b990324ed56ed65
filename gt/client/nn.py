"""`gt.nn`, under the path that the specification names: `from gt.client import nn`."""

from gt.nn import *
from gt.nn import __all__ as __all__
