"""Everything triton_viz raises, as one tree.

TritonVizError
├── UnsupportedError   this kernel, argument or device cannot be traced; says why   (also a TypeError)
├── KernelError        the kernel itself raised; names kernel, program and line
│   ├── AccessError    it accessed memory that belongs to none of its arguments     (also an IndexError)
│   ├── SanitizerError the sanitizer found a violation, with abort_on_error
│   └── HardwareError  it breaks a rule of the hardware that it is written for
├── TraceFileError     a trace file that cannot be read                             (also a ValueError)
└── ConfigError        an environment variable with an invalid value                (also a ValueError)
"""

from collections.abc import Sequence
from typing import Any


class TritonVizError(Exception):
    """Any error that triton_viz raises on purpose."""


class UnsupportedError(TritonVizError, TypeError):
    """An object that was given to triton_viz cannot be traced."""


class KernelError(TritonVizError):
    """The kernel raised while it ran. The original error is the cause."""


class AccessError(KernelError, IndexError):
    """The kernel touched an address outside its arguments' memory. Nothing was read or written there."""

    def __init__(self, message: str, lane: int | None = None):
        super().__init__(message)
        self.lane = lane
        """Which of the programs that ran together."""


class SanitizerError(KernelError):
    """A sanitizer with `abort_on_error` has found the violations in `issues`."""

    def __init__(self, message: str, issues: Sequence[Any] = ()):
        super().__init__(message)
        self.issues = list(issues)
        """The `Issue` records of the launch."""


class HardwareError(KernelError):
    """The kernel asks for something that the hardware does not have: too large a tile, another engine."""


class TraceFileError(TritonVizError, ValueError):
    """A file is not a trace, or not one that this release reads."""


class ConfigError(TritonVizError, ValueError):
    """An environment variable has a value that its setting cannot have."""
