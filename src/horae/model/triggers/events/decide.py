"""What becomes of an event at each trigger that listens: it fires, now or later, or it does not for a stated cause."""

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
    """What a listening trigger's decision depends on, beside the event."""

    rules: Rules
    filter: str | None = None
    paused: str = ""  # what is paused: the job or the trigger
    fired: int = 0
    busy: bool = False  # the execution of its last fire has not ended
    waiting: int = 0  # how many more wait for it
    calendar: Calendar | None = None  # what must be open, if its rules name calendars


class Verdict(Struct, frozen=True):
    """What became of an event at one trigger."""

    disposition: EventDisposition
    cause: str
    due: Instant | None = None  # where a calendar moved it

    @property
    def runs(self) -> bool:
        return self.disposition in ("fired", "moved")


FIRED = Verdict("fired", "the event came")
OUTRUN = Verdict("skipped-overlap", "a newer event came with it and waits instead")


def decide_event(listening: Listening, scope: dict[str, Any], now: Instant) -> Verdict:
    """Decide one event at one trigger. What is cheap is looked at first; the filter sees the event as `event`."""
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
    """What a calendar makes of an event: each is work of its own, so those that are moved to one instant all run."""
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
