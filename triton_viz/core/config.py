"""Settings. Each is an attribute of `cfg` and an environment variable, read when the module loads.

cfg.enabled   TRITON_VIZ_ENABLED=0   leave kernels untouched: `trace` returns what it was given
"""

import dataclasses
import os


@dataclasses.dataclass
class Config:
    """What can be set."""

    enabled: bool = True

    @classmethod
    def from_environment(cls) -> "Config":
        """The defaults, changed by the environment variables that are set."""
        return cls(enabled=os.environ.get("TRITON_VIZ_ENABLED", "1") != "0")


cfg = Config.from_environment()
