"""Params of executions that an event starts: a trigger's templates, filled from the event."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from horae.model.events.filters import EVENT_NAMES, loops, refuse_costly, refuse_large
from horae.model.template import Expression, Renderer, compile_tree, parts_of, rendered_item


def check_params(params: dict[str, Any], field: str = "params") -> None:
    """Refuse templates that cannot be compiled, speak of what is not there, or cost too much."""
    for source, place in _expressions(params, field):
        refuse_costly(source, place)


def fill_params(params: dict[str, Any], scope: dict[str, Any]) -> bytes:
    """The item that a trigger's params become for an event. Raises TemplateError."""
    if not params:
        return b"{}"
    compiled, looping = _compiled(msgspec.json.encode(params))
    if looping:
        refuse_large(scope)
    return rendered_item(compiled, scope)


@lru_cache(maxsize=1024)
def _compiled(encoded: bytes) -> tuple[Any | Renderer, bool]:
    params = msgspec.json.decode(encoded)
    looping = any(loops(source) for source, _ in _expressions(params, "params"))
    return compile_tree(params, "params", EVENT_NAMES), looping


def _expressions(value: Any, field: str) -> Iterator[tuple[str, str]]:
    """Every expression with its place."""
    if isinstance(value, str):
        yield from ((p.source, field) for p in parts_of(value, field, EVENT_NAMES) if isinstance(p, Expression))
    elif isinstance(value, dict):
        for name, member in value.items():
            yield from _expressions(member, f"{field}.{name}")
    elif isinstance(value, list):
        for i, member in enumerate(value):
            yield from _expressions(member, f"{field}[{i}]")
