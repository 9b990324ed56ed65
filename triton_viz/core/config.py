"""Settings. Each is an attribute of `cfg` and an environment variable, read when the module loads.

cfg.enabled      TRITON_VIZ_ENABLED=0      leave kernels untouched: `trace` returns what it was given
cfg.vectorized   TRITON_VIZ_VECTORIZED=0   run one program at a time, also where all could run at once
cfg.num_sms      TRITON_VIZ_NUM_SMS=4      run programs on so many threads, like a GPU on its processors
cfg.values       TRITON_VIZ_VALUES=1       let the tracer keep what was read and written
cfg.target       TRITON_VIZ_TARGET=cuda:80 what to compile for where a client asks for ASM; no GPU is needed
cfg.sanitizer    TRITON_VIZ_SANITIZER=off  what `Sanitizer()` gives: symbolic, concrete or off
cfg.progress     TRITON_VIZ_PROGRESS=0     no bar on the terminal during a long launch
"""

import dataclasses
import os


@dataclasses.dataclass
class Config:
    """What can be set."""

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
            text = os.environ.get(f"TRITON_VIZ_{field.name.upper()}", "")
            if field.name == "num_sms":
                if text and not (text.isdecimal() and int(text) > 0):
                    raise ValueError(f"TRITON_VIZ_NUM_SMS is a number of threads, not {text!r}")
                config.num_sms = int(text or 1)
            elif field.type is str or field.type == "str":
                setattr(config, field.name, text or field.default)
            elif text:
                setattr(config, field.name, text != "0")
        return config


cfg = Config.from_environment()
