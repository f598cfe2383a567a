"""Branch coverage of single conditions: all conditions in a function, and the values each had during a scene."""

import ast
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from tests.marks import last_line, rewritten, tree

Place = tuple[str, int]  # a module and a line
Noted = dict[Place, set[tuple[int, bool]]]  # place -> (column, value) of each evaluated condition
_NOTE = "__note__"


def decisions(function: ast.AST) -> Iterator[ast.expr]:
    """Return the conditions of a function. The parts of an `and`, an `or` and a `not` are separate conditions."""
    for node in ast.walk(function):
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            yield from _parts(node.test)
        elif isinstance(node, ast.comprehension):
            for test in node.ifs:
                yield from _parts(test)


def _parts(test: ast.expr) -> Iterator[ast.expr]:
    if isinstance(test, ast.BoolOp):
        for part in test.values:
            yield from _parts(part)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _parts(test.operand)
    else:
        yield test


def of_function(module: str, function: str) -> list[ast.expr]:
    """Return the conditions of a function, given its dotted name within a module."""
    node: Any = tree(module)
    for part in function.split("."):
        node = next(inner for inner in node.body if getattr(inner, "name", None) == part)
    return list(decisions(node))


@contextmanager
def noted(functions: set[tuple[str, str]]) -> Iterator[Noted]:
    """Record the values of conditions in these functions until the end of the block."""
    seen: Noted = {}

    def note(module: str, line: int, column: int, value: Any) -> Any:
        seen.setdefault((module, line), set()).add((column, bool(value)))
        return value

    with ExitStack() as stack:
        for module, function in functions:
            stack.enter_context(rewritten(module, function, [partial(_note, module)], **{_NOTE: note}))
        yield seen


def _note(module: str, function: ast.FunctionDef) -> None:
    """Instrument a function so that it records the value of each of its conditions."""
    told = {id(test): test for test in decisions(function)}

    class Telling(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> Any:
            self.generic_visit(node)
            if id(node) not in told:
                return node
            place = [ast.Constant(module), ast.Constant(last_line(node)), ast.Constant(node.col_offset)]  # type: ignore[attr-defined]
            return ast.Call(ast.Name(_NOTE, ast.Load()), [*place, node], [])  # type: ignore[list-item]

    Telling().visit(function)
