"""The exceptions of triton_viz, as a tree.

TritonVizError
├── UnsupportedError   this kernel, argument or device cannot be traced; says why   (also a TypeError)
├── KernelError        the kernel itself raised; names kernel, program and line
│   ├── AccessError    it accessed memory that belongs to none of its arguments     (also an IndexError)
│   ├── SanitizerError the sanitizer found a violation, with abort_on_error
│   └── HardwareError  it violates a limit of its target hardware
├── TraceFileError     a trace file that cannot be read                             (also a ValueError)
└── ConfigError        an environment variable with an invalid value                (also a ValueError)
"""

from collections.abc import Sequence
from typing import Any


class TritonVizError(Exception):
    """Any error that triton_viz raises on purpose."""


class UnsupportedError(TritonVizError, TypeError):
    """triton_viz cannot trace this kernel, argument or device."""


class KernelError(TritonVizError):
    """The kernel raised while it ran. The original error is the cause."""


class AccessError(KernelError, IndexError):
    """The kernel accessed an address outside its arguments' memory. The access was not executed."""

    def __init__(self, message: str, lane: int | None = None):
        super().__init__(message)
        self.lane = lane
        """The lane of the program that made the access."""


class SanitizerError(KernelError):
    """A sanitizer with `abort_on_error` has found the violations in `issues`."""

    def __init__(self, message: str, issues: Sequence[Any] = ()):
        super().__init__(message)
        self.issues = list(issues)
        """The `Issue` records of the launch."""


class HardwareError(KernelError):
    """The kernel exceeds a limit of its target hardware, such as a tile's size or an engine's
    instructions."""


class TraceFileError(TritonVizError, ValueError):
    """A file is not a trace, is damaged, or has a format that this release cannot read."""


class ConfigError(TritonVizError, ValueError):
    """An environment variable has a value that its setting cannot have."""
