"""Params that a trigger gives to an execution started by an event: templates, rendered with the values of the event."""

from functools import lru_cache
from typing import Any

import msgspec

from horae.model.expressions.meter import SMALL_STEPS, limited_budget
from horae.model.expressions.template import Renderer, compile_tree, rendered_item
from horae.model.triggers.events.filters import EVENT_NAMES


def check_params(params: dict[str, Any], field: str = "params") -> None:
    """Refuse templates that cannot be compiled or refer to anything but `event`."""
    compile_tree(params, field, EVENT_NAMES)


def fill_params(params: dict[str, Any], scope: dict[str, Any]) -> bytes:
    """Render a trigger's params for an event and return them as JSON. Raises TemplateError."""
    if not params:
        return b"{}"
    with limited_budget(SMALL_STEPS):
        return rendered_item(_compiled(msgspec.json.encode(params)), scope)


@lru_cache(maxsize=1024)
def _compiled(encoded: bytes) -> Any | Renderer:
    return compile_tree(msgspec.json.decode(encoded), "params", EVENT_NAMES)
