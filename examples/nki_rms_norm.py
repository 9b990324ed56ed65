"""Trace a kernel for AWS Trainium on the CPU, without the vendor's packages, and look at it.

    python -m examples.nki_rms_norm             # prints bytes, engines, and buffers over time
    python -m examples.nki_rms_norm --show      # and opens the page on it
    python -m examples.nki_rms_norm --broken    # one program too many: an error that names element and line

Two programs normalize 128 rows each.
"""

import argparse
import importlib
from typing import Any

import numpy as np

import triton_viz
from triton_viz.dsls.nki import install, summary

install()  # `import nki` works from here on, also where nothing provides it
nki, nisa, nl = (importlib.import_module(name) for name in ("nki", "nki.isa", "nki.language"))


@triton_viz.trace("tracer", backend="nki")
@nki.jit
def rms_norm(x: Any, epsilon: float = 1e-6) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    rows = nl.ds(nl.program_id(0) * 128, 128)
    tile = nl.load(x[rows, :])
    squares = nl.ndarray(tile.shape, dtype=nl.float32, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.activation_reduce(squares, nl.square, tile, reduce_op=nl.add, reduce_res=total)
    scale = nl.rsqrt(total * (1.0 / x.shape[1]) + epsilon)
    nl.store(out[rows, :], tile * scale)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description="Trace an NKI kernel.")
    parser.add_argument("--show", action="store_true", help="open the page on the trace")
    parser.add_argument("--broken", action="store_true", help="launch a program too many")
    options = parser.parse_args()
    x = np.random.default_rng(0).standard_normal((256, 512)).astype(np.float32)
    result = rms_norm[3 if options.broken else 2](x)
    np.testing.assert_allclose(result, x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-6), rtol=1e-4)
    print(summary(triton_viz.launches[-1]))
    if options.show:
        triton_viz.launch()


if __name__ == "__main__":
    main()
