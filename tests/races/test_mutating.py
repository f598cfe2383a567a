"""An edit finds its target in any formatting of the code around it."""

import ast
import textwrap
from collections.abc import Callable

import pytest

from tests.marks import marked_line
from tests.races.mutating import code, sql
from tests.races.mutating.code import CodeEdit


def changed(edit: CodeEdit, source: str) -> str:
    """Return a function after an edit at its only mark."""
    text = textwrap.dedent(source).strip()
    lines = text.split("\n")
    line = marked_line(lines, next(number for number, line in enumerate(lines, 1) if "# guard" in line))
    module = ast.parse(text)
    function = module.body[0]
    assert isinstance(function, ast.FunctionDef)
    edit.change(function, line)
    return ast.unparse(ast.fix_missing_locations(module)).partition("\n")[2].strip()


@pytest.mark.parametrize(
    ("edit", "source", "left"),
    [
        (code.drop_condition, "if a is None or not a.live:  # guard\n        pass", "if a is None:\n        pass"),
        (code.drop_condition, "return (\n        a\n        and b  # guard\n        and c\n    )", "return a and c"),
        (code.drop_condition, "return a and (b or c(d))  # guard", "return a and b"),
        (code.drop_condition, "return [x for x in y if x.live]  # guard", "return [x for x in y]"),
        (code.drop_condition, "return a and not (\n        yield b\n    )  # guard", "return a"),
        (code.never, "x = (\n        1 if a else 2\n    )  # guard", "x = 1 if False and a else 2"),
        (code.drop_element, "return [\n        a,\n        b(c),  # guard\n        d,\n    ]", "return [a, d]"),
        (code.drop_operand, "return f(a=b + 1)  # guard", "return f(a=b)"),
        (code.drop_statement, "yield Lock(a)  # guard", "if False:\n        yield Lock(a)"),
        (code.never, "return 1 if a else 2  # guard", "return 1 if False and a else 2"),
        (code.always, "return a == b  # guard", "return True or a == b"),
        (code.unsorted, "return sorted(a, key=b)  # guard", "return list(a)"),
        (code.swap, "a()  # guard\n    b()", "b()\n    a()"),
    ],
)
def test_an_edit_finds_the_code_at_its_mark(edit: Callable[[str], CodeEdit], source: str, left: str):
    assert changed(edit("any"), f"def f():\n    {source}") == left


@pytest.mark.parametrize(
    ("edit", "text", "left"),
    [
        (
            sql.drop("s", "state"),
            "SELECT 1 FROM a x WHERE x.id = $1 AND x.state = 'y'",
            "SELECT 1 FROM a x WHERE x.id = $1 AND true",
        ),
        (
            sql.drop("s", "state"),
            "SELECT state FROM a WHERE state IN ('x', 'y') FOR UPDATE",
            "SELECT state FROM a WHERE true FOR UPDATE",
        ),
        (
            sql.drop("s", "b.at <="),
            "SELECT 1 FROM a JOIN b c ON c.at >= 1 AND c.at <= 2",
            "SELECT 1 FROM a JOIN b c ON c.at >= 1 AND true",
        ),
        (
            sql.drop("s", "x"),
            "SELECT 1 FROM a WHERE y BETWEEN 1 AND 2 AND (x IS NULL OR x = 1)",
            "SELECT 1 FROM a WHERE y BETWEEN 1 AND 2 AND true",
        ),
        (sql.drop_exists("s", "b"), "SELECT NOT EXISTS (SELECT 1 FROM b WHERE (1 = 1)) FROM a", "SELECT true FROM a"),
        (sql.unlock("s"), "SELECT 1 FROM a FOR UPDATE OF a SKIP LOCKED", "SELECT 1 FROM a"),
        (
            sql.unlock("s", "b"),
            "SELECT (SELECT 1 FROM b c FOR SHARE OF c) FROM a FOR UPDATE",
            "SELECT (SELECT 1 FROM b c) FROM a FOR UPDATE",
        ),
        (sql.wait("s"), "SELECT 1 FROM a FOR UPDATE SKIP LOCKED", "SELECT 1 FROM a FOR UPDATE"),
        (sql.unordered("s"), "SELECT 1 FROM a ORDER BY a.id FOR UPDATE", "SELECT 1 FROM a FOR UPDATE"),
        (sql.drop_setting("s", "b"), "UPDATE a SET b = $1, c = $2 WHERE d = 1", "UPDATE a SET c = $2 WHERE d = 1"),
    ],
)
def test_an_edit_finds_its_part_of_a_statement(edit: sql.TextEdit, text: str, left: str):
    assert edit.change(text) == left


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (sql.drop("s", "state"), "SELECT state FROM a WHERE id = 1"),
        (sql.unlock("s"), "SELECT 1 FROM a"),
        (sql.wait("s"), "SELECT 1 FROM a FOR UPDATE"),
        (sql.unlock("s"), "SELECT (SELECT 1 FROM b FOR SHARE) FROM a FOR UPDATE"),
        (sql.must_be_new("s"), "INSERT INTO a VALUES (1)"),
    ],
)
def test_an_edit_that_finds_nothing_or_too_much_is_an_error(edit: sql.TextEdit, text: str):
    with pytest.raises(AssertionError):
        edit.change(text)
