"""Commands of clients that look for mistakes: `triton-sanitizer` and `triton-race-detector`."""

import argparse
from collections.abc import Callable
from pathlib import Path

import triton_viz
from triton_viz.clients import report
from triton_viz.clients.cli.command_line import main_for
from triton_viz.core.client import Client


def issues_main(
    client_factory: Callable[[argparse.Namespace], Client],
    *,
    name: str,
    description: str,
    add_options: Callable[[argparse.ArgumentParser], None] = lambda parser: None,
) -> Callable[..., int]:
    """A command that runs a program, prints the issues of its launches, and ends with 1 if there are any."""

    def add_all_options(parser: argparse.ArgumentParser) -> None:
        add_options(parser)
        parser.add_argument("--json", type=Path, metavar="FILE", help="write the issues as JSON")
        parser.add_argument("--sarif", type=Path, metavar="FILE", help="write the issues as SARIF 2.1.0")

    def report_issues(client: Client, options: argparse.Namespace) -> int:
        launches = triton_viz.launches
        report.print_issues(launches)
        report.print_summary(launches, name)
        if options.json is not None:
            options.json.write_text(report.issues_as_json(launches) + "\n")
        if options.sarif is not None:
            options.sarif.write_text(report.issues_as_sarif(launches, name) + "\n")
        return 1 if report.violations(launches) else 0

    return main_for(
        client_factory, report_issues, name=name, description=description, add_options=add_all_options
    )
