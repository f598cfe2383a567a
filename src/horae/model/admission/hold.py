"""Holds: while a hold is active, no execution of a queue, or of a whole namespace, starts.

A user opens a hold with an end, or without one; the latter is called a pause. A maintenance window is a hold that
follows a calendar: it is active while the calendar is open.
"""

from collections.abc import Iterable
from typing import Literal
from uuid import UUID

from msgspec import Struct

from horae.env import Instant, Micros
from horae.errors import BadInput
from horae.model.base.duration import DAY, HOUR, format_duration
from horae.model.base.instant import format_instant
from horae.model.triggers.calendars.compiled import LAST, Calendar

LONGEST: Micros = 30 * DAY  # the longest hold with an end that a user may open
FARTHEST: Micros = 366 * DAY  # how far ahead a hold may begin
NEVER: Instant = 1 << 62
AT_ONCE: Instant = 0  # 0, so that it is in the past on every server's clock

HoldState = Literal["planned", "active", "ended"]


class Hold(Struct, frozen=True, kw_only=True):
    """A period in which a queue, or every queue of a namespace, starts nothing.

    For a window, `from_at` and `until_at` are the current or the next opening of its calendar.
    """

    id: UUID
    namespace: int
    queue: int | None = None
    calendar: str | None = None
    from_at: Instant = AT_ONCE
    until_at: Instant | None
    drain: bool = False
    reason: str = ""
    created_at: Instant
    created_by: str = ""
    ended_at: Instant | None = None
    ended_by: str | None = None

    def state(self, now: Instant) -> HoldState:
        """Return the state. A hold stays active until `ended_at` is set; passing `until_at` alone does not end it."""
        if self.ended_at is not None:
            return "ended"
        return "active" if self.from_at <= now else "planned"

    @property
    def is_pause(self) -> bool:
        """Return whether the hold lasts until a user resumes the queue."""
        return self.calendar is None and self.until_at is None

    def is_about(self, namespace: int, queue: int) -> bool:
        return self.namespace == namespace and self.queue in (None, queue)


def hold_span(
    now: Instant, begin: Instant | None, end: Instant | None, length: Micros | None
) -> tuple[Instant, Instant]:
    """Return when a hold begins and ends, from an optional beginning and either an end or a length. Raises BadInput."""
    if (end is None) == (length is None):
        given = "neither is" if end is None else "both are"
        detail = f"A hold needs either `for` or `until`, but {given} given."
        raise BadInput(detail, 'Give the duration of the hold, such as "for": "30m".', field="for")
    start = now if begin is None else begin
    stop = start + length if length is not None else end or 0
    if begin is not None and begin > now + FARTHEST:
        detail = "The hold would begin more than a year from now."
        raise BadInput(detail, "Attach a calendar as a window instead.", field="from")
    if stop <= start:
        detail = f"The hold would end at {format_instant(stop)}, not after it begins ({format_instant(start)})."
        raise BadInput(detail, "Let it end after it begins.", field="until" if length is None else "for")
    if stop <= now:
        detail = f"The hold would have ended at {format_instant(stop)}."
        raise BadInput(detail, "Let it end later than now.", field="until")
    if stop - start > LONGEST:
        length_shown = format_duration(-(-(stop - start) // HOUR) * HOUR)
        detail = f"The hold would last {length_shown}; at most {format_duration(LONGEST)} are allowed."
        remedy = "Open a shorter hold and renew it, or attach a calendar as a window."
        raise BadInput(detail, remedy, field="until" if length is None else "for")
    return AT_ONCE if begin is None or begin <= now else begin, stop


def next_opening(calendar: Calendar, now: Instant) -> tuple[Instant, Instant | None]:
    """Return the start and the end of a window's current or next opening; (NEVER, None) when there is none."""
    opening = next(calendar.openings(now, LAST), None)
    if opening is None:
        return NEVER, None
    return opening.start, None if opening.end >= LAST else opening.end


def check_window(name: str, calendar: Calendar, now: Instant) -> tuple[Instant, Instant | None]:
    """Return the window's current or next opening.

    Raises BadInput for a calendar that never opens again, or that then never closes.
    """
    begin, end = next_opening(calendar, now)
    if begin == NEVER:
        remedy = "A window is active while its calendar is open: name one that opens."
        raise BadInput(f'Calendar "{name}" never opens again, so the window would never hold anything.', remedy)
    if end is None:
        when = "now" if begin <= now else f"at {format_instant(begin)}"
        remedy = "A window is active while its calendar is open: name one that closes, such as nights or a date."
        raise BadInput(f'Calendar "{name}" opens {when} and never closes, so nothing would ever start again.', remedy)
    return AT_ONCE if begin <= now else begin, end


def longest_hold(holds: Iterable[Hold], namespace: int, queue: int, now: Instant) -> Hold | None:
    """Return the hold that ends last among the active holds of a queue."""
    active = [hold for hold in holds if hold.is_about(namespace, queue) and hold.state(now) == "active"]
    return max(active, key=lambda hold: hold.until_at or NEVER, default=None)


def next_change(holds: Iterable[Hold], now: Instant) -> Instant | None:
    """Return the next instant after `now` at which a hold begins or ends, or None."""
    edges = [edge for hold in holds for edge in (hold.from_at, hold.until_at) if edge is not None]
    return min((edge for edge in edges if now < edge < NEVER), default=None)


def why_held(hold: Hold, queue: str) -> str:
    """Explain to users why an execution stays queued, until when, and how to release it."""
    whose = f'The queue "{queue}" is' if hold.queue is not None else "All queues are"
    name = queue if hold.queue is not None else "--all"
    if hold.is_pause:
        cause = f" ({hold.reason})" if hold.reason else ""
        return f"{whose} paused{cause}; `horae queues resume {name}` lets it go on."
    if hold.calendar is not None:
        cause = f'by the maintenance window "{hold.calendar}"' + (f" ({hold.reason})" if hold.reason else "")
        remedy = f"`horae queues window {name} --calendar {hold.calendar} --remove` ends it"
    else:
        cause = f"({hold.reason})" if hold.reason else "by hand"
        remedy = f"`horae queues release {name}` ends it now"
    return f"{whose} held {until_text(hold)} {cause}; {remedy}."


def until_text(hold: Hold) -> str:
    if hold.is_pause:
        return "until it is resumed"
    return "until it is released" if hold.until_at is None else f"until {format_instant(hold.until_at)}"
