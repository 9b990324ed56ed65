"""NKI kernels, in the style of the public tutorials: in both spellings, and broken."""

import triton_viz.dsls.nki

triton_viz.dsls.nki.install()
