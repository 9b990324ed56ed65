"""Run-time attributes: those of an op that may differ between repeats without changing the graph.

They are floats, such as learning rates, and the attributes that a row names in its column `run_time`: seeds.
Two ops are the same for a repeated sequence, the inference of a spec or a placement if they differ in nothing
else; for a gradient plan, if they differ in seeds only. All modules that compare attributes use these
functions.
"""

from collections.abc import Mapping
from typing import Any

SEEDED = ("seed",)
"""The column `run_time` of a row that draws random numbers."""

RUN_TIME: set[str] = set()
"""The attributes that some row names in its column `run_time`. A name has the same meaning in every row."""


def is_run_time(name: str, value: Any) -> bool:
    """Whether an attribute may differ between repeats: a float, or one that a row names."""
    return type(value) is float or name in RUN_TIME


def fixed(attrs: Mapping[str, Any]) -> list[Any]:
    """The attributes' values, with None for run-time attributes."""
    return [None if type(value) is float or name in RUN_TIME else value for name, value in attrs.items()]


def is_random(attrs: Mapping[str, Any] | None) -> bool:
    """Whether an op of these attributes draws random numbers."""
    return attrs is not None and not RUN_TIME.isdisjoint(attrs)


def without_seeds(attrs: dict[str, Any]) -> dict[str, Any]:
    """The attributes without those that some row names as run-time; floats stay. The same dict if none is."""
    if RUN_TIME.isdisjoint(attrs):
        return attrs
    return {name: value for name, value in attrs.items() if name not in RUN_TIME}


def with_seed(attrs: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """The attributes of an op that draws random numbers, with this seed."""
    return {**attrs, **dict.fromkeys(SEEDED, seed)}


def seeds_of(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that some row names as run-time attributes."""
    return {name: value for name, value in attrs.items() if name in RUN_TIME}
