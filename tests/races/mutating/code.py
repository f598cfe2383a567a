"""Edits of marked Python: a guard's line ends with `# guard: name`, and an edit changes that line.

A mark refers to the code on its line. An edit finds its target there by the kind of code, and takes the last of that
kind on the line; so no edit depends on names of variables, on line breaks, or on the place of a function.
"""

import ast
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from horae.store.script import Among, Fetch, ForEach
from tests.marks import Mark, last_line, marks, spans
from tests.races.mutating.sql import without_conditions, without_locks

UNLOCKED = "__unlocked__"
Compound = ast.If | ast.While | ast.For | ast.With | ast.Try


class CodeEdit(Struct, frozen=True):
    """An edit of the code at a mark; `change` gets the function and the line."""

    guard: str
    change: Callable[[ast.FunctionDef, int], None]

    @property
    def mark(self) -> Mark:
        found = [mark for mark in marks("guard") if mark.text == self.guard]
        assert len(found) == 1, f"there are {len(found)} marks `# guard: {self.guard}` in the source; there must be one"
        assert found[0].function, f"the guard {self.guard} stands in no function"
        return found[0]


def drop_statement(guard: str) -> CodeEdit:
    """Remove the marked statement."""

    def change(function: ast.FunctionDef, line: int) -> None:
        _put(function, line, lambda statement: [ast.If(ast.Constant(False), [statement], [])])

    return CodeEdit(guard, change)


def swap(guard: str) -> CodeEdit:
    """Move the marked statement after the next one."""

    def change(function: ast.FunctionDef, line: int) -> None:
        body, at = _place(function, line)
        body[at], body[at + 1] = body[at + 1], body[at]

    return CodeEdit(guard, change)


def call_before(guard: str, method: str) -> CodeEdit:
    """Call another method before the marked call of a method."""

    def change(function: ast.FunctionDef, line: int) -> None:
        _put(function, line, lambda statement: [_calling(statement, method), statement])

    return CodeEdit(guard, change)


def never(guard: str) -> CodeEdit:
    """Make the marked condition false."""
    return CodeEdit(guard, lambda function, line: _decide(function, line, False))


def always(guard: str) -> CodeEdit:
    """Make the marked condition, or the returned value, true."""
    return CodeEdit(guard, lambda function, line: _decide(function, line, True))


def drop_condition(guard: str) -> CodeEdit:
    """Remove the last part of an `and`, an `or`, or else of a comprehension's `if` on the line."""

    def change(function: ast.FunctionDef, line: int) -> None:
        parts = [(part, node) for node in ast.walk(function) if isinstance(node, ast.BoolOp) for part in node.values]
        if found := _last(parts, line):
            part, node = found
            node.values.remove(part)
            if len(node.values) == 1:
                _replace(function, node, node.values[0])
            return
        loops = [node for node in ast.walk(function) if isinstance(node, ast.comprehension)]
        part, loop = _the(_last([(part, node) for node in loops for part in node.ifs], line), "condition", line)
        loop.ifs.remove(part)

    return CodeEdit(guard, change)


def drop_element(guard: str) -> CodeEdit:
    """Remove the last element of a list or tuple on the line."""

    def change(function: ast.FunctionDef, line: int) -> None:
        holders = [node for node in ast.walk(function) if isinstance(node, ast.List | ast.Tuple)]
        part, node = _the(_last([(part, node) for node in holders for part in node.elts], line), "element", line)
        node.elts.remove(part)

    return CodeEdit(guard, change)


def drop_operand(guard: str) -> CodeEdit:
    """Remove the right side of the last arithmetic on the line."""

    def change(function: ast.FunctionDef, line: int) -> None:
        sums = [node for node in ast.walk(function) if isinstance(node, ast.BinOp)]
        _, node = _the(_last([(node.right, node) for node in sums], line), "arithmetic", line)
        _replace(function, node, node.left)

    return CodeEdit(guard, change)


def drop_argument(guard: str, name: str) -> CodeEdit:
    """Remove a keyword argument."""

    def change(function: ast.FunctionDef, line: int) -> None:
        call, keyword = _argument(function, line, name)
        call.keywords.remove(keyword)

    return CodeEdit(guard, change)


def argument(guard: str, name: str, value: Any) -> CodeEdit:
    """Replace the value of a keyword argument by a constant."""

    def change(function: ast.FunctionDef, line: int) -> None:
        _argument(function, line, name)[1].value = ast.Constant(value)

    return CodeEdit(guard, change)


def constant(guard: str, value: Any) -> CodeEdit:
    """Replace the value that the marked statement assigns by a constant."""

    def change(function: ast.FunctionDef, line: int) -> None:
        body, at = _place(function, line)
        body[at].value = ast.Constant(value)  # type: ignore[attr-defined]

    return CodeEdit(guard, change)


def read_as(guard: str, attribute: str, value: Any) -> CodeEdit:
    """Replace an attribute that the marked statement reads by a constant."""

    def change(function: ast.FunctionDef, line: int) -> None:
        statement = _statement(function, line)
        reads = [n for n in ast.walk(statement) if isinstance(n, ast.Attribute) and n.attr == attribute]
        assert reads, f"line {line} reads no {attribute}"
        for read in reads:
            _replace(statement, read, ast.Constant(value))

    return CodeEdit(guard, change)


def drop_sql(guard: str, condition: str) -> CodeEdit:
    """Remove a condition from a piece of SQL in the marked statement."""

    def change(function: ast.FunctionDef, line: int) -> None:
        pieces = [n for n in ast.walk(_statement(function, line)) if isinstance(n, ast.Constant)]
        (piece,) = (n for n in pieces if isinstance(n.value, str) and " WHERE " in n.value)
        piece.value = without_conditions(str(piece.value), condition)

    return CodeEdit(guard, change)


def unsorted(guard: str) -> CodeEdit:
    """Leave the rows that the marked statement sorts in their order."""

    def change(function: ast.FunctionDef, line: int) -> None:
        for call in _calls(_statement(function, line), "sorted"):
            call.func, call.args, call.keywords = ast.Name("list", ast.Load()), call.args[:1], []

    return CodeEdit(guard, change)


def one_by_one(guard: str) -> CodeEdit:
    """Replace `rows = yield Among(statement, ids)` by one statement per id, in the given order."""

    def change(function: ast.FunctionDef, line: int) -> None:
        def loop(statement: Any) -> list[ast.stmt]:
            asked = statement.value.value
            ids = asked.args[1]
            while isinstance(ids, ast.Call):
                ids = ids.args[0]
            asked.args[1] = ast.List([ast.Name("__id__", ast.Load())], ast.Load())
            named = ast.Call(ast.parse("dict.fromkeys", mode="eval").body, [ids], [])
            add = ast.AugAssign(statement.targets[0], ast.Add(), statement.value)
            empty = ast.Assign(statement.targets, ast.List([], ast.Load()))
            return [empty, ast.For(ast.Name("__id__", ast.Store()), named, [add], [])]

        _put(function, line, loop)

    return CodeEdit(guard, change)


def unlocked(guard: str, only: str = "") -> CodeEdit:
    """Remove the row locks from the statements of the marked statement: from all, or only from the one of this name."""

    def change(function: ast.FunctionDef, line: int) -> None:
        yields = [
            node for node in ast.walk(function)
            if isinstance(node, ast.Yield | ast.YieldFrom) and spans(node, line)
        ]  # fmt: skip
        assert yields, f"line {line} runs nothing"
        for node in yields:
            given: Any = [node.value, ast.Constant(only)]
            node.value = ast.Call(ast.Name(UNLOCKED, ast.Load()), given, [])

    return CodeEdit(guard, change)


def without_row_locks(what: Any, only: str) -> Any:
    """Return an operation, or a whole script, without the row locks of its statements; `unlocked` code calls it."""
    if isinstance(what, Fetch | ForEach | Among):
        return _without_row_locks(what, only)
    return _script(what, only)


def _script(script: Any, only: str) -> Iterator[Any]:
    operation = next(script)
    while True:
        try:
            operation = script.send((yield without_row_locks(operation, only)))
        except StopIteration as end:
            return end.value


def _without_row_locks(operation: Any, only: str) -> Any:
    statement = operation.statement
    if only not in ("", statement.name):
        return operation
    return replace(operation, statement=replace(statement, text=without_locks(statement.text)))


def _decide(function: ast.FunctionDef, line: int, verdict: bool) -> None:
    """Replace the condition of an `if`, a conditional expression or a comprehension, or a returned value, on a line."""
    statement = _statement(function, line)
    if isinstance(statement, ast.If | ast.While):
        statement.test = _settled(statement.test, verdict)
        return
    choices = [node for node in ast.walk(statement) if isinstance(node, ast.IfExp) and _ends(node, line)]
    if choices:
        choices[0].test = _settled(choices[0].test, verdict)
        return
    loops = [node for node in ast.walk(statement) if isinstance(node, ast.comprehension) and node.ifs]
    loops = [node for node in loops if spans(node.ifs[-1], line)]
    if loops:
        loops[0].ifs = [_settled(loops[0].ifs[-1], verdict)]
        return
    assert isinstance(statement, ast.Return), f"line {line} decides nothing"
    assert statement.value is not None
    statement.value = _settled(statement.value, verdict)


def _settled(test: ast.expr, verdict: bool) -> ast.expr:
    """Return a condition with a fixed result; its `yield` stays in the code, so that a script remains a generator."""
    return ast.BoolOp(ast.Or() if verdict else ast.And(), [ast.Constant(verdict), test])


def _place(function: ast.AST, line: int) -> tuple[list[ast.stmt], int]:
    """Return the innermost statement on a line: its list, and its index there."""
    found: tuple[list[ast.stmt], int] | None = None
    for node in ast.walk(function):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list):
                for at, statement in enumerate(body):
                    if spans(statement, line):
                        found = body, at
    assert found is not None, f"there is no statement on line {line}"
    return found


def _statement(function: ast.AST, line: int) -> ast.stmt:
    body, at = _place(function, line)
    return body[at]


def _put(function: ast.AST, line: int, make: Callable[[Any], list[ast.stmt]]) -> None:
    body, at = _place(function, line)
    assert not isinstance(body[at], Compound), f"line {line} is more than one statement"
    body[at : at + 1] = make(body[at])


def _calling(statement: Any, method: str) -> ast.stmt:
    """Return the same statement with another method of the same object."""
    made = ast.parse(ast.unparse(statement)).body[0]
    other = next(node for node in ast.walk(made) if isinstance(node, ast.Call))
    assert isinstance(other.func, ast.Attribute), f"{ast.unparse(statement)} calls no method"
    other.func.attr = method
    return made


def _calls(node: ast.AST, name: str) -> list[ast.Call]:
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
    found = [call for call in calls if call.func.id == name]  # type: ignore[attr-defined]
    assert found, f"{name} is not called"
    return found


def _argument(function: ast.AST, line: int, name: str) -> tuple[ast.Call, ast.keyword]:
    calls = [node for node in ast.walk(_statement(function, line)) if isinstance(node, ast.Call)]
    found = [(call, keyword) for call in calls for keyword in call.keywords if keyword.arg == name]
    assert len(found) == 1, f"line {line} has {len(found)} arguments {name}"
    return found[0]


def _ends(node: Any, line: int) -> bool:
    return bool(node.lineno <= line == last_line(node))


def _last(parts: list[tuple[ast.expr, Any]], line: int) -> tuple[ast.expr, Any] | None:
    """Return the node that ends last on a line; of several that end together, the innermost."""
    ending = [pair for pair in parts if last_line(pair[0]) == line]
    ends = lambda part: (part.end_lineno, part.end_col_offset, part.lineno, part.col_offset)  # noqa: E731
    return max(ending, key=lambda pair: ends(pair[0]), default=None)


def _the(found: tuple[ast.expr, Any] | None, what: str, line: int) -> tuple[ast.expr, Any]:
    assert found is not None, f"there is no {what} on line {line}"
    return found


def _replace(root: ast.AST, old: ast.AST, new: ast.AST) -> None:
    for node in ast.walk(root):
        for field, value in ast.iter_fields(node):
            if value is old:
                setattr(node, field, new)
            elif isinstance(value, list) and any(item is old for item in value):
                value[:] = [new if item is old else item for item in value]
