"""What a release of Triton may lack, found by asking it, never by its number.

A case that needs what this release lacks is skipped, and Triton's own compiler must refuse it, too.
"""

import dataclasses
import inspect

import pytest
import triton.language as tl
from triton.compiler.code_generator import CodeGenerator

OLD_NAMES_ARE_FINE = pytest.mark.filterwarnings(
    "ignore:view is deprecated", "ignore:tl.make_block_ptr is deprecated"
)
"""For tests that run the corpus: it uses on purpose what a release advises against."""


@dataclasses.dataclass(frozen=True)
class Feature:
    """Something that a kernel may need."""

    name: str
    present: bool

    @property
    def reason(self) -> str:
        """Why a case is skipped without it."""
        return f"this release of Triton lacks {self.name}"


def _source(function: object) -> str:
    return inspect.getsource(getattr(function, "fn", function))  # type: ignore[arg-type]


BLOCK_POINTERS = Feature("block pointers", "have been removed" not in _source(tl.make_block_ptr))
CHAINED_COMPARISONS = Feature(
    "chained comparisons", "multiple comparison is not supported" not in _source(CodeGenerator.visit_Compare)
)
FLIP_OF_THE_LAST_AXIS = Feature("tl.flip without an axis", "<= dim and" not in _source(tl.flip))
SMALLEST_OF_TOPK = Feature(
    "tl.topk of the smallest", "descending" in inspect.signature(tl.topk.fn).parameters
)
