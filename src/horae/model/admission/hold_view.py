"""Holds as the API shows them."""

from collections.abc import Mapping
from typing import Annotated
from uuid import UUID

from msgspec import Meta, field

from horae.env import Instant
from horae.model.admission.hold import AT_ONCE, NEVER, Hold, HoldState
from horae.model.base.instant import format_instant
from horae.model.base.view import Time, View, shown_time


class HoldView(View, frozen=True, kw_only=True):
    """A hold on a queue, or on every queue of a namespace.

    `state` is planned (it begins at `from`), active, or ended. In a maintenance window (a hold that follows a
    calendar), `from` and `until` are the beginning and the end of the current or next period in which nothing starts;
    both are null if there is none.
    """

    hold_id: UUID
    queue: Annotated[str | None, Meta(description="Null for every queue of the namespace.")]
    calendar: Annotated[str | None, Meta(description="The calendar of a maintenance window.")] = None
    state: HoldState
    indefinite: Annotated[
        bool, Meta(description="Whether the hold has no end and lasts until the queue is resumed.")
    ] = False
    reason: str
    since: Time | None = field(name="from")
    until: Time | None
    drain: bool
    running: Annotated[int, Meta(description="Running executions of the held queues; 0 once the hold has ended.")]
    created_at: Time
    created_by: str | None = None
    ended_at: Time | None = None
    ended_by: Annotated[
        str | None, Meta(description="The user who released the hold; null if it ended at its time.")
    ] = None


class ReleaseView(View, frozen=True, kw_only=True):
    """The holds that a release ended, and the holds that remain."""

    released: list[HoldView]
    remaining: list[HoldView]
    note: str


def show_hold(hold: Hold, queues: Mapping[int, str], running: Mapping[int, int], now: Instant) -> HoldView:
    """Render a hold; `running` counts the running executions of its namespace by queue."""
    since = hold.created_at if hold.from_at == AT_ONCE else hold.from_at
    runs = sum(running.values()) if hold.queue is None else running.get(hold.queue, 0)
    return HoldView(
        hold_id=hold.id,
        queue=None if hold.queue is None else queues.get(hold.queue, str(hold.queue)),
        calendar=hold.calendar,
        state=hold.state(now),
        indefinite=hold.is_pause,
        reason=hold.reason,
        since=None if since == NEVER else format_instant(since),
        until=None if since == NEVER else shown_time(hold.until_at),
        drain=hold.drain,
        running=0 if hold.ended_at is not None else runs,
        created_at=format_instant(hold.created_at),
        created_by=hold.created_by or None,
        ended_at=shown_time(hold.ended_at),
        ended_by=hold.ended_by,
    )
