"""Where a test file is that the specification names as `tests/test_NAME.py`."""

from pathlib import Path

ROOT = Path(__file__).parents[1]


def moved(argument: str) -> str:
    """The same argument of pytest, with the file in the folder of tests/ that has it."""
    path, colons, test = argument.partition("::")
    if Path(path).exists() or (ROOT / path).exists():
        return argument
    found = [one for one in (ROOT / "tests").glob(f"*/{Path(path).name}") if one.name.startswith("test_")]
    return f"{found[0].relative_to(ROOT)}{colons}{test}" if len(found) == 1 else argument
