"""The outcome of an event at each listening trigger: the trigger fires now, fires later, or skips the event."""

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
    """The state of a trigger that listens to an event, as far as the outcome depends on it."""

    rules: Rules
    filter: str | None = None
    paused: str = ""  # "job" or "trigger", if that is paused
    fired: int = 0  # the number of its fires so far, for `max_fires`
    busy: bool = False  # the execution of its last fire has not ended
    waiting: int = 0  # the number of later executions of this trigger that wait for that execution
    calendar: Calendar | None = None  # open when all calendars of the rules are open; None if the rules name none


class Verdict(Struct, frozen=True):
    """The outcome of an event at one trigger."""

    disposition: EventDisposition
    cause: str
    due: Instant | None = None  # set if a calendar moved the fire

    @property
    def runs(self) -> bool:
        return self.disposition in ("fired", "moved")


FIRED = Verdict("fired", "the event came")
OVERTAKEN = Verdict("skipped-overlap", "a newer event was decided at the same time and waits instead")


def decide_event(listening: Listening, scope: dict[str, Any], now: Instant) -> Verdict:
    """Decide the outcome of one event at one trigger. Cheap checks come first.

    `scope` has the variables of the filter: the event, as `event`.
    """
    rules = listening.rules
    if listening.paused:
        return Verdict("skipped-paused", f"the {listening.paused} is paused")
    if rules.start_at is not None and now < rules.start_at:
        return Verdict("skipped-bounds", f"startAt is {format_instant(rules.start_at)}")
    if rules.end_at is not None and now >= rules.end_at:
        return Verdict("skipped-bounds", f"endAt was {format_instant(rules.end_at)}")
    bound = _by_bound(listening)
    if bound is not None:
        return bound
    if listening.filter is not None:
        refusal = compile_filter(listening.filter).refusal(scope)
        if refusal is not None:
            return Verdict("skipped-filter", refusal)
    verdict = _by_calendar(listening, now) if rules.calendars else FIRED
    return verdict if not verdict.runs else _by_overlap(listening) or verdict


def decide_again(listening: Listening) -> Verdict | None:
    """Return why a trigger that would fire does not fire after its earlier fires, or None if it fires."""
    return _by_bound(listening) or _by_overlap(listening)


def _by_bound(listening: Listening) -> Verdict | None:
    most = listening.rules.max_fires
    return Verdict("skipped-bounds", f"maxFires is {most}") if most is not None and listening.fired >= most else None


def _by_overlap(listening: Listening) -> Verdict | None:
    rules = listening.rules
    if rules.overlap == "skip" and listening.busy:
        return Verdict("skipped-overlap", "the execution of the last fire had not ended")
    if rules.overlap == "queueAll" and listening.waiting >= rules.most_queued:
        return Verdict("skipped-overlap", f"{rules.most_queued} executions waited for the previous one already")
    return None


def _by_calendar(listening: Listening, now: Instant) -> Verdict:
    """Apply a calendar to an event.

    Events are independent of each other, so if several are moved to the same instant, all of them run.
    """
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
