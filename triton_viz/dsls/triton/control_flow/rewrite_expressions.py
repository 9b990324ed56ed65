"""Rewriting of expressions: calls, names, `and`, `or`, `not`, comparisons and conditional expressions."""

import ast
from types import CodeType
from typing import Any

FLOW = "__flow"
"""The name of the flow in a rewritten function: the only global added to the user's."""

_LEFT_ALONE = {"super", "locals", "globals", "vars", "dir", "eval", "exec"}


class ExpressionRewriter(ast.NodeTransformer):
    """Rewrites the expressions of one function, and tracks which names have a value."""

    def __init__(self, code: CodeType):
        self.locals = {*code.co_varnames, *code.co_cellvars}
        self.defined: set[str] = set()  # names that surely have a value here
        self.undefined: set[str] = set()  # names that are merged with an older value that may not exist
        self.static: set[str] = set()  # names announced as `x: tl.constexpr`
        self.loops: list[str] = []  # the loops around this statement: the variables that hold them
        self.depth = 0  # number of enclosing branches and loops
        self.plain = 0  # inside a lambda, a comprehension or a nested def
        self.temporaries = 0
        self.early = False  # whether lanes may return at different statements

    def assigned(self, name: str, value: ast.expr) -> ast.expr:
        """The expression that is assigned to a name in place of a value."""
        if name in self.static:
            self.defined.add(name)
            return call_flow("static", value)
        if not self.depth or name not in self.locals:
            self.defined.add(name)
            return call_flow("tensor", value)
        if name not in self.defined:
            self.undefined.add(name)
            self.defined.add(name)
        return call_flow("merge", value, name_node(name))

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A name, with a check if it may be unassigned."""
        unsure = isinstance(node.ctx, ast.Load) and node.id in self.locals and node.id not in self.defined
        if not unsure or self.plain:
            return node
        return ast.copy_location(call_flow("defined", node, ast.Constant(node.id)), node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        """`x := value` assigns as a statement does."""
        node.value = self.visit(node.value)
        if not self.plain:
            node.value = self.assigned(node.target.id, node.value)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Every call goes through the flow, which substitutes builtins and rewrites kernels."""
        func = node.func
        if isinstance(func, ast.Name) and func.id in _LEFT_ALONE:
            return self.generic_visit(node)  # type: ignore[return-value]
        of_value = isinstance(func, ast.Attribute) and not self._is_global(func.value)
        first: list[ast.expr]
        if of_value and isinstance(func, ast.Attribute):
            first = [self.visit(func.value), ast.Constant(func.attr)]
        else:
            first = [self.visit(func)]
        args = [*first, *(self.visit(arg) for arg in node.args)]
        keywords = [ast.keyword(k.arg, self.visit(k.value)) for k in node.keywords]
        attribute = ast.Attribute(name_node(FLOW), "method" if of_value else "call", ast.Load())
        return ast.copy_location(ast.Call(attribute, args, keywords), node)

    def _is_global(self, node: ast.expr) -> bool:
        """Whether this is a global's attribute, so most likely a module: `tl.load`."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id not in self.locals and not self.plain

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """`and`, `or`: the right side is not evaluated only if a Python value on the left decides."""
        if self.plain:
            return self.generic_visit(node)  # type: ignore[return-value]
        operator = "and" if isinstance(node.op, ast.And) else "or"
        result = self.visit(node.values[0])
        # Operands after the first may not be evaluated, nor the assignments in them.
        before = set(self.defined)
        rest = [self.visit(value) for value in node.values[1:]]
        self.defined = before
        for value in rest:
            result = self._logical(operator, result, value)
        return ast.copy_location(result, node)

    def _logical(self, operator: str, left: ast.expr, right: ast.expr) -> ast.expr:
        if isinstance(right, ast.Name | ast.Constant):
            return call_flow(f"{operator}_", left, right)
        first = self.temporary()
        open_ = call_flow(f"{operator}_is_open", ast.NamedExpr(ast.Name(first, ast.Store()), left))
        return ast.IfExp(open_, call_flow(f"{operator}_", name_node(first), right), name_node(first))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        """`not`; other unary operators are methods of the value."""
        if self.plain or not isinstance(node.op, ast.Not):
            return self.generic_visit(node)  # type: ignore[return-value]
        return ast.copy_location(call_flow("not_", self.visit(node.operand)), node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """`a < b < c` is `a < b and b < c`, with b evaluated once."""
        if self.plain or len(node.ops) == 1:
            return self.generic_visit(node)  # type: ignore[return-value]
        left, result = self.visit(node.left), None
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.visit(comparator)
            middle = self.temporary()
            compared = ast.Compare(left, [op], [ast.NamedExpr(ast.Name(middle, ast.Store()), right)])
            result = compared if result is None else self._logical("and", result, compared)
            left = name_node(middle)
        assert result is not None
        return ast.copy_location(result, node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        """`a if c else b`: each side is evaluated for the lanes that take it."""
        if self.plain:
            return self.generic_visit(node)  # type: ignore[return-value]
        split = self.temporary()
        test = ast.NamedExpr(ast.Name(split, ast.Store()), call_flow("test", self.visit(node.test)))
        before = set(self.defined)
        self.depth += 1
        body = self.visit(node.body)
        self.defined = set(before)
        orelse = self.visit(node.orelse)
        self.defined = before
        self.depth -= 1
        first = ast.IfExp(name_node(split), body, ast.Constant(None))
        second = ast.IfExp(call_flow("other", name_node(split)), orelse, ast.Constant(None))
        return ast.copy_location(call_flow("chosen", test, first, second), node)

    def _plainly(self, node: Any) -> Any:
        """Other scopes (lambdas, comprehensions): only calls are rewritten."""
        self.plain += 1
        node = self.generic_visit(node)
        self.plain -= 1
        return node

    visit_Lambda = visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _plainly

    def temporary(self) -> str:
        """A new variable's name."""
        self.temporaries += 1
        return f"__{self.temporaries}"


def name_node(name: str) -> ast.Name:
    """The value of a variable."""
    return ast.Name(name, ast.Load())


def assign_node(name: str, value: ast.expr) -> ast.Assign:
    """An assignment to a variable."""
    return ast.Assign([ast.Name(name, ast.Store())], value)


def call_on(name: str, method: str, *args: ast.expr) -> ast.Call:
    """A call of a method of the object in a variable."""
    return ast.Call(ast.Attribute(name_node(name), method, ast.Load()), list(args), [])


def call_flow(method: str, *args: ast.expr) -> ast.Call:
    """A call of a method of the flow."""
    return call_on(FLOW, method, *args)
