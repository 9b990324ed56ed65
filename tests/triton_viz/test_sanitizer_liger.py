"""Third-party kernels: the sanitizer finds nothing in liger-kernel's ops, and they compute the same.

These are the tests of liger-kernel, run once more with a sanitizer.
"""

from collections.abc import Iterator

import pytest

import triton_viz
from tests.triton_viz import test_liger, test_liger_layers, test_liger_losses
from tests.triton_viz.helpers import agreement
from triton_viz.clients.sanitizer.verdict import Verdict
from triton_viz.core.data import Issue

OTHERS = {
    "test_every_op_of_the_library_is_tested_or_has_a_reason",  # runs nothing
    "test_rms_norm_of_many_short_rows_works_on_blocks_of_rows",  # the same kernels on much more data
}

for module in (test_liger, test_liger_layers, test_liger_losses):
    globals().update(
        {name: test for name, test in vars(module).items() if name.startswith("test_") and name not in OTHERS}
    )


@pytest.fixture(autouse=True)
def no_issue(no_launches: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run a test with a sanitizer, which has to check accesses and find no violation."""
    monkeypatch.setattr(agreement, "CLIENTS", ("sanitizer",))
    yield
    records = [record for launch in triton_viz.launches for record in launch.records]
    assert [record for record in records if isinstance(record, Issue)] == []
    assert any(isinstance(record, Verdict) for record in records)
