"""Settings. Each is an attribute of `cfg` and an environment variable, read when the module loads.

cfg.enabled      TRITON_VIZ_ENABLED=0      leave kernels untouched: `trace` returns what it was given
cfg.vectorized   TRITON_VIZ_VECTORIZED=0   run one program at a time, also where all could run at once
cfg.num_sms      TRITON_VIZ_NUM_SMS=4      number of threads that run programs, like a GPU's multiprocessors
cfg.values       TRITON_VIZ_VALUES=1       the tracer records the values that were read and written
cfg.target       TRITON_VIZ_TARGET=cuda:80 compilation target for clients that need ASM; no GPU is needed
cfg.sanitizer    TRITON_VIZ_SANITIZER=off  implementation of `Sanitizer()`: symbolic, concrete or off
cfg.progress     TRITON_VIZ_PROGRESS=0     no progress bar on the terminal during a long launch

A boolean is written as 1 or 0, true or false, on or off, yes or no, in upper or lower case. An empty
variable counts as not set; any other value raises a ConfigError.
"""

import dataclasses
import os

from triton_viz.errors import ConfigError

_BOOLEANS = {
    **dict.fromkeys(("1", "true", "on", "yes"), True),
    **dict.fromkeys(("0", "false", "off", "no"), False),
}


@dataclasses.dataclass
class Config:
    """The settings."""

    enabled: bool = True
    vectorized: bool = True
    num_sms: int = 1
    values: bool = False
    progress: bool = True
    target: str = "cuda:90"
    sanitizer: str = "symbolic"

    @classmethod
    def from_environment(cls) -> "Config":
        """The defaults, changed by the environment variables that are set."""
        config = cls()
        for field in dataclasses.fields(cls):
            name = f"TRITON_VIZ_{field.name.upper()}"
            text = os.environ.get(name, "").strip()
            if text:
                setattr(config, field.name, _PARSERS[type(field.default)](name, text))
        return config


def _boolean(name: str, text: str) -> bool:
    found = _BOOLEANS.get(text.lower())
    if found is None:
        raise ConfigError(f"{name} is {text!r}, and can only be one of {', '.join(_BOOLEANS)}")
    return found


def _count(name: str, text: str) -> int:
    if not (text.isdecimal() and int(text) > 0):
        raise ConfigError(f"{name} is a number of threads, not {text!r}")
    return int(text)


_PARSERS = {bool: _boolean, int: _count, str: lambda name, text: text}
"""By the type of a setting: from the variable's name and text to the setting."""


cfg = Config.from_environment()
