"""What expressions ask of an event or a signal: filters, and params made from it. Compiled once, at a bounded cost.

An expression runs on the server, in the transaction that takes the event. CEL always ends, but its macros copy what
they look at: so they are few, do not nest, and look only at events of so many members.
"""

import re
from functools import lru_cache
from typing import Any

from horae.errors import BadInput
from horae.model.template import Expression, Names, TemplateError, parts_of

EVENT_NAMES: Names = frozenset({"event"})
MOST_TEXT = 4096
MOST_TOLD = 300  # of why it could not be computed
MOST_MACROS = 8
MOST_MEMBERS = 1000  # of an event that a macro looks at
_MACRO = re.compile(r"\.\s*(?:map|filter|all|exists|exists_one)\s*\(")
_QUOTED = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'")
_FILTER = 'A filter is one expression: "${{{}.payload.size > 10}}".'


class Filter:
    """A compiled filter."""

    def __init__(self, expression: Expression) -> None:
        self._expression = expression
        self._loops = loops(expression.source)

    def refusal(self, scope: dict[str, Any]) -> str | None:
        """Why an event does not pass, or None when it does; what cannot be computed does not pass, and says why."""
        try:
            if self._loops:
                refuse_large(scope)
            verdict = self._expression.value(scope)
        except TemplateError as error:
            return f"the filter could not be computed: {str(error)[:MOST_TOLD]}"
        if verdict is True:
            return None
        return (
            "the filter is false" if verdict is False else f"the filter gave {str(verdict)[:60]!r}, not true or false"
        )


@lru_cache(maxsize=4096)
def compile_filter(text: str, field: str = "filter", names: Names = EVENT_NAMES) -> Filter:
    """Compile a filter, which may speak of these names, or refuse it with what is wrong."""
    if len(text) > MOST_TEXT:
        raise BadInput(f"{field} has {len(text)} characters.", f"At most {MOST_TEXT} are allowed.", field=field)
    parts = parts_of(text.strip(), field, names)
    if len(parts) != 1 or not isinstance(parts[0], Expression):
        example = _FILTER.format(next(iter(names)))
        raise BadInput(f"{text[:60]!r} is not a filter.", example, field=field)
    refuse_costly(parts[0].source, field)
    return Filter(parts[0])


def loops(source: str) -> bool:
    """Whether an expression goes through lists."""
    return bool(_MACRO.search(_bare(source)))


def refuse_costly(source: str, field: str) -> None:
    """Refuse macros inside macros, and too many of them."""
    bare = _bare(source)
    starts = [found.end() for found in _MACRO.finditer(bare)]
    if len(starts) > MOST_MACROS:
        remedy = f"At most {MOST_MACROS} are allowed; leave the rest to the job."
        raise BadInput(f"{field} goes through lists {len(starts)} times.", remedy, field=field)
    if any(_MACRO.search(bare[start : _closing(bare, start)]) for start in starts):
        remedy = "Ask about one list at a time, or leave it to the job."
        raise BadInput(f"{field} goes through a list inside of another.", remedy, field=field)


def refuse_large(scope: dict[str, Any]) -> None:
    """An event with very many members is not gone through. Raises TemplateError."""
    level, count = list(scope.values()), 0
    while level:
        insides = [part.values() if isinstance(part, dict) else part for part in level if isinstance(part, dict | list)]
        level = [part for inside in insides for part in inside]
        count += len(level)
        if count > MOST_MEMBERS:
            raise TemplateError(f"the event has over {MOST_MEMBERS} members, too many to go through lists of")


def _bare(source: str) -> str:
    """An expression without what stands in quotes."""
    return _QUOTED.sub('""', source)


def _closing(text: str, at: int) -> int:
    depth = 1
    while at < len(text) and depth:
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    return at
