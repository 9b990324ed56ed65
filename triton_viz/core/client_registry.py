"""The registry of clients by name. A client's package registers it when it is imported:

    # my_client/__init__.py
    triton_viz.register_client(
        "mine",
        "my_client.client:Mine",
        command="my_client.cli:main",
        records=["my_client.records:Touch"],
    )

After `import my_client`, `trace("mine")` works, and trace files may contain records of those types. The
command is `python -m triton_viz --import my_client mine`. A value given as "module:NAME" is imported on first
use.
"""

import dataclasses
import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from triton_viz.core.data import Record, register_record
from triton_viz.core.lazy import load
from triton_viz.errors import UnsupportedError

if TYPE_CHECKING:
    from triton_viz.core.client import Client


@dataclasses.dataclass(frozen=True)
class Entry:
    """A registered client."""

    name: str
    client: "str | Callable[..., Client]"
    """The class, or a function that makes a client; or "module:NAME" of either."""
    command: str | Callable[..., int] | None = None
    """The function that `python -m triton_viz NAME` calls with the other arguments; or its "module:NAME"."""

    def make(self, **options: Any) -> "Client":
        """A new client."""
        factory = load(self.client) if isinstance(self.client, str) else self.client
        return factory(**options)

    def run_command(self, arguments: Sequence[str]) -> int:
        """Run its command; the result is an exit code."""
        if self.command is None:
            raise UnsupportedError(f"the client {self.name!r} has no command")
        main = load(self.command) if isinstance(self.command, str) else self.command
        return main(list(arguments))

    @property
    def exports(self) -> str:
        """The name of its class."""
        found = self.client if isinstance(self.client, str) else self.client.__name__
        return found.rpartition(":")[2]


_entries: dict[str, Entry] = {}


def register_client(
    name: str,
    client: "str | Callable[..., Client]",
    *,
    command: str | Callable[..., int] | None = None,
    records: Sequence[str | type[Record]] = (),
) -> None:
    """Register a client under a name, and the types of its records for reading trace files.

    Two different clients under one name are an error; registering the same client again changes nothing.
    """
    importlib.import_module("triton_viz.clients")  # first: their names are taken
    entry = Entry(name, client, command)
    present = _entries.get(name)
    if present is not None and present != entry:
        raise UnsupportedError(
            f"a client is already called {name!r} ({present.client}): register {client} under another name"
        )
    for record in records:
        if isinstance(record, str):  # a type that exists has registered itself
            register_record(record)
    _entries[name] = entry


def default_client() -> str:
    """The name of the client that `trace()` uses if none is given."""
    return importlib.import_module("triton_viz.clients").DEFAULT


def registered_clients() -> dict[str, Entry]:
    """All registered clients, those of triton_viz itself first."""
    importlib.import_module("triton_viz.clients")  # where each folder registers its client
    return dict(_entries)
