"""Deadlines of submissions: an instant or a span from when they are due, or what their job says."""

from horae.env import Instant, Micros
from horae.errors import BadInput
from horae.model.base.instant import format_instant
from horae.model.executions.deadline import deadline_after
from horae.model.fleet.protocol import Submit


def deadline_of(request: Submit, usual: Micros | None, due_at: Instant, now: Instant) -> Instant | None:
    """Until when an execution is wanted; None when neither it nor its job says. Raises BadInput when that cannot be."""
    if request.deadline is None and request.within is None:
        return deadline_after(due_at or now, usual)
    if request.deadline is not None and request.within is not None:
        raise BadInput("deadline and within are both given.", "Give one of them.", field="within")
    start = due_at or now
    if request.within is not None:
        if request.within == 0:
            raise BadInput("within cannot be 0.", 'Say how long it may take, as "5m".', field="within")
        return deadline_after(start, request.within)
    assert request.deadline is not None
    if request.deadline <= start:
        what = "has passed" if request.deadline <= now else f"is before it is due ({format_instant(start)})"
        remedy = "Give an instant that can still be met, or leave it out."
        raise BadInput(f"The deadline {format_instant(request.deadline)} {what}.", remedy, field="deadline")
    return request.deadline
