"""The toy client's command."""

import argparse

import triton_viz
from tests.triton_viz.helpers.toy_client.client import Toy
from triton_viz.clients.cli.command_line import main_for


def _report(client: Toy, options: argparse.Namespace) -> int:
    records = [record for launch in triton_viz.launches for record in launch.records]
    print(f"toy: {sum(record.elements for record in records)} elements stored")  # type: ignore[attr-defined]
    return 0


main = main_for(lambda options: Toy(), _report, name="triton-toy", description="Count stored elements.")
