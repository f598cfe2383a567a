"""Values that are known only while a workflow runs, written as Python expressions.

rows = extract(day)["rows"]          # ${steps.extract.result.rows}
load.step(when=rows > 0)(rows)       # when: ${steps.extract.result.rows > 0}
f"{rows} rows"                       # "${steps.extract.result.rows} rows"
"""

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORDS = frozenset({"in", "true", "false", "null", "as", "break", "const", "continue", "else", "for", "function", "if"})


class WorkflowExpression:
    """A part of the params, or of a step's result; each operation on it extends the expression."""

    def __init__(self, source: str) -> None:
        self._source = source

    def __getitem__(self, place: "str | int | WorkflowExpression") -> "WorkflowExpression":
        if isinstance(place, str) and _NAME.fullmatch(place) and place not in _WORDS:
            return WorkflowExpression(f"{self._source}.{place}")
        return WorkflowExpression(f"{self._source}[{cel(place)}]")

    def size(self) -> "WorkflowExpression":
        """Return the number of elements or characters, as an expression.

        Python's `len` cannot be used, because it has to return a number at once.
        """
        return WorkflowExpression(f"size({self._source})")

    def contains(self, part: Any) -> "WorkflowExpression":
        """Return the condition that this text contains a part, or that this list contains an element."""
        return WorkflowExpression(f"({cel(part)} in {self._source})")

    def __eq__(self, other: object) -> "WorkflowExpression":  # type: ignore[override]
        return self._with("==", other)

    def __ne__(self, other: object) -> "WorkflowExpression":  # type: ignore[override]
        return self._with("!=", other)

    def __lt__(self, other: object) -> "WorkflowExpression":
        return self._with("<", other)

    def __le__(self, other: object) -> "WorkflowExpression":
        return self._with("<=", other)

    def __gt__(self, other: object) -> "WorkflowExpression":
        return self._with(">", other)

    def __ge__(self, other: object) -> "WorkflowExpression":
        return self._with(">=", other)

    def __add__(self, other: object) -> "WorkflowExpression":
        return self._with("+", other)

    def __radd__(self, other: object) -> "WorkflowExpression":
        return WorkflowExpression(f"({cel(other)} + {self._source})")

    def __sub__(self, other: object) -> "WorkflowExpression":
        return self._with("-", other)

    def __mul__(self, other: object) -> "WorkflowExpression":
        return self._with("*", other)

    def __truediv__(self, other: object) -> "WorkflowExpression":
        return self._with("/", other)

    def __mod__(self, other: object) -> "WorkflowExpression":
        return self._with("%", other)

    def __and__(self, other: object) -> "WorkflowExpression":
        return self._with("&&", other)

    def __or__(self, other: object) -> "WorkflowExpression":
        return self._with("||", other)

    def __invert__(self) -> "WorkflowExpression":
        return WorkflowExpression(f"!{self._source}")

    def __hash__(self) -> int:
        return hash(self._source)

    def __str__(self) -> str:
        return f"${{{_bare(self._source)}}}"

    def __repr__(self) -> str:
        return f"<{self}>"

    def __format__(self, spec: str) -> str:
        if spec:
            raise TypeError(f"{self!r} has no value yet that could be formatted as {spec!r}")
        return str(self)

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"{self!r} is known only when the workflow runs: write .step(when=...) instead of `if`,"
            " and `&`, `|` and `~` instead of `and`, `or` and `not`"
        )

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(f"{self!r} is known only when the workflow runs: write job.map(...) instead of a loop")

    def __contains__(self, part: object) -> NoReturn:
        raise TypeError(f"{self!r} is known only when the workflow runs: write .contains(...) instead of `in`")

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(f'{self!r} has no attribute {name!r}: write ["{name}"] for a part of the value')

    def __len__(self) -> NoReturn:
        raise TypeError(f"{self!r} is known only when the workflow runs: write .size() instead of len()")

    def _with(self, operator: str, other: object) -> "WorkflowExpression":
        return WorkflowExpression(f"({self._source} {operator} {cel(other)})")


def cel(value: object) -> str:
    """Return a value in the syntax of workflow expressions."""
    if isinstance(value, WorkflowExpression):
        return value._source
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        raise TypeError(f"{value!r} cannot be compared in a workflow; use texts, numbers, lists and objects") from None


def rendered(value: Any) -> Any:
    """Return a value in the form of a definition: expressions become texts such as "${...}", at any depth."""
    if isinstance(value, WorkflowExpression):
        return str(value)
    if isinstance(value, dict):
        return {str(name): rendered(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [rendered(part) for part in value]
    return value


def _bare(source: str) -> str:
    """Return an expression without its outer brackets, if they enclose all of it."""
    if not source.startswith("("):
        return source
    depth, quoted = 0, False
    for at, char in enumerate(source):
        if char == '"' and source[at - 1] != "\\":
            quoted = not quoted
        if quoted:
            continue
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return source[1:-1] if at == len(source) - 1 else source
    return source
