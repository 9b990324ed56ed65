"""Stand-in modules for `nki` and `neuronxcc.nki`, if these are not installed.

`install` appends a finder, which Python calls only for modules that no other finder has: a real installation
is never shadowed.
"""

import functools
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from triton_viz.dsls.nki import buffers, classic_isa, isa, language


class Kernel:
    """The result of `@nki.jit`. Calling it runs the kernel on the CPU, without clients unless it is
    traced."""

    def __init__(self, function: Callable, grid: Any = None):
        self.func = function
        self.grid = grid
        functools.update_wrapper(self, function)

    def __getitem__(self, grid: Any) -> "Kernel":
        return type(self)(self.func, grid)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Launch the kernel; inside another kernel, call it as a plain function."""
        from triton_viz.dsls.nki import nki_machine

        if nki_machine.is_running():  # inside another kernel
            return self.func(*args, **kwargs)
        return self.run(*args, grid=self.grid, **kwargs)

    def run(self, *args: Any, grid: Any, **kwargs: Any) -> Any:
        """Run all programs of a grid."""
        from triton_viz.core.client import ClientManager
        from triton_viz.core.launch import launch_kernel

        return launch_kernel("nki", self.func, ClientManager(), grid, args, kwargs)


def jit(function: Callable | None = None, **_: Any) -> Any:
    """Mark a function as a kernel: `@nki.jit`, or `@nki.jit(mode=...)`, whose options are ignored."""
    if function is None:
        return jit
    return function if isinstance(function, Kernel) else Kernel(function)


def simulate_kernel(kernel: Any, *args: Any, **kwargs: Any) -> Any:
    """Run a kernel on the CPU: the function of the classic `neuronxcc.nki`."""
    return jit(kernel)(*args, **kwargs)


def simulate(kernel: Any) -> Any:
    """Returns the kernel: the function of the `nki` package. Here all kernels run on the CPU."""
    return jit(kernel)


class _Annotated:
    """`tensor[128, 512]`: an annotation, which is ignored."""

    def __getitem__(self, shape: Any) -> "_Annotated":
        return self


class _Allocator:
    """An allocator of `nki.compiler`. Addresses are ignored."""

    def __init__(self, region: buffers.MemoryRegion):
        self.region = region

    def auto_alloc(self, *_: Any, **__: Any) -> buffers.MemoryRegion:
        """The memory region."""
        return self.region

    alloc = mod_alloc = auto_alloc


def _decorator(function: Any = None, **_: Any) -> Any:
    """A decorator that changes nothing."""
    return function if callable(function) else lambda inner: inner


def _module(name: str, contents: dict[str, Any], doc: str) -> ModuleType:
    module = ModuleType(name, doc)
    vars(module).update({key: value for key, value in contents.items() if not key.startswith("_")})
    vars(module)["__path__"] = []
    return module


def _contents(module: ModuleType) -> dict[str, Any]:
    """The public names that a module defines itself."""
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }


def _make() -> dict[str, ModuleType]:
    top = {"jit": jit, "trace": jit, "simulate": simulate, "simulate_kernel": simulate_kernel}
    top |= dict.fromkeys(("baremetal", "benchmark", "profile"), jit)
    compiler = {
        "sbuf": _Allocator(buffers.sbuf),
        "psum": _Allocator(buffers.psum),
        **dict.fromkeys(
            ("enable_stack_allocator", "force_auto_alloc", "skip_middle_end_transformations"), _decorator
        ),
    }
    typing = {"tensor": _Annotated()}
    made: dict[str, ModuleType] = {}
    for root, instructions in (("nki", isa), ("neuronxcc.nki", classic_isa)):
        # The `nki` package has it in SBUF, the classic one in HBM.
        eye = {"shared_identity_matrix": language.identity_matrix} if root == "nki" else {}
        parts = {
            "language": _contents(language) | eye,
            "isa": _contents(instructions),
            "compiler": compiler,
            "typing": typing,
        }
        for name, contents in parts.items():
            made[f"{root}.{name}"] = _module(
                f"{root}.{name}", contents, f"triton_viz's stand-in for {root}.{name}."
            )
        inner = {name: made[f"{root}.{name}"] for name in parts}
        made[root] = _module(
            root, {**top, **inner, "tensor": language.NkiTensor}, f"triton_viz's stand-in for {root}."
        )
    made["neuronxcc"] = _module(
        "neuronxcc", {"nki": made["neuronxcc.nki"]}, "triton_viz's stand-in for neuronxcc."
    )
    return made


_modules: dict[str, ModuleType] = {}


def module_for(name: str) -> ModuleType | None:
    """Our module for a module name of the vendor, also if the vendor's is installed; None if there is
    none."""
    if not _modules:
        _modules.update(_make())
    if name in _modules:
        return _modules[name]
    # A private module of the vendor whose names are re-exported, such as nki.language.core.
    parts = name.split(".")
    while parts := parts[:-1]:
        if (found := _modules.get(".".join(parts))) is not None and ".".join(parts) not in (
            "nki",
            "neuronxcc",
        ):
            return found
    return None


class _Finder(MetaPathFinder, Loader):
    """Finds our modules, after all other finders have found nothing."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] not in ("nki", "neuronxcc"):
            return None
        module_for("nki")
        if fullname not in _modules:
            return None
        return importlib.util.spec_from_loader(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _modules[spec.name]

    def exec_module(self, module: ModuleType) -> None:
        """Does nothing: the module is complete."""


_finder = _Finder()


def install() -> None:
    """Make `nki` and `neuronxcc.nki` importable, if they are not."""
    if _finder not in sys.meta_path:
        sys.meta_path.append(_finder)


def uninstall() -> None:
    """Undo `install`, and remove the stand-ins that were imported."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    for name, module in _modules.items():
        if sys.modules.get(name) is module:
            del sys.modules[name]
