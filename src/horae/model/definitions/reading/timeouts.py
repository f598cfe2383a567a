"""`timeout` and `timeouts`: how long an execution may be queued, wait for its start, run, be silent, and take."""

from collections.abc import Mapping
from typing import Any

from horae.env import Micros
from horae.errors import BadInput
from horae.model.base.duration import DAY, format_duration, parse_duration
from horae.model.definitions.timeouts import Timeouts
from horae.model.fields.values import a_duration, an_object, refuse_unknown

NAMES = ("queue", "start", "run", "heartbeat", "total")
_ACCEPTED = 'Write {"queue": "10m", "start": "30s", "run": "5m", "heartbeat": "1m", "total": "1h"}, or some of them.'


def with_run(given: dict[str, Any]) -> dict[str, Any]:
    """The same with `timeouts.run` where it is kept, as `timeout`; both at once must say the same."""
    timeouts = given.get("timeouts")
    if not isinstance(timeouts, dict) or "run" not in timeouts:
        return given
    run, rest = timeouts["run"], {name: span for name, span in timeouts.items() if name != "run"}
    if given.get("timeout") not in (None, run):
        detail = f"timeout is {given['timeout']} and timeouts.run is {run}."
        raise BadInput(detail, "They are the same: give one of them.", field="timeouts.run")
    return {**given, "timeout": run, "timeouts": rest}


def read_timeouts(given: Mapping[str, Any]) -> tuple[Micros | None, Timeouts, Micros | None]:
    """How long a try may take, what else is bounded, and how long all tries may take together."""
    said = an_object(given.get("timeouts") or {}, "timeouts", _ACCEPTED)
    refuse_unknown(said, NAMES, "timeouts", "timeouts.")
    spans = {name: _span(said.get(name), f"timeouts.{name}") for name in NAMES if name != "run"}
    run, total = _span(given.get("timeout"), "timeout"), spans.pop("total")
    if run is not None and total is not None and total < run:
        detail = "timeouts.total is shorter than what one try may take."
        raise BadInput(detail, "It counts all tries: give a longer one.", field="timeouts.total")
    if spans["heartbeat"] is not None and given.get("http") is not None:
        detail = "An HTTP request tells nothing of itself while it runs."
        raise BadInput(detail, "Leave timeouts.heartbeat out; timeout bounds it.", field="timeouts.heartbeat")
    return run, Timeouts(**spans), total


def _span(value: Any, field: str) -> Micros | None:
    if value is None:
        return None
    if parse_duration(value, field=field) == 0:
        raise BadInput(f"{field} cannot be 0.", "Leave it out for none.", field=field)
    return a_duration(value, field, 1000, 365 * DAY)


def render_timeouts(timeouts: Timeouts, total: Micros | None) -> dict[str, str]:
    """The `timeouts` field that reads as these; `run` stands in `timeout`."""
    spans = {"queue": timeouts.queue, "start": timeouts.start, "heartbeat": timeouts.heartbeat, "total": total}
    return {name: format_duration(span) for name, span in spans.items() if span is not None}
