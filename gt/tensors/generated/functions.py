"""`gt.NAME(x)` for every method that is declared to be a function, too."""

from gt.tensors.api import FUNCTIONS
from gt.tensors.functions.base import function


def __getattr__(name: str) -> object:
    """The function of an op that was registered after this module was imported."""
    if name not in FUNCTIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = globals()[name] = function(*FUNCTIONS[name])
    return made


globals().update({_name: function(*_declared) for _name, _declared in FUNCTIONS.items()})

globals()["__all__"] = sorted(FUNCTIONS)
