"""Compile the catalogue for a GPU that need not be there: the proof that its kernels are real Triton.

    python -m tests.triton_viz.catalogue.compiling

prints one line of JSON, the error of every entry that does not compile.
"""

import json

from tests.triton_viz.catalogue import ENTRIES
from tests.triton_viz.corpus.case import Case
from tests.triton_viz.corpus.compiling import to_ttir


def main() -> None:
    """Compile all entries, and print the errors."""
    errors: dict[str, str] = {}
    for entry in ENTRIES:
        case = Case(
            entry.name, entry.kernel, lambda _, entry=entry: entry.arguments(), entry.grid, lambda _: {}
        )
        try:
            to_ttir(case)
        except Exception as error:  # noqa: BLE001  whatever it is, it belongs to the entry
            errors[entry.name] = f"{type(error).__name__}: {error}"
    print(json.dumps(errors))


if __name__ == "__main__":
    main()
