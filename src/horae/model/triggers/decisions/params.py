"""Params that a trigger gives to its executions. They override those of the job; templates may refer to the fire.

`${fire.at}` is the nominal instant, `${fire.previous}` the one before it, `${fire.trigger}` the trigger's name;
`${interval.start}` and `${interval.end}` bound the data interval of the fire; `${params.x}` is a param of the job.
Instants are RFC 3339 strings in UTC; `timestamp()` parses them: `${timestamp(fire.at).getFullYear()}`.
"""

from functools import lru_cache
from typing import Any

import msgspec

from horae.env import Instant
from horae.model.base.instant import format_instant
from horae.model.expressions.meter import SMALL_STEPS, limited_budget
from horae.model.expressions.template import Names, Renderer, compile_tree, rendered_item

FIRE_NAMES: Names = frozenset({"params", "fire", "interval"})


def check_fire_params(params: dict[str, Any], field: str) -> None:
    """Refuse templates that cannot be compiled or refer to values that a fire does not have."""
    compile_tree(params, field, FIRE_NAMES)


def fire_scope(params: dict[str, Any], trigger: str, at: Instant, since: Instant | None) -> dict[str, Any]:
    """Return the variables that templates can use at a fire: `params` of the job, the fire, and its data interval.

    `since` is the nominal fire before `at`, or None if there is none.
    """
    start, end = None if since is None else format_instant(since), format_instant(at)
    return {
        "params": params,
        "fire": {"at": end, "previous": start, "trigger": trigger},
        "interval": {"start": start, "end": end},
    }


def fill_fire_params(params: dict[str, Any], scope: dict[str, Any]) -> bytes:
    """Render a trigger's params for a fire and return them as JSON. Raises TemplateError."""
    if not params:
        return b"{}"
    encoded = msgspec.json.encode(params)
    if b"${" not in encoded:
        return encoded
    with limited_budget(SMALL_STEPS):
        return rendered_item(_compiled(encoded), scope)


@lru_cache(maxsize=1024)
def _compiled(encoded: bytes) -> Any | Renderer:
    return compile_tree(msgspec.json.decode(encoded), "params", FIRE_NAMES)
