"""What expressions ask of an event or a signal: filters. Compiled once, and computed within a small budget.

A filter runs on the server, in the transaction that takes the event, for each event and each trigger that listens.
"""

from functools import lru_cache
from typing import Any

from horae.errors import BadInput
from horae.model.expressions.meter import ASKED_STEPS, MOST_TEXT, within
from horae.model.expressions.template import Expression, Names, TemplateError, parts_of
from horae.model.expressions.values import kind

EVENT_NAMES: Names = frozenset({"event"})
MOST_TOLD = 300  # of why it could not be computed
_FILTER = 'A filter is one expression: "${{{}.payload.size > 10}}".'


class Filter:
    """A compiled filter."""

    def __init__(self, expression: Expression) -> None:
        self._expression = expression

    def refusal(self, scope: dict[str, Any]) -> str | None:
        """Why an event does not pass, or None when it does; what cannot be computed does not pass, and says why."""
        try:
            with within(ASKED_STEPS) as meter:
                verdict = self._expression.value(scope, meter)
        except TemplateError as error:
            return f"the filter could not be computed: {str(error)[:MOST_TOLD]}"
        if verdict is True:
            return None
        if verdict is False:
            return "the filter is false"
        told = kind(verdict) if isinstance(verdict, list | dict) else repr(str(verdict)[:60])
        return f"the filter gave {told}, not true or false"


@lru_cache(maxsize=512)
def compile_filter(text: str, field: str = "filter", names: Names = EVENT_NAMES) -> Filter:
    """Compile a filter, which may speak of these names, or refuse it with what is wrong."""
    if len(text) > MOST_TEXT:
        raise BadInput(f"{field} has {len(text)} characters.", f"At most {MOST_TEXT} are allowed.", field=field)
    parts = parts_of(text.strip(), field, names)
    if len(parts) != 1 or not isinstance(parts[0], Expression):
        example = _FILTER.format(next(iter(names)))
        raise BadInput(f"{text[:60]!r} is not a filter.", example, field=field)
    return Filter(parts[0])
