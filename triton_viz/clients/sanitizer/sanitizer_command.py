"""`triton-sanitizer script.py ...`: run an unchanged program, and check the accesses of its kernels."""

import argparse

from triton_viz.clients.cli.issues_command import issues_main
from triton_viz.clients.sanitizer.sanitizer import Sanitizer


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--check-only", action="store_true", help="only prove accesses, do not run the kernels"
    )
    parser.add_argument("--abort-on-error", action="store_true", help="raise an error at the first issue")
    parser.add_argument(
        "--initcheck", action="store_true", help="also find reads of elements that were never written"
    )
    parser.add_argument(
        "--fake-memory", action="store_true", help="run kernels without reading or writing any memory"
    )


def _client(options: argparse.Namespace) -> Sanitizer:
    return Sanitizer(
        execute=not options.check_only,
        abort_on_error=options.abort_on_error,
        initcheck=options.initcheck,
        fake_memory=options.fake_memory,
    )


main = issues_main(
    _client,
    name="triton-sanitizer",
    description="Run a program, and prove or check that every access of its Triton kernels is in bounds.",
    add_options=_add_options,
)

if __name__ == "__main__":
    raise SystemExit(main())
