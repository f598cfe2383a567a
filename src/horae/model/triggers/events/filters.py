"""Filters and params of triggers for events: expressions over an event or a signal, compiled once.

They are evaluated within a small budget of steps. A filter runs on the server, in the transaction that accepts the
event, for each event and each listening trigger.
"""

from functools import lru_cache
from typing import Any

import msgspec

from horae.errors import BadInput
from horae.model.expressions.meter import MOST_TEXT, SMALL_STEPS, limited_budget
from horae.model.expressions.template import (
    Expression,
    Names,
    Renderer,
    TemplateError,
    compile_tree,
    parts_of,
    rendered_item,
)
from horae.model.expressions.values import kind

EVENT_NAMES: Names = frozenset({"event"})
MOST_REASON = 300  # characters of an evaluation error that are shown
_FILTER = 'A filter is one expression: "${{{}.payload.size > 10}}".'


class Filter:
    """A compiled filter."""

    def __init__(self, expression: Expression) -> None:
        self._expression = expression

    def refusal(self, scope: dict[str, Any]) -> str | None:
        """Return the reason why an event does not pass, or None if it passes.

        If the evaluation raises an error, the event does not pass.
        """
        try:
            with limited_budget(SMALL_STEPS) as meter:
                verdict = self._expression.value(scope, meter)
        except TemplateError as error:
            return f"the filter could not be computed: {str(error)[:MOST_REASON]}"
        if verdict is True:
            return None
        if verdict is False:
            return "the filter is false"
        shown = kind(verdict) if isinstance(verdict, list | dict) else repr(str(verdict)[:60])
        return f"the filter gave {shown}, not true or false"


@lru_cache(maxsize=512)
def compile_filter(text: str, field: str = "filter", names: Names = EVENT_NAMES) -> Filter:
    """Compile a filter that may use the variables `names`, or refuse it with the reason."""
    if len(text) > MOST_TEXT:
        raise BadInput(f"{field} has {len(text)} characters.", f"At most {MOST_TEXT} are allowed.", field=field)
    parts = parts_of(text.strip(), field, names)
    if len(parts) != 1 or not isinstance(parts[0], Expression):
        example = _FILTER.format(next(iter(names)))
        raise BadInput(f"{text[:60]!r} is not a filter.", example, field=field)
    return Filter(parts[0])


def check_params(params: dict[str, Any], field: str = "params") -> None:
    """Refuse templates that cannot be compiled or refer to anything but `event`."""
    compile_tree(params, field, EVENT_NAMES)


def fill_params(params: dict[str, Any], scope: dict[str, Any]) -> bytes:
    """Render the params that a trigger gives to an execution; return them as JSON. Raises TemplateError."""
    if not params:
        return b"{}"
    with limited_budget(SMALL_STEPS):
        return rendered_item(_compiled(msgspec.json.encode(params)), scope)


@lru_cache(maxsize=1024)
def _compiled(encoded: bytes) -> Any | Renderer:
    return compile_tree(msgspec.json.decode(encoded), "params", EVENT_NAMES)
