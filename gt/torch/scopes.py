"""Scopes: the part of a program that is running, which is a module's forward, an optimizer's step or a
backward pass.

A scope is entered with each call of a `torch.nn.Module` (its path is that in `named_modules()` of the
outermost module), each `Optimizer.step` and each backward pass, and left when that returns or raises. Each
thread has its own.

A backward pass runs nodes of the graph that forward passes made. PyTorch numbers a thread's nodes in the
order that they are made, so the scope that made a node follows from the numbers at which scopes were entered
and left. (A node of another thread may have the number of one of this thread's: then its scope is wrong.)
"""

import functools
import sys
import sysconfig
import threading
import weakref
from bisect import bisect_right
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

import torch
from torch import nn
from torch.optim import Optimizer

BACKWARD, RECOMPUTE = "backward", "recompute"
MAX_SCOPES = 1 << 16
"""How many scopes that made nodes are remembered, and how many calls; the oldest are forgotten first."""

_frame = sys._getframe
_is_compiling = torch.compiler.is_compiling
_node_number: Callable[[], int] = torch.autograd._get_sequence_nr  # type: ignore[attr-defined]
_current_node: Callable[[], Any] = torch._C._current_autograd_node
_set_eval_frame: Callable[[Any], Any] = torch._C._dynamo.eval_frame.set_eval_frame  # type: ignore[attr-defined]
"""Replaces the function that TorchDynamo captures Python code with; returns the one before."""

_INTERNAL_FOLDERS = tuple(str(Path(one).parent) for one in (torch.__file__, Path(__file__).parent))
_LIBRARY_FOLDERS = (
    *_INTERNAL_FOLDERS,
    *{sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")},
    "<frozen ",
)


class Scope:
    """A part of a program. Equal scopes are one object."""

    __slots__ = ("is_backward", "line", "path", "phase", "prefix")
    _known: ClassVar[dict[tuple[str, str, str, str], "Scope"]] = {}

    def __new__(cls, path: str = "", prefix: str = "", phase: str = "", line: str = "") -> "Scope":
        """The one scope with these fields."""
        found = cls._known.get((path, prefix, phase, line))
        if found is None:
            found = cls._known[path, prefix, phase, line] = super().__new__(cls)
            found.path, found.prefix, found.phase, found.line = path, prefix, phase, line
            found.is_backward = phase == BACKWARD
        return found

    path: str
    """`model.layers.0.self_attn`, the class of an outermost module, or `AdamW.step`; empty outside of all."""
    prefix: str
    """The prefix of its submodules' paths."""
    phase: str
    """Empty, BACKWARD or RECOMPUTE."""
    line: str
    """The line of the user's code that entered it."""
    is_backward: bool
    """Whether it is a backward pass: each of its nodes has its own path."""


OUTSIDE = Scope()
_scope = ContextVar("scope", default=OUTSIDE)
current: Callable[[], Scope] = _scope.get
"""The scope that this thread is in."""


class _Nodes:
    """The scopes that made a thread's nodes: `scopes[n]` those from number `numbers[n]` on."""

    __slots__ = ("last", "numbers", "scopes")

    def __init__(self) -> None:
        self.numbers = [-1]
        self.scopes = [OUTSIDE]
        self.last = OUTSIDE
        """The scope of the node that the backward pass ran last."""

    def enter(self, scope: Scope, made: int = 0) -> None:
        """Record that the next nodes, and the last `made` ones, are of this scope."""
        if self.scopes[-1] is scope:
            return
        number = _node_number() - made
        if self.numbers[-1] >= number:
            self.scopes[-1] = scope
            return
        self.numbers.append(number)
        self.scopes.append(scope)
        if len(self.numbers) > 2 * MAX_SCOPES:
            del self.numbers[1:MAX_SCOPES], self.scopes[1:MAX_SCOPES]
            self.scopes[0] = OUTSIDE


class _Thread(threading.local):
    """The state of each thread."""

    def __init__(self) -> None:
        self.nodes = _Nodes()


_thread = _Thread()


def of_current_node() -> tuple[Scope, str]:
    """The scope that made the node that this thread's backward pass is running, and the phase.

    The phase is RECOMPUTE if the node runs the `forward` of a module again, without calling the module.
    """
    node = _current_node()
    if node is None:
        return OUTSIDE, BACKWARD
    nodes, number = _thread.nodes, node._sequence_nr()
    if number < _node_number():
        nodes.last = nodes.scopes[bisect_right(nodes.numbers, number) - 1]
    # Otherwise the node accumulates a gradient, right after the node that computed it.
    if not torch.is_grad_enabled():
        return nodes.last, BACKWARD
    # Its ops make nodes for a second backward pass; the node of this op exists already.
    again = _recomputed(_frame(4))
    scope = again or nodes.last
    nodes.enter(scope, made=1)
    return scope, RECOMPUTE if again else BACKWARD


def _recomputed(frame: FrameType | None) -> Scope | None:
    """The module whose `forward` runs in a frame, or in a caller of it in the same backward pass."""
    while frame is not None and id(frame.f_code) not in _BOUNDARIES:
        code = frame.f_code
        if code.co_argcount and code.co_varnames[0] == "self":
            owner = frame.f_locals.get("self")
            if isinstance(owner, nn.Module) and owner in _paths:
                return Scope(*_paths[owner], RECOMPUTE, current().line)
        frame = frame.f_back
    return None


# --- entering scopes ---

_entered: dict[tuple[Any, ...], tuple[Any, Scope]] = {}
"""By scope, `id()` of a module or optimizer, and code offset of the call (or, if that is ambiguous, the
user's line): a reference to the module, and the scope that the call enters."""
_callers: dict[int, Any] = {}
"""The code of these callers, kept alive so that its `id()` stays unique."""
_paths: "weakref.WeakKeyDictionary[nn.Module, tuple[str, str]]" = weakref.WeakKeyDictionary()
"""The last path and prefix of each module, for backward passes that call it outside of its parent."""


def _entering(called: Callable[..., Any], find: "Callable[[Any, FrameType], tuple[str, str]]") -> Any:
    """A method that runs in its own scope, whose path and prefix `find` returns."""

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _is_compiling():
            return called(self, *args, **kwargs)
        outer, caller = current(), _frame(1)
        known = _entered.get((outer, id(self), id(caller.f_code), caller.f_lasti))
        scope = known[1] if known is not None and known[0]() is self else _find(outer, self, caller, find)
        nodes, token = _thread.nodes, _scope.set(scope)
        nodes.enter(scope)
        try:
            return called(self, *args, **kwargs)
        finally:
            _scope.reset(token)
            nodes.enter(outer)

    _BOUNDARIES.add(id(run.__code__))
    return functools.update_wrapper(run, called)


_BOUNDARIES: set[int] = set()
"""The `id()` of the code that enters scopes."""
_IMPL = nn.Module._call_impl.__code__
_CALLS = {id(nn.Module.__call__.__code__), id(_IMPL), *map(id, _IMPL.co_consts)}
"""The `id()` of the code of PyTorch that calls a module's `forward` and its hooks."""


def _find(outer: Scope, called: Any, caller: FrameType, find: Callable[..., tuple[str, str]]) -> Scope:
    before = _set_eval_frame(None)  # after a graph break of torch.compile, which must not capture this
    try:
        return _new_scope(outer, called, caller, find)
    finally:
        _set_eval_frame(before)


def _new_scope(outer: Scope, called: Any, caller: FrameType, find: Callable[..., tuple[str, str]]) -> Scope:
    line, sure = line_of(outer, caller)
    place = (id(caller.f_code), caller.f_lasti) if sure else (line, -1)
    known = _entered.get((outer, id(called), *place))
    if known is not None and known[0]() is called:
        return known[1]
    path, prefix = find(called, caller)
    phase = RECOMPUTE if outer.phase else ""
    if isinstance(called, nn.Module):
        if phase:
            path, prefix = _paths.get(called, (path, prefix))
        else:
            _paths[called] = path, prefix
    scope = Scope(path, prefix, phase, line)
    if len(_entered) > MAX_SCOPES:
        _entered.clear()
    _callers[id(caller.f_code)] = caller.f_code
    _entered[outer, id(called), *place] = weakref.ref(called), scope
    return scope


def _module_path(module: nn.Module, caller: FrameType | None) -> tuple[str, str]:
    """A module's path, and the prefix of its submodules' paths: by the modules whose methods call it."""
    around: dict[int, tuple[nn.Module, Scope | None, FrameType]] = {}
    inner = None
    while caller is not None:
        code = caller.f_code
        if code.co_argcount and code.co_varnames[0] == "self":
            owner = caller.f_locals.get("self")
            if isinstance(owner, nn.Module) and owner is not module:
                scope = caller.f_locals["scope"] if id(code) in _BOUNDARIES else None
                if scope is not None or id(owner) not in around:
                    around[id(owner)] = owner, scope, caller
                inner = inner or scope
        caller = caller.f_back
    for owner, scope, frame in around.values():
        name = next((name for name, one in owner.named_modules() if one is module), None)
        if name is not None:
            prefix = _module_path(owner, frame.f_back)[1] if scope is None else scope.prefix
            return _word(prefix + name), _word(f"{prefix}{name}.")
    name = _word(type(module).__name__)
    if inner is None:
        return name, ""
    # The module was made in a forward pass, and is not a submodule of a running module.
    return f"{inner.prefix}{name}", f"{inner.prefix}{name}."


def _optimizer_path(optimizer: Optimizer, caller: FrameType) -> tuple[str, str]:
    return f"{_word(type(optimizer).__name__)}.step", ""


def _word(text: str) -> str:
    """A name without the characters that separate words on the tape."""
    return "_".join(text.split())


# --- the user's lines ---


def is_user_file(name: str) -> bool:
    """Whether a source file is the user's: not of PyTorch, gt, Python or installed packages."""
    return not name.startswith(_LIBRARY_FOLDERS)


def is_user_code(frame: FrameType) -> bool:
    """Whether a frame runs code of the user."""
    return is_user_file(frame.f_code.co_filename)


def line_of(scope: Scope, frame: FrameType | None) -> tuple[str, bool]:
    """The user's line that a frame inside a scope belongs to, and whether it depends only on the scope and
    this place in the code: not if it is in a caller."""
    first, nearest = frame, None
    while frame is not None:
        if id(frame.f_code) in _BOUNDARIES:
            return scope.line, True
        if is_user_code(frame):
            return _line(frame), frame is first
        if nearest is None and not frame.f_code.co_filename.startswith(_INTERNAL_FOLDERS):
            nearest = frame
        frame = frame.f_back
    # A program that is itself an installed package, or a thread of PyTorch's.
    return (scope.line if nearest is None else _line(nearest)), nearest is first


def is_called_by_scope(frame: FrameType) -> bool:
    """Whether a frame is that of the function that a scope runs, such as a module's `forward`."""
    caller = frame.f_back
    while caller is not None and id(caller.f_code) in _CALLS:
        caller = caller.f_back
    return caller is not None and id(caller.f_code) in _BOUNDARIES


def _line(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


# --- where scopes are entered ---


def backward_pass(run: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run a backward pass in a scope of its own."""
    outer, nodes = current(), _thread.nodes
    nodes.last = OUTSIDE
    line, _ = line_of(outer, _frame(1))
    token = _scope.set(Scope(phase=BACKWARD, line=line))
    try:
        return run(*args, **kwargs)
    finally:
        _scope.reset(token)
        nodes.enter(outer)


_BOUNDARIES.add(id(backward_pass.__code__))


def patch_modules_and_optimizers() -> None:
    """Patch PyTorch so that modules and optimizers enter scopes."""
    original = nn.Module.__call__
    nn.Module.__call__ = _entering(original, _module_path)
    for name in ("torch._dynamo.utils", "torch._dynamo.variables.nn_module"):
        # torch.compile calls `forward` directly if `__call__` is the one it knows.
        if getattr(sys.modules.get(name), "unpatched_nn_module_call", None) is original:
            sys.modules[name].unpatched_nn_module_call = nn.Module.__call__  # type: ignore[attr-defined]
    hook = Optimizer.profile_hook_step
    named: Any = staticmethod(lambda func: hook(_entering(func, _optimizer_path)))
    Optimizer.profile_hook_step = named
    found = [Optimizer]
    for kind in found:  # classes that PyTorch has wrapped already; it may grow
        found += [one for one in kind.__subclasses__() if one not in found]
        if getattr(vars(kind).get("step"), "hooked", False):
            kind.step = _entering(kind.step, _optimizer_path)
