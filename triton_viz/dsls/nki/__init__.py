"""NKI: kernels for AWS Trainium run in NumPy, on any machine, and are checked against the hardware's limits.

    import triton_viz.dsls.nki
    triton_viz.dsls.nki.install()    # `nki` and `neuronxcc.nki` can be imported, if nothing provides them

`language` is `nki.language`. `isa` and `classic_isa` are `nki.isa` of the two packages (`nki` and the classic
`neuronxcc.nki`), built on the functions in `nki_ops`. `tensor` and `indexing` define tiles, `hardware` the
limits of the core. `nki_machine` runs programs and reports violations, `ledger` counts buffers, bytes and
engine time, `nki_modules` has the stand-in modules.
"""

from triton_viz.dsls.nki import operators
from triton_viz.dsls.nki.nki_dsl import NKI
from triton_viz.dsls.nki.nki_modules import install, uninstall
from triton_viz.dsls.nki.nki_records import Instruction, NeuronProfile
from triton_viz.dsls.nki.summary import summary

operators.install()

__all__ = ["NKI", "Instruction", "NeuronProfile", "install", "summary", "uninstall"]
