"""Triton's compiler in a process of its own: the job and the answer.

A separate process is needed because the compiler does not work if TRITON_INTERPRET=1 was set when Triton was
imported, because the language is patched while kernels are traced, and because a failed assertion in LLVM
ends its process. This file is also the program of that process, so it imports only Triton. A kernel is sent
as its source and the values of its globals: importing the user's script in the child could have side effects.
"""

import __future__

import ast
import importlib
import inspect
import io
import linecache
import pickle
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction, KernelInterface

# --- sending ---


class NotSendable(Exception):
    """A kernel uses an object that cannot be sent to another process."""


def packed(job: dict[str, Any]) -> bytes:
    """Pickle a job for the child. Kernels, also those among the globals of kernels, are sent as source."""
    sender = _Sender()
    body = sender.pack(job, "an argument")
    while sender.waiting:
        fn, kernel = sender.waiting.pop()
        sender.functions[_key(fn)] = _description(fn, kernel, sender)
    files = _files(list(sender.functions.values()))
    return pickle.dumps({"files": files, "functions": sender.functions, "body": body})


def _files(functions: list[dict[str, Any]]) -> dict[str, list[str]]:
    """The files that functions are in, as they were when the functions were defined."""
    files: dict[str, list[str]] = {}
    for function in functions:
        file, begin, own = function["file"], function["first_line"] - 1, function["lines"]
        lines = files.setdefault(file, list(linecache.getlines(file)))
        lines += ["\n"] * (begin + len(own) - len(lines))
        lines[begin : begin + len(own)] = own
    return files


class _Sender:
    def __init__(self) -> None:
        self.functions: dict[str, Any] = {}
        self.waiting: list[tuple[FunctionType, Any]] = []

    def pack(self, value: Any, what: str) -> bytes:
        file = io.BytesIO()
        pickler = pickle.Pickler(file)
        pickler.persistent_id = self._reference  # pickle calls it for each object
        try:
            pickler.dump(value)
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            raise NotSendable(f"{what} cannot be sent to the compiler: {error}") from error
        return file.getvalue()

    def _reference(self, value: Any) -> Any:
        """The persistent id of an object that is not pickled: a module or a kernel."""
        if isinstance(value, ModuleType):
            return "module", value.__name__
        tag = "kernel" if isinstance(value, KernelInterface) else type(value).__name__
        if tag in ("kernel", "ConstexprFunction"):
            kernel: Any = value
            while not isinstance(kernel.fn, FunctionType):  # autotuner, heuristics and traces wrap a kernel
                kernel = kernel.fn
            kernel = getattr(kernel, "jit_fn", kernel)
            fn: FunctionType = kernel.fn
            if fn.__module__.partition(".")[0] == "triton":
                return "name", fn.__module__, fn.__qualname__
            if _key(fn) not in self.functions:
                self.functions[_key(fn)] = None
                self.waiting.append((fn, kernel))
            return tag, _key(fn)
        if isinstance(value, type | FunctionType) and value.__module__ == "__main__":
            raise NotSendable(
                f"{value.__name__} is defined in the script that runs: put it into a module of its own, "
                "which the compiler's process can import"
            )
        return None


def _key(fn: FunctionType) -> str:
    return f"{fn.__module__}:{fn.__qualname__}:{id(fn)}"


def _description(fn: FunctionType, kernel: Any, sender: _Sender) -> dict[str, Any]:
    if hasattr(kernel, "raw_src"):  # when it was decorated: its file may have changed
        lines, first_line = kernel.raw_src, kernel.starting_line_number
    else:
        lines, first_line = inspect.getsourcelines(fn)
    source = textwrap.dedent("".join(lines))
    names = _free_names(source, fn)
    scope = {name: value for name, value in _scope(fn).items() if name in names}
    options = kernel.kwargs if isinstance(getattr(kernel, "kwargs", None), dict) else vars(kernel)
    return {
        "lines": lines,
        "source": source,
        "first_line": first_line,
        "file": fn.__code__.co_filename,
        "module": fn.__module__,
        "qualname": fn.__qualname__,
        "options": {name: options.get(name) for name in ("debug", "noinline")},
        "defaults": sender.pack((fn.__defaults__, fn.__kwdefaults__), f"a default of {fn.__name__}"),
        "scope": {n: sender.pack(v, f"{n!r}, which {fn.__name__} uses,") for n, v in scope.items()},
    }


def _scope(fn: FunctionType) -> dict[str, Any]:
    return {**fn.__globals__, **inspect.getclosurevars(fn).nonlocals}


def _free_names(source: str, fn: FunctionType) -> set[str]:
    """The names of globals that a function uses."""
    names = {node.id for node in ast.walk(_definition(source)) if isinstance(node, ast.Name)}
    return names - {*fn.__code__.co_varnames, *fn.__code__.co_cellvars}


def _definition(source: str) -> ast.FunctionDef:
    """A function's definition, without decorators and the values of defaults, which run when it is
    defined."""
    definition = next(node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef))
    definition.decorator_list = []
    arguments = definition.args
    arguments.defaults = [ast.copy_location(ast.Constant(None), d) for d in arguments.defaults]
    arguments.kw_defaults = [d and ast.copy_location(ast.Constant(None), d) for d in arguments.kw_defaults]
    return definition


# --- receiving ---


class _Receiver:
    def __init__(self, functions: dict[str, Any]):
        self._functions = functions
        self._made: dict[str, Any] = {}

    def unpack(self, data: bytes) -> Any:
        unpickler = pickle.Unpickler(io.BytesIO(data))
        unpickler.persistent_load = self._find  # pickle calls it for each object
        return unpickler.load()

    def _find(self, reference: tuple[str, ...]) -> Any:
        tag, name, *rest = reference
        if tag in ("module", "name"):
            found: Any = importlib.import_module(name)
            for part in rest[0].split(".") if rest else ():
                found = getattr(found, part)
            return found
        if name not in self._made:
            self._make(tag, name)
        return self._made[name]

    def _make(self, tag: str, name: str) -> None:
        description = self._functions[name]
        scope: dict[str, Any] = {"__name__": description["module"]}
        definition = ast.increment_lineno(_definition(description["source"]), description["first_line"] - 1)
        module = ast.Module([definition], [])
        # Annotations stay strings, so that the names in them need not be defined.
        exec(compile(module, description["file"], "exec", __future__.annotations.compiler_flag), scope)
        fn = scope[definition.name]
        fn.__qualname__ = description["qualname"]
        made: Any = (
            JITFunction(fn, **description["options"]) if tag == "kernel" else triton.constexpr_function(fn)
        )
        self._made[name] = made  # before its globals: it may be among them
        fn.__defaults__, fn.__kwdefaults__ = self.unpack(description["defaults"])
        scope.update({n: self.unpack(value) for n, value in description["scope"].items()})


def main(request: str, answer: str) -> None:
    """Do the job in one file, and write the result, or the error, to the other."""
    job = pickle.loads(Path(request).read_bytes())
    for file, lines in job["files"].items():
        linecache.cache[file] = (sum(map(len, lines)), None, lines, file)
    try:
        result = {"compiled": compile_for(**_Receiver(job["functions"]).unpack(job["body"]))}
    except Exception as error:  # noqa: BLE001 - whatever a compiler raises goes to the parent
        result = {"error": f"{type(error).__name__}: {error}"}
    Path(answer).write_bytes(pickle.dumps(result))


# --- compiling ---


def compile_for(
    kernel: JITFunction,
    signature: dict[str, Any],
    constexprs: dict[Any, Any],
    attrs: dict[Any, Any],
    options: dict[str, Any],
    target: tuple[str, int | str, int],
) -> dict[str, Any]:
    """Compile a kernel for a target: the text of each stage, and the resources that it uses."""
    goal = GPUTarget(*target)
    target_info: Any = getattr(triton.language, "target_info", None)
    if target_info is not None:  # constexpr functions of a kernel query the target
        target_info.current_target = _builtin(lambda: goal)
    source = ASTSource(kernel, signature, constexprs, attrs)
    compiled: Any = triton.compile(source, target=goal, options=options)
    texts = {name: text for name, text in compiled.asm.items() if isinstance(text, str) and name != "source"}
    usage = _of_cubin(compiled.asm["cubin"]) if "cubin" in compiled.asm else _of_amdgcn(texts)
    return {"asm": texts, "shared": compiled.metadata.shared, **usage}


def _builtin(function: Callable[[], Any]) -> Callable[[], Any]:
    function.__triton_builtin__ = True  # type: ignore[attr-defined] - so the compiler calls it
    return function


def _of_cubin(binary: bytes) -> dict[str, int | None]:
    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    if not tool.exists():
        return {"registers": None, "spills": None}
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary)
        file.flush()
        usage = subprocess.run([tool, "-res-usage", file.name], capture_output=True, text=True).stdout
    return {"registers": _number(r"REG:(\d+)", usage), "spills": _number(r"STACK:(\d+)", usage)}


def _of_amdgcn(texts: dict[str, str]) -> dict[str, int | None]:
    text = texts.get("amdgcn", "")
    return {
        "registers": _number(r"\.vgpr_count:\s*(\d+)", text),
        "spills": _number(r"\.private_segment_fixed_size:\s*(\d+)", text),
    }


def _number(pattern: str, text: str) -> int | None:
    found = re.search(pattern, text)
    return int(found[1]) if found else None


if __name__ == "__main__":
    main(*sys.argv[1:])
