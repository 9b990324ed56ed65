"""The schemas of aten ops, in the form that kernels need."""

import functools
from typing import Any, NamedTuple

import torch

IGNORED = frozenset({"layout", "device", "pin_memory", "non_blocking", "generator"})
"""Arguments that are not sent: they do not change an op's value."""


class Argument(NamedTuple):
    """One argument of an op."""

    name: str
    kind: str
    """"tensor", "optional tensor", "tensors", "optional tensors" or "value"."""
    mutated: bool
    keyword: bool
    default: Any
    type: str
    """As the schema writes it."""


class Schema:
    """An overload: its arguments, those that it changes, and its results."""

    def __init__(self, name: str) -> None:
        self.name = name
        """Such as `aten::add.Tensor`."""
        packet, _, overload = name.removeprefix("aten::").partition(".")
        self.packet = packet
        self.function: Any = getattr(getattr(torch.ops.aten, packet), overload or "default")
        schema = self.function._schema
        self.arguments = [_argument(one) for one in schema.arguments]
        self.by_name = {one.name: one for one in self.arguments}
        self.positional = [one for one in self.arguments if not one.keyword]
        self.mutated = [one for one in self.arguments if one.mutated]
        self.returned: list[str | None] = [_alias(one, schema) for one in schema.returns]
        """For each result, the argument that it is; None for a new tensor."""
        self.result_kinds = [str(one.type) for one in schema.returns]
        tags = self.function.tags
        self.dynamic = torch.Tag.dynamic_output_shape in tags or torch.Tag.data_dependent_output in tags
        drops = any(one.name == "dropout_p" for one in self.arguments)  # attention: see `gt.torch.attention`
        self.random = torch.Tag.nondeterministic_seeded in tags and not drops
        self.creates = any(one.name == "device" for one in self.arguments)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """All arguments by name, with defaults."""
        given = {one.name: one.default for one in self.arguments}
        given.update(zip([one.name for one in self.positional], args, strict=False))
        given.update(kwargs)
        return given

    @functools.cached_property
    def functional(self) -> "Schema | None":
        """The op that computes the same and changes nothing, if there is one with the same arguments."""
        if not self.mutated:
            return self
        packet = self.packet
        if packet.endswith("_") and not packet.endswith("__"):
            packet = packet[:-1]
        wanted = [
            (one.name, one.type)
            for one in self.arguments
            if not (one.mutated and one.keyword) and one.name not in IGNORED
        ]
        found = getattr(torch.ops.aten, packet, None)
        for overload in found.overloads() if found is not None else ():
            other = schema_of(f"aten::{packet}.{overload}".removesuffix(".default"))
            arguments = [(one.name, one.type) for one in other.arguments if one.name not in IGNORED]
            if not other.mutated and arguments == wanted and all(one is None for one in other.returned):
                return other
        return None


@functools.cache
def schema_of(name: str) -> Schema:
    """The schema of an overload, by name."""
    return Schema(name)


def _argument(one: Any) -> Argument:
    written = str(one.type)
    if written == "Tensor":
        kind = "tensor"
    elif written == "Optional[Tensor]":
        kind = "optional tensor"
    elif written in ("List[Tensor]", "Optional[List[Tensor]]"):
        kind = "tensors"
    elif written == "List[Optional[Tensor]]":
        kind = "optional tensors"
    else:
        kind = "value"
    mutated = one.alias_info is not None and one.alias_info.is_write
    return Argument(one.name, kind, mutated, one.kwarg_only, one.default_value, written)


def _alias(result: Any, schema: Any) -> str | None:
    if result.alias_info is None:
        return None
    for one in schema.arguments:
        if one.alias_info is not None and one.alias_info.before_set == result.alias_info.before_set:
            return one.name
    return None
