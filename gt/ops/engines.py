"""The engines by name: the one place that lists them. Imports none of them.

Client, worker and command line read this table. An engine is added by its module and one line here.
"""

from typing import NamedTuple

LIBRARIES = ("torch.", "numpy.", "operator.")
"""A function name with one of these prefixes is a library's function; any other name is a function of gt."""


class Functions(NamedTuple):
    """The functions that compute an op, by name, one for each of the two spellings that engines have.

    A name with a library's prefix is that library's function: `"torch.exp"`, `"numpy.exp"`,
    `"operator.add"`. `"package.module:function"` is that function. Any other name is in the spelling's own
    folder: `"reductions.mean"` is in `gt.worker.engine.torch`, or in `gt.worker.engine.array`.
    """

    torch: str
    array: str
    """With NumPy's spelling. A function of gt gets the library as its first argument."""


class EngineEntry(NamedTuple):
    """The class of an engine, and the spelling of its library's functions."""

    engine: str
    """Its class, as "module:class"."""
    spelling: str
    """Which of an op's `Functions` it computes with: "torch" or "array"."""
    library: str = ""
    """The module that has NumPy's functions under NumPy's names, for the spelling "array"."""

    def function(self, functions: Functions) -> str:
        """The full name of an op's function: "torch.exp", "jax.numpy.exp", "package.module:function"."""
        name: str = getattr(functions, self.spelling)
        if name.startswith("numpy."):
            return self.library + name.removeprefix("numpy")
        if ":" in name or name.startswith(LIBRARIES):
            return name
        return f"gt.worker.engine.{self.spelling}.{name}"


ENGINES: dict[str, EngineEntry] = {
    "jax": EngineEntry("gt.worker.engine.jax:JaxEngine", "array", "jax.numpy"),
    "numpy": EngineEntry("gt.worker.engine.numpy:NumpyEngine", "array", "numpy"),
    "pytorch": EngineEntry("gt.worker.engine.pytorch:PyTorchEngine", "torch"),
}
