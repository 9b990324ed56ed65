"""Modules that contain modules, with PyTorch's names. A plain list works, too, but cannot be called."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from gt.nn.module import Module

__all__ = ["ModuleDict", "ModuleList", "Sequential"]


class _Numbered(Module):
    """Modules under the names 0, 1, 2, ..."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        self.extend(modules)

    def _list(self) -> list[Module]:
        return [module for module in vars(self).values() if isinstance(module, Module)]

    def append(self, module: Module) -> Self:
        """Add a module at the end."""
        if not isinstance(module, Module):
            raise TypeError(f"{module!r} is not a Module subclass")
        setattr(self, str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end."""
        for module in modules:
            self.append(module)
        return self

    def __len__(self) -> int:
        return len(self._list())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._list())

    def __getitem__(self, index: int | slice) -> Any:
        found = self._list()[index]
        return type(self)(*_arguments(self, found)) if isinstance(found, list) else found

    def __setitem__(self, index: int, module: Module) -> None:
        names = [name for name, value in vars(self).items() if isinstance(value, Module)]
        setattr(self, names[index], module)


def _arguments(container: _Numbered, modules: list[Module]) -> list[Any]:
    return modules if isinstance(container, Sequential) else [modules]


class ModuleList(_Numbered):
    """A list of modules."""


class Sequential(_Numbered):
    """Modules called in sequence, each with the result of the previous one."""

    def __init__(self, *modules: Module | Mapping[str, Module]) -> None:
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            super().__init__()
            for name, module in modules[0].items():
                setattr(self, name, module)
        else:
            super().__init__(modules)  # type: ignore[arg-type] - append() checks them

    def forward(self, x: Any) -> Any:
        """Call the modules one after the other."""
        for module in self._list():
            x = module(x)
        return x


class ModuleDict(Module):
    """Modules by name."""

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        self.update(modules or {})

    def _dict(self) -> dict[str, Module]:
        """The modules by name. A shared module has several names."""
        return {name: value for name, value in vars(self).items() if isinstance(value, Module)}

    def update(self, modules: Mapping[str, Module]) -> None:
        """Add modules, or replace those of the same name."""
        for name, module in modules.items():
            self[name] = module

    def __getitem__(self, name: str) -> Any:
        return self._dict()[name]

    def __setitem__(self, name: str, module: Module) -> None:
        if hasattr(type(self), name):
            raise KeyError(f"attribute '{name}' already exists")
        setattr(self, name, module)

    def __contains__(self, name: object) -> bool:
        return name in self._dict()

    def __len__(self) -> int:
        return len(self._dict())

    def __iter__(self) -> Iterator[str]:
        return iter(self._dict())

    def keys(self) -> list[str]:
        """The names."""
        return list(self)

    def values(self) -> list[Module]:
        """The modules."""
        return list(self._dict().values())

    def items(self) -> list[tuple[str, Module]]:
        """The names and the modules."""
        return list(self._dict().items())
