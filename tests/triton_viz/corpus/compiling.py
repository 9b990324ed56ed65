"""Compile a case for a GPU that need not be there: the proof that its kernel is real Triton.

    python -m tests.triton_viz.corpus.compiling

prints one line of JSON, the error of every case that does not compile. It is a program of its own
because kernels that ran in an interpreter may leave the language changed.
"""

import json
import sys
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend
from triton.compiler.compiler import ir
from triton.tools.tensor_descriptor import TensorDescriptor

from tests.triton_viz.corpus.case import Case, launched_with

TARGET = GPUTarget("cuda", 90, 32)

ELEMENTS = {
    torch.bool: "i1",
    torch.int8: "i8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.uint8: "u8",
    torch.uint16: "u16",
    torch.uint32: "u32",
    torch.uint64: "u64",
    torch.float16: "fp16",
    torch.bfloat16: "bf16",
    torch.float32: "fp32",
    torch.float64: "fp64",
    torch.float8_e4m3fn: "fp8e4nv",
    torch.float8_e5m2: "fp8e5",
}


def source_of(case: Case) -> ASTSource:
    """The kernel with the types that its arguments have."""
    signature: dict[str, Any] = {}
    constants: dict[tuple[int, ...], Any] = {}
    given = launched_with(case.fresh())
    for parameter in case.kernel.params:
        value = given.get(parameter.name, parameter.default)
        at = (parameter.num,)
        if parameter.is_constexpr:
            signature[parameter.name], constants[at] = "constexpr", value
        else:
            signature[parameter.name] = _type_of(value, at, constants)
    return ASTSource(fn=case.kernel, signature=signature, constexprs=constants)


def _type_of(value: Any, at: tuple[int, ...], constants: dict[tuple[int, ...], Any]) -> Any:
    if isinstance(value, tuple):
        items = [_type_of(item, (*at, n), constants) for n, item in enumerate(value)]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if value is None or isinstance(value, triton.language.constexpr):
        constants[at] = getattr(value, "value", value)
        return "constexpr"
    if isinstance(value, torch.Tensor):
        return f"*{ELEMENTS[value.dtype]}"
    if isinstance(value, TensorDescriptor):
        return f"tensordesc<{ELEMENTS[value.base.dtype]}{list(value.block_shape)}>"
    if isinstance(value, bool):
        return "u1"
    if isinstance(value, float):
        return "fp32"
    return "i32" if -(2**31) <= value < 2**31 else "i64" if value < 2**63 else "u64"


def to_ttir(case: Case) -> str:
    """The kernel in Triton's own intermediate language, checked and optimized by its compiler."""
    backend = make_backend(TARGET)
    options = backend.parse_options({})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    stages: dict[str, Any] = {}
    source = source_of(case)
    backend.add_stages(stages, options, source.language)
    functions, modules = backend.get_codegen_implementation(options), backend.get_module_map()
    module = source.make_ir(TARGET, options, functions, modules, context)
    return str(stages["ttir"](module, {}))


def to_ptx(case: Case) -> str:
    """The kernel in the GPU's assembly, to read what an operation really does there."""
    return triton.compile(source_of(case), target=TARGET).asm["ptx"]


def main() -> None:
    """Compile all cases, or those named on the command line, and print the errors."""
    from tests.triton_viz.corpus import CASES

    errors: dict[str, str] = {}
    for case in CASES:
        if len(sys.argv) == 1 or case.name in sys.argv[1:]:
            try:
                to_ttir(case)
            except Exception as error:  # noqa: BLE001  whatever it is, it belongs to the case
                errors[case.name] = f"{type(error).__name__}: {error}"
    print(json.dumps(errors))


if __name__ == "__main__":
    main()
