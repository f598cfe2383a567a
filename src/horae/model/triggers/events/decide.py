"""The outcome of an event at each listening trigger: it fires now or later, or does not for a stated cause."""

from typing import Any, Literal

from msgspec import Struct

from horae.env import Instant
from horae.model.base.instant import format_instant
from horae.model.triggers.calendars.compiled import Calendar
from horae.model.triggers.calendars.resolve import no_such_calendar
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.events.filters import compile_filter

EventDisposition = Literal[
    "fired",
    "moved",
    "skipped-filter",
    "skipped-paused",
    "skipped-overlap",
    "skipped-bounds",
    "skipped-calendar",
    "skipped-params",
    "skipped-trouble",
    "skipped-unique",
    "skipped-quota",
]


class Listening(Struct, frozen=True, kw_only=True):
    """The state of a listening trigger that decides its reaction to an event."""

    rules: Rules
    filter: str | None = None
    paused: str = ""  # the paused object: the job or the trigger
    fired: int = 0
    busy: bool = False  # the execution of its last fire has not ended
    waiting: int = 0  # the number of further executions that wait for it
    calendar: Calendar | None = None  # the calendar that must be open, if the rules name calendars


class Verdict(Struct, frozen=True):
    """The outcome of an event at one trigger."""

    disposition: EventDisposition
    cause: str
    due: Instant | None = None  # set if a calendar moved the fire

    @property
    def runs(self) -> bool:
        return self.disposition in ("fired", "moved")


FIRED = Verdict("fired", "the event came")
OVERTAKEN = Verdict("skipped-overlap", "a newer event came with it and waits instead")


def decide_event(listening: Listening, scope: dict[str, Any], now: Instant) -> Verdict:
    """Decide one event at one trigger. Cheap checks come first; the filter sees the event as `event`."""
    rules = listening.rules
    if listening.paused:
        return Verdict("skipped-paused", f"the {listening.paused} is paused")
    if rules.start_at is not None and now < rules.start_at:
        return Verdict("skipped-bounds", f"startAt is {format_instant(rules.start_at)}")
    if rules.end_at is not None and now >= rules.end_at:
        return Verdict("skipped-bounds", f"endAt was {format_instant(rules.end_at)}")
    if rules.max_fires is not None and listening.fired >= rules.max_fires:
        return Verdict("skipped-bounds", f"maxFires is {rules.max_fires}")
    if listening.filter is not None:
        refusal = compile_filter(listening.filter).refusal(scope)
        if refusal is not None:
            return Verdict("skipped-filter", refusal)
    verdict = _by_calendar(listening, now) if rules.calendars else FIRED
    if not verdict.runs:
        return verdict
    if rules.overlap == "skip" and listening.busy:
        return Verdict("skipped-overlap", "the execution of the last fire had not ended")
    if rules.overlap == "queueAll" and listening.waiting >= rules.most_queued:
        return Verdict("skipped-overlap", f"{rules.most_queued} executions waited for the previous one already")
    return verdict


def _by_calendar(listening: Listening, now: Instant) -> Verdict:
    """Apply a calendar to an event. Events are independent of each other, so several moved to one instant all run."""
    rules, calendar = listening.rules, listening.calendar
    if calendar is None:
        raise no_such_calendar(" and ".join(rules.calendars), ())
    if calendar.is_open(now):
        return FIRED
    closed = f'calendar "{calendar.name}" was closed'
    if rules.outside == "skip":
        return Verdict("skipped-calendar", closed)
    opens = calendar.next_open(now)
    if opens is None:
        return Verdict("skipped-calendar", f"{closed} and does not open again")
    return Verdict("moved", f"{closed}; moved to {format_instant(opens)}", opens)
