"""`timeout` and `timeouts`: bounds on the time in the queue, before the start, of an attempt, and of all attempts."""

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Struct

from horae.env import Micros
from horae.errors import BadInput
from horae.model.base.duration import DAY, format_duration, parse_duration
from horae.model.definitions.timeouts import Timeouts
from horae.model.fields.kinds import Custom, SpanText
from horae.model.fields.table import Field, Object
from horae.model.fields.values import a_duration

_ACCEPTED = 'Write {"queue": "10m", "start": "30s", "run": "5m", "heartbeat": "1m", "total": "1h"}, or some of them.'


def _read_bound(value: Any, at: str) -> Micros:
    if parse_duration(value, field=at) == 0:
        raise BadInput(f"{at} cannot be 0.", "Remove it to have no timeout.", field=at)
    return a_duration(value, at, 1000, 365 * DAY)


BOUND = Custom(_read_bound, SpanText, "Span", format_duration, out=str)


class TimeoutFields(Struct, frozen=True, kw_only=True):
    """The fields of `timeouts`; `run` is stored as `timeout` of the job and `total` in its retry policy."""

    queue: Annotated[
        Micros | None,
        Field(BOUND, "How long it may wait in the queue.", example="10m", flag="queue-timeout", metavar="SPAN"),
    ] = None
    start: Annotated[
        Micros | None,
        Field(BOUND, "How long a worker may hold it without starting it.", flag="start-timeout", metavar="SPAN"),
    ] = None
    run: Annotated[Micros | None, Field(BOUND, "How long an attempt may take.", flag="")] = None
    heartbeat: Annotated[
        Micros | None, Field(BOUND, "How long an attempt may be silent.", flag="heartbeat-timeout", metavar="SPAN")
    ] = None
    total: Annotated[
        Micros | None,
        Field(BOUND, "How long it may take, all attempts together.", flag="total-timeout", metavar="SPAN"),
    ] = None


BOUNDS = Object(TimeoutFields, _ACCEPTED)


def with_run(given: dict[str, Any]) -> dict[str, Any]:
    """Move `timeouts.run` to `timeout`, where it is stored; if both are given they must be equal."""
    timeouts = given.get("timeouts")
    if not isinstance(timeouts, dict) or "run" not in timeouts:
        return given
    run, rest = timeouts["run"], {name: span for name, span in timeouts.items() if name != "run"}
    if given.get("timeout") not in (None, run):
        detail = f"timeout is {given['timeout']} and timeouts.run is {run}."
        raise BadInput(detail, "Both mean the same: give one of them.", field="timeouts.run")
    return {**given, "timeout": run, "timeouts": rest}


def read_timeouts(given: Mapping[str, Any]) -> tuple[Micros | None, Timeouts, Micros | None]:
    """Return the run timeout, the other timeouts, and the bound on all attempts together."""
    timeouts = given.get("timeouts")
    bounds: TimeoutFields = BOUNDS.read({} if timeouts is None else timeouts, "timeouts")
    run = None if given.get("timeout") is None else _read_bound(given["timeout"], "timeout")
    total = bounds.total
    if run is not None and total is not None and total < run:
        detail = "timeouts.total is shorter than timeout, the time for one attempt."
        raise BadInput(detail, "The total bounds all attempts together: give a longer total.", field="timeouts.total")
    if bounds.heartbeat is not None and given.get("http") is not None:
        detail = "An HTTP request sends no heartbeats while it runs."
        raise BadInput(detail, "Remove `timeouts.heartbeat`; `timeout` bounds the request.", field="timeouts.heartbeat")
    return run, Timeouts(queue=bounds.queue, start=bounds.start, heartbeat=bounds.heartbeat), total


def render_timeouts(timeouts: Timeouts, total: Micros | None) -> dict[str, str]:
    """Write the `timeouts` field without `run`, which is in `timeout`."""
    bounds = TimeoutFields(queue=timeouts.queue, start=timeouts.start, heartbeat=timeouts.heartbeat, total=total)
    return BOUNDS.write(bounds)
