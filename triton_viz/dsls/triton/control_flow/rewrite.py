"""Rewriting: a kernel's Python is compiled again so that its control flow works on lanes.

Calls, assignments, branches and loops become calls of a `Flow` (`lane_flow.py`), which the new function has
as the global `__flow`. Everything else stays as it was written: file name, lines, columns, names, closures.

    if c:                __1 = __flow.test(c)                    True, False, or a Split: some lanes
        x = f(y)         if __1:
    else:                    x = __flow.merge(__flow.call(f, y), x)
        x = 0            if __1 is not True:
                             if __1: __flow.flip(__1)
                             x = __flow.merge(0, x)
                             if __1: __flow.join()
"""

import ast
import inspect
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

import triton.language as tl

from triton_viz.dsls.triton.control_flow.rewrite_expressions import (
    FLOW,
    ExpressionRewriter,
    assign_node,
    call_flow,
    call_on,
    name_node,
)
from triton_viz.dsls.triton.control_flow.syntax import (
    ENDS,
    bound,
    ends,
    may_leave,
    seen_after,
    within,
)
from triton_viz.errors import UnsupportedError

Source = tuple[list[str], int]
"""The lines of a function, and the number of the first."""

_COMPILED: dict[tuple[CodeType, str, type], tuple[CodeType, frozenset[str]]] = {}


def rewritten(
    fn: Callable, flow: Any, source: Source | None = None, rewriter: "type[Rewriter] | None" = None
) -> Callable:
    """The function in its rewritten form, for one flow. It sees its module's globals as they are now.

    `rewriter` is the class that rewrites it, which a flow may subclass.
    """
    if not isinstance(fn, FunctionType):
        raise UnsupportedError(f"{fn!r} is no Python function, so it cannot be run lane by lane")
    rewriter = rewriter or Rewriter
    key = fn.__code__, fn.__code__.co_filename, rewriter  # equal code in two files is not the same code
    if key not in _COMPILED:
        if len(_COMPILED) > 4096:
            _COMPILED.clear()
        _COMPILED[key] = _compiled(fn.__code__, fn.__code__.co_filename, source, rewriter)
    code, names = _COMPILED[key]
    theirs = fn.__globals__
    scope = {name: theirs[name] for name in names if name in theirs}
    if "value" not in names:
        # constexpr(2) * tensor would be a constexpr that holds a tensor, so the plain number is used.
        for name, value in scope.items():
            if isinstance(value, tl.constexpr):
                scope[name] = value.value
    scope[FLOW] = flow
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
    closure = tuple(cells[name] for name in code.co_freevars)
    new = FunctionType(code, scope, fn.__name__, fn.__defaults__, closure)
    new.__kwdefaults__ = fn.__kwdefaults__
    new.__qualname__, new.__module__ = fn.__qualname__, fn.__module__
    return new


def _compiled(
    code: CodeType, file: str, source: Source | None, rewriter: "type[Rewriter]"
) -> tuple[CodeType, frozenset[str]]:
    """The rewritten code, and the globals it may read."""
    definition = _definition(code, file, source)
    new = rewriter(code).function(definition)
    # Free variables must belong to a function: this makes them the enclosing function's. Its own
    # name, by which a function may call itself, must not be among them.
    new.name = "__new"
    outer = ast.parse(f"def __outer({', '.join(code.co_freevars)}): pass").body[0]
    assert isinstance(outer, ast.FunctionDef)
    outer.body = [new]
    module = ast.fix_missing_locations(ast.Module([outer], type_ignores=[]))
    inner = _code_in(_code_in(compile(module, file, "exec", dont_inherit=True), "__outer"), new.name)
    inner = inner.replace(co_name=code.co_name, co_qualname=code.co_qualname)
    return inner, frozenset(_names_of(inner)) | {"__name__", "__file__", "__loader__", "__builtins__"}


def _definition(code: CodeType, file: str, source: Source | None) -> ast.FunctionDef:
    """The function's syntax tree, with the lines and columns of its file."""
    where = f"{file}:{code.co_firstlineno}: {code.co_name}"
    try:
        lines, first = source or inspect.getsourcelines(code)
    except (OSError, TypeError) as error:
        raise UnsupportedError(
            f"{where} cannot be run: its source code is not available ({error}). Kernels are rewritten from "
            "their source, so define this one in a file, or in a notebook cell."
        ) from error
    try:
        # An `if` around the source allows its indentation, so that columns stay the same.
        tree = ast.parse("if 1:\n" + "".join(lines) if lines[0][0].isspace() else "".join(lines))
    except SyntaxError as error:
        raise UnsupportedError(f"{where} cannot be run: its source code is not a whole function") from error
    indented = isinstance(tree.body[0], ast.If)
    found = tree.body[0].body[0] if isinstance(tree.body[0], ast.If) else tree.body[0]
    if not isinstance(found, ast.FunctionDef) or found.name != code.co_name:
        raise UnsupportedError(f"{where} cannot be run: a kernel is written with `def`")
    ast.increment_lineno(found, first - 2 if indented else first - 1)
    return found


def _code_in(code: CodeType, name: str) -> CodeType:
    return next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name)


def _names_of(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names_of(inner)


class Rewriter(ExpressionRewriter):
    """Rewrites one function. Expressions are visited; a statement becomes a list of statements."""

    def function(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """The function, rewritten."""
        self.seen_after = seen_after(node)
        args = node.args
        every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
        self.defined = {arg.arg for arg in every if arg is not None}
        self.early = any(isinstance(child, ast.Return) for s in node.body for child in within(s))
        body = self.block(node.body)
        if self.early:
            body.append(ast.copy_location(ast.Return(call_flow("finish")), node.body[-1]))
        if self.undefined:
            names: list[ast.expr] = [ast.Name(name, ast.Store()) for name in sorted(self.undefined)]
            unset = ast.Assign(names, ast.Attribute(name_node(FLOW), "undefined", ast.Load()))
            body.insert(0, ast.copy_location(unset, node.body[0]))
        return ast.copy_location(ast.FunctionDef(node.name, args, body, [], None), node)

    # --- statements ---

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """A block of statements. After a statement by which lanes may leave, the rest is skipped if all
        left."""
        result: list[ast.stmt] = []
        for number, statement in enumerate(statements):
            new = self.statement(statement)
            for one in new:
                ast.copy_location(one, statement)
            result += new
            if isinstance(statement, ENDS):
                break  # the rest of the block is never executed
            rest = statements[number + 1 :]
            if rest and may_leave(statement):
                alive = ast.Attribute(name_node(FLOW), "alive", ast.Load())
                return [*result, ast.copy_location(ast.If(alive, self.block(rest), []), rest[0])]
        return result

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        """The statements that replace one statement."""
        known = getattr(self, f"_{type(node).__name__}", None)
        if known is not None:
            return known(node)
        if isinstance(node, ast.With | ast.Try | ast.Match):
            return [self._parts(node)]
        node = self.visit(node)
        if isinstance(node, ast.Import | ast.ImportFrom):
            self.defined |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        return [node]

    def nested(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """A block that may run for some of the lanes only."""
        self.depth += 1
        result = self.block(statements)
        self.depth -= 1
        return result

    def _parts(self, node: ast.stmt) -> ast.stmt:
        """A compound statement that is kept, with rewritten blocks. Only those of a `with` surely run."""
        before = set(self.defined)

        def go(part: ast.AST) -> None:
            for field, value in ast.iter_fields(part):
                if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                    setattr(part, field, self.block(value))
                elif isinstance(value, list):
                    for item in value:
                        go(item)
                elif isinstance(value, ast.expr):
                    setattr(part, field, self.visit(value))
                    self.defined |= bound(value)
                elif isinstance(value, ast.pattern):
                    self.defined |= bound(value)

        go(node)
        if not isinstance(node, ast.With):
            self.defined = before
        return node

    def _If(self, node: ast.If) -> list[ast.stmt]:
        test = self.visit(node.test)
        before = set(self.defined)
        body = self.nested(node.body)
        after_body, self.defined = self.defined, before
        orelse = self.nested(node.orelse)
        if ends(node.orelse):
            self.defined = after_body
        elif not ends(node.body):
            self.defined = after_body & self.defined
        return self._branch(call_flow("test", test), body, orelse)

    def _branch(self, test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt]) -> list[ast.stmt]:
        split = self.temporary()
        not_all = ast.Compare(name_node(split), [ast.IsNot()], [ast.Constant(True)])
        join = ast.Expr(call_flow("join"))
        first = assign_node(split, test)
        if not orelse:
            return [first, ast.If(name_node(split), [*body, ast.If(not_all, [join], [])], [])]
        flip = ast.If(name_node(split), [ast.Expr(call_flow("flip", name_node(split)))], [])
        other = ast.If(not_all, [flip, *orelse, ast.If(name_node(split), [join], [])], [])
        return [first, ast.If(name_node(split), body, []), other]

    def _While(self, node: ast.While) -> list[ast.stmt]:
        loop = self.temporary()
        self.depth += 1  # lanes that have left the loop keep what the test assigns
        condition = self.visit(node.test)
        self.depth -= 1
        test = ast.BoolOp(ast.And(), [call_on(loop, "next"), call_on(loop, "holds", condition)])
        body = self._loop_body(loop, node.body)
        new = ast.copy_location(ast.While(test, body, []), node)
        return [
            assign_node(loop, call_flow("while_loop", ast.Constant(node.lineno))),
            new,
            *self._after(loop, node.orelse),
        ]

    def _For(self, node: ast.For) -> list[ast.stmt]:
        loop = self.temporary()
        items = self.visit(node.iter)
        start: list[ast.stmt] = []
        target = node.target
        before = set(self.defined)
        if isinstance(target, ast.Name) and target.id in self.locals:
            name = target.id
            if id(node) in self.seen_after:
                # The variable is read after the loop, where each lane needs its own last value.
                if name not in self.defined:
                    self.undefined.add(name)
                item = self.temporary()
                target = ast.Name(item, ast.Store())
                start = [assign_node(name, call_flow("keep", name_node(item), name_node(name)))]
        else:
            target = self.visit(target)
        self.defined |= bound(node.target)
        body = [*start, *self._loop_body(loop, node.body)]
        self.defined = before
        new = ast.copy_location(ast.For(target, name_node(loop), body, []), node)
        return [
            assign_node(loop, call_flow("for_loop", ast.Constant(node.lineno), items)),
            new,
            *self._after(loop, node.orelse),
        ]

    def _loop_body(self, loop: str, statements: list[ast.stmt]) -> list[ast.stmt]:
        before = set(self.defined)
        self.loops.append(loop)
        body = self.nested(statements)
        self.loops.pop()
        self.defined = before  # it may run zero times
        return body

    def _after(self, loop: str, orelse: list[ast.stmt]) -> list[ast.stmt]:
        end: list[ast.stmt] = [ast.Expr(call_on(loop, "end"))]
        if orelse:
            end += self._branch(call_on(loop, "finished"), self.nested(orelse), [])
        return end

    def _Break(self, node: ast.Break) -> list[ast.stmt]:
        return [ast.If(call_on(self.loops[-1], "breaks"), [node], [])]

    def _Continue(self, node: ast.Continue) -> list[ast.stmt]:
        return [ast.If(call_on(self.loops[-1], "skips"), [node], [])]

    def _Return(self, node: ast.Return) -> list[ast.stmt]:
        value = None if node.value is None else self.visit(node.value)
        if not self.early:
            return [ast.Return(value)]
        value = value or ast.Constant(None)
        if not self.depth:
            return [ast.Return(call_flow("finish", value))]
        return [ast.If(call_flow("leaves", value), [ast.Return(call_flow("result"))], [])]

    def _Assert(self, node: ast.Assert) -> list[ast.stmt]:
        return [ast.Expr(call_flow("check", *(self.visit(part) for part in (node.test, node.msg) if part)))]

    def _Delete(self, node: ast.Delete) -> list[ast.stmt]:
        self.defined -= {name for target in node.targets for name in bound(target)}
        return [node]

    def _FunctionDef(self, node: ast.FunctionDef) -> list[ast.stmt]:
        self.defined.add(node.name)
        return [self._plainly(node)]

    def _Assign(self, node: ast.Assign) -> list[ast.stmt]:
        value = self.visit(node.value)
        if len(node.targets) == 1:
            return self._store(node.targets[0], value)
        shared = self.temporary()
        stores = [s for target in node.targets for s in self._store(target, name_node(shared))]
        return [assign_node(shared, value), *stores]

    def _AnnAssign(self, node: ast.AnnAssign) -> list[ast.stmt]:
        static = "constexpr" in ast.unparse(node.annotation)
        if node.value is None:
            if static and isinstance(node.target, ast.Name):
                self.static.add(node.target.id)
            return [node]
        value = self.visit(node.value)
        if static and isinstance(node.target, ast.Name):
            self.defined.add(node.target.id)
            return [assign_node(node.target.id, call_flow("static", value))]
        return self._store(node.target, value)

    def _AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        if isinstance(node.target, ast.Name):
            old = self.visit(ast.copy_location(name_node(node.target.id), node.target))
            sum_ = ast.copy_location(ast.BinOp(old, node.op, self.visit(node.value)), node)
            return self._store(node.target, sum_)
        node.target = self.visit(node.target)
        node.value = call_flow("unmerged", self.visit(node.value))
        return [node]

    def _store(self, target: ast.expr, value: ast.expr) -> list[ast.stmt]:
        """Assign to a target of any form."""
        if isinstance(target, ast.Name):
            return [ast.copy_location(assign_node(target.id, self.assigned(target.id, value)), target)]
        if isinstance(target, ast.Attribute | ast.Subscript):
            return [ast.Assign([self.visit(target)], call_flow("unmerged", value))]
        assert isinstance(target, ast.Tuple | ast.List)
        after: list[ast.stmt] = []
        parts = [self._part(part, after) for part in target.elts]
        return [ast.Assign([ast.Tuple(parts, ast.Store())], value), *after]

    def _part(self, target: ast.expr, after: list[ast.stmt]) -> ast.expr:
        """One part of a tuple target: unpacked into a temporary, and assigned from there."""
        if isinstance(target, ast.Starred):
            return ast.Starred(self._part(target.value, after), ast.Store())
        part = self.temporary()
        after += self._store(target, name_node(part))
        return ast.Name(part, ast.Store())
