"""A worker that fails where a real one can: `python -m tests.gt.helpers.broken_worker [gt.worker's options]`.

BROKEN_GET=77: tensors with an axis of that length cannot be given out, as from a device that was lost.
NO_SHARED_MEMORY=1: it has no access to shared memory, as on another host.
"""

import os
from typing import Any

import numpy as np

from gt.transport import peers, shared_memory
from gt.worker import __main__, process
from gt.worker.engine import numpy as engine


class Broken(engine.NumpyEngine):
    """Computes everything, and does not give everything out."""

    def get(self, value: Any) -> np.ndarray:
        if int(os.environ.get("BROKEN_GET", "-1")) in value.shape:
            raise RuntimeError("the device was lost")
        return super().get(value)


if __name__ == "__main__":
    engine.NumpyEngine = Broken  # the engine that is called numpy
    if "NO_SHARED_MEMORY" in os.environ:
        for module in (peers, process, shared_memory):
            module.host = lambda: ""  # type: ignore[attr-defined]
    __main__.main()
