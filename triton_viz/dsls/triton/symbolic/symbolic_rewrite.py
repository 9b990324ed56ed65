"""Rewriting for symbolic program ids: loops also pass the variables that they change to the flow.

    while c:             while __1.next():
        x = f(x)             (x,) = __1.carry(("x",), (x,))
                             if __1.holds(c):
                                 x = ...
                             __1.carried((x,))
                         __1.end()
                         (x,) = __1.after((x,))

With that, a loop can run its body once with unknown variables, and derive their values in any iteration
(`symbolic_loops.py`).
"""

import ast
from collections.abc import Callable
from types import CodeType
from typing import Any

from triton_viz.dsls.triton.control_flow.rewrite import Rewriter
from triton_viz.dsls.triton.control_flow.syntax import bound


class SymbolicRewriter(Rewriter):
    """Rewrites one function, loops with the variables they change."""

    def __init__(self, code: CodeType):
        super().__init__(code)
        self._changed: list[set[str]] = []
        """For each enclosing loop, the names that are assigned in it."""

    def function(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """The function, rewritten."""
        every = [arg for arg in ast.walk(node.args) if isinstance(arg, ast.arg)]
        self._parameters = {arg.arg for arg in every}
        return super().function(node)

    def assigned(self, name: str, value: ast.expr) -> ast.expr:
        """The expression that is assigned to a name in place of a value."""
        if name in self.locals and name not in self.static:
            for names in self._changed:
                names.add(name)
        return super().assigned(name, value)

    def _For(self, node: ast.For) -> list[ast.stmt]:
        own = bound(node.target)
        also = own if isinstance(node.target, ast.Name) and id(node) in self.seen_after else set()
        begin, loop, end, *rest = self._gathering(super()._For, node, also)
        # Python assigns the loop variable at the beginning of an iteration, so it is not carried.
        self._names = [name for name in self._names if name in also or name not in own]
        assert isinstance(loop, ast.For)
        loop.body = [*self._before(begin), *loop.body, self._behind(begin)]
        return [begin, loop, end, *self._after_end(begin), *rest]

    def _While(self, node: ast.While) -> list[ast.stmt]:
        begin, loop, end, *rest = self._gathering(super()._While, node, set())
        assert isinstance(loop, ast.While)
        assert isinstance(loop.test, ast.BoolOp)
        loop.test, holds = loop.test.values
        loop.body = [*self._before(begin), ast.If(holds, loop.body, []), self._behind(begin)]
        return [begin, loop, end, *self._after_end(begin), *rest]

    def _gathering(
        self, rewrite: Callable[[Any], list[ast.stmt]], node: Any, also: set[str]
    ) -> list[ast.stmt]:
        self._changed.append(set(also))
        result = rewrite(node)
        self._names = sorted(self._changed.pop())
        self.undefined |= set(self._names) - self._parameters
        for names in self._changed:
            names.update(also)
        return result

    def _before(self, begin: ast.stmt) -> list[ast.stmt]:
        names = ast.Tuple([ast.Constant(name) for name in self._names], ast.Load())
        return [
            ast.Assign([self._tuple(ast.Store())], self._call(begin, "carry", names, self._tuple(ast.Load())))
        ]

    def _behind(self, begin: ast.stmt) -> ast.stmt:
        return ast.Expr(self._call(begin, "carried", self._tuple(ast.Load())))

    def _after_end(self, begin: ast.stmt) -> list[ast.stmt]:
        after = self._call(begin, "after", self._tuple(ast.Load()))
        return [ast.Assign([self._tuple(ast.Store())], after)]

    def _tuple(self, context: ast.expr_context) -> ast.expr:
        return ast.Tuple([ast.Name(name, context) for name in self._names], context)

    def _call(self, begin: ast.stmt, method: str, *args: ast.expr) -> ast.expr:
        assert isinstance(begin, ast.Assign)
        assert isinstance(begin.targets[0], ast.Name)
        loop = ast.Name(begin.targets[0].id, ast.Load())
        return ast.Call(ast.Attribute(loop, method, ast.Load()), list(args), [])
