"""Benchmarks: how fast, as a ratio to a reference measured in the same run.

    python -m benchmarks                     # lists them
    python -m benchmarks gt_matmul           # runs some
    python -m benchmarks --all --json        # runs all, as JSON

Each module here defines a few; `harness` measures them. A ratio is never asserted in a test: machines
are noisy, and a benchmark that misses its goal is news, not an error.
"""
