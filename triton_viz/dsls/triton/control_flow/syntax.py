"""Analysis of a kernel's syntax: where lanes may leave, and which names are bound and read."""

import ast
from collections.abc import Iterable, Iterator

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_LOOPS = (ast.For, ast.While, ast.AsyncFor)
ENDS = (ast.Return, ast.Break, ast.Continue, ast.Raise)
"""Statements after which the rest of a block does not run."""


def within(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes below a node in the same scope."""
    if not isinstance(node, _SCOPES):
        for child in ast.iter_child_nodes(node):
            yield child
            yield from within(child)


def may_leave(node: ast.AST) -> bool:
    """Whether a lane may leave by a return, or by a break or continue of an enclosing loop."""
    if isinstance(node, ast.Return | ast.Break | ast.Continue):
        return True
    if isinstance(node, _SCOPES):
        return False
    if isinstance(node, _LOOPS):
        returns = any(isinstance(child, ast.Return) for s in node.body for child in (s, *within(s)))
        return returns or any(may_leave(s) for s in node.orelse)
    return any(may_leave(child) for child in ast.iter_child_nodes(node))


def ends(statements: list[ast.stmt]) -> bool:
    """Whether no statement after these is reached."""
    return bool(statements) and isinstance(statements[-1], ENDS)


def bound(target: ast.AST) -> set[str]:
    """The names that a target or pattern binds."""
    names = {n.id for n in ast.walk(target) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    return names | {n.name for n in ast.walk(target) if isinstance(n, ast.MatchAs | ast.MatchStar) and n.name}


def seen_after(function: ast.FunctionDef) -> set[int]:
    """The `for` loops (by id) whose variable is read outside of them."""
    loops = [n for n in ast.walk(function) if isinstance(n, ast.For) and isinstance(n.target, ast.Name)]
    return {
        id(loop)
        for loop in loops
        if isinstance(loop.target, ast.Name)
        and reads(loop.target.id, [function]) != reads(loop.target.id, loop.body)
    }


def reads(name: str, nodes: Iterable[ast.AST]) -> int:
    """How often a name is read."""
    every = [n for node in nodes for n in ast.walk(node)]
    updated = [n.target for n in every if isinstance(n, ast.AugAssign)]
    loaded = [n for n in every if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    return sum(isinstance(n, ast.Name) and n.id == name for n in (*updated, *loaded))
