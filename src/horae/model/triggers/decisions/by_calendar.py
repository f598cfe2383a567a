"""The outcome of the nominal fires of a trigger that depends on calendars.

Fires that the calendars let run are decided by `decide`, like those of other triggers; all other fires get a ledger row
too. A fire is decided when its instant has come; a fire that is advanced, at the last open second before its instant.
Fires in closed time that follow each other within a few seconds are decided together.
"""

from collections.abc import Iterator, Sequence
from typing import cast

import msgspec

from horae.env import SECOND, Instant, Micros
from horae.model.base.duration import format_duration
from horae.model.base.instant import format_instant
from horae.model.triggers.calendars.compiled import Calendar
from horae.model.triggers.decisions.decide import (
    Decision,
    Disposition,
    Fire,
    LedgerRun,
    decide,
    is_spent,
    next_decision_at,
    with_lost_times,
)
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.timetable import Timetable
from horae.model.triggers.decisions.values import Once, Trigger, previous_fire

TOGETHER: Micros = 5 * SECOND  # a fire in closed time is recorded this much later, to share a row with the next fires
MOST_ROWS = 64  # rows into which one run of fires may be split


def decide_by_calendar(
    trigger: Trigger,
    rules: Rules,
    calendar: Calendar,
    decided_through: Instant,
    now: Instant,
    limit: int,
    *,
    fired: int = 0,
    busy: bool = False,
    waiting: int = 0,
    moved_to: Instant | None = None,
) -> Decision:
    """Decide the nominal fires in (decided_through, now], and a later one that is advanced to `now` or earlier.

    The parameters are those of `decide`, and `moved_to`: the instant to which the last decided fire was moved. A moved
    fire runs at its new instant (`due`); further fires moved to the same instant are `coalesced` with it. The cost
    depends on the size of the result, not on the elapsed time.
    """
    at = now - rules.offset
    bare = msgspec.structs.replace(rules, offset=0, start_at=None, end_at=None)
    timetable = Timetable(trigger, rules, calendar, decided_through, moved_to, at)
    main = decide(
        cast(Trigger, timetable), bare, decided_through, at, limit, fired=fired, busy=busy, waiting=waiting
    )  # the timetable stands in for the trigger: its fires are those that the calendar lets run
    cut = main.next_fire_at is not None and main.next_fire_at <= at
    fires, ledger, through = main.fires, main.ledger, main.decided_through
    if not cut and not is_spent(rules, fired + len(fires)):
        queued = waiting + max(0, len(fires) - (0 if busy or waiting else 1))  # behind the one that runs
        ahead = _decide_advanced(
            timetable, bare, through, at, limit - len(fires), fired + len(fires), busy or bool(fires), queued
        )
        if ahead is not None:
            fires, ledger, through = (*fires, *ahead.fires), (*ledger, *ahead.ledger), ahead.decided_through
    moved = [_moved(timetable, trigger, fire) for fire in fires]
    last = next((fire.due for fire in reversed(moved) if fire.due is not None), moved_to)
    recorded = [_recorded(timetable, run, at) for run in ledger]
    following: Instant | None = main.next_fire_at if cut else None
    if not cut and not is_spent(rules, fired + len(fires)):
        following = _next_decision_at(trigger, rules, calendar, through, last)
    covered = _merged(_covered(timetable, recorded, decided_through, through))
    return Decision(
        fires=tuple(moved),
        ledger=tuple(with_lost_times(trigger, rules, covered, decided_through, through)),
        decided_through=through,
        next_fire_at=None if following is None else following + rules.offset,
        moved_to=last,
    )


def _next_decision_at(
    trigger: Trigger, rules: Rules, calendar: Calendar, decided_through: Instant, moved_to: Instant | None
) -> Instant | None:
    """Return when the trigger must be decided next: for a fire that runs, or to record fires in closed time.

    The delay `rules.offset` is not included.
    """
    timetable = Timetable(trigger, rules, calendar, decided_through, moved_to)
    first = timetable.nominal_after(decided_through)
    if first is None:
        return next_decision_at(trigger, rules, decided_through, None)
    if timetable.runs(first):
        return next_decision_at(trigger, rules, decided_through, min(first, timetable.due(first) or first))
    together = timetable.nominal_before(first + TOGETHER + 1) or first
    near = Timetable(trigger, rules, calendar, decided_through, moved_to, together).next(decided_through)
    return next_decision_at(trigger, rules, decided_through, together if near is None else min(near, together))


def runs_after(trigger: Trigger, rules: Rules, calendar: Calendar, after: Instant) -> Iterator[tuple[Instant, Instant]]:
    """Yield the fires that run after an instant, each with its due instant, until a long search finds no more."""
    timetable = Timetable(trigger, rules, calendar, after)
    at = timetable.next(after)
    while at is not None:
        yield at, timetable.due(at) or at
        at = timetable.next(at)


def _decide_advanced(
    timetable: Timetable,
    rules: Rules,
    through: Instant,
    at: Instant,
    limit: int,
    fired: int,
    busy: bool,
    waiting: int,
) -> Decision | None:
    """Decide the next fire if it is already due because it is advanced; otherwise return None."""
    following = timetable.nominal_after(max(through, at)) if rules.outside == "advance" and limit > 0 else None
    if following is None or not timetable.runs(following):
        return None
    due = timetable.due(following)
    if due is None or due > at:
        return None
    allowed = rules.misfire.within if rules.misfire.policy == "window" else 0
    if at - due > max(rules.grace, allowed) and rules.misfire.policy in ("skip", "window"):
        cause = f"missed by more than {format_duration(rules.grace)}; misfire is {rules.misfire.policy}"
        return Decision((), (LedgerRun(following, following, "skipped-misfire", cause),), following, None)
    return decide(Once(at=following), rules, following - 1, following, limit, fired=fired, busy=busy, waiting=waiting)


def _moved(timetable: Timetable, trigger: Trigger, fire: Fire) -> Fire:
    """Return a fire with `since`, the nominal fire before it, and with `due` if a calendar moved it."""
    due = timetable.due(fire.at)
    return Fire(fire.at, previous_fire(trigger, fire.at), None if due == fire.at else due)


def _recorded(timetable: Timetable, run: LedgerRun, now: Instant) -> LedgerRun:
    """Return the run to record: a fire that was moved gets the disposition `moved` and a cause with its new instant."""
    if run.disposition != "fired":
        return run
    due = timetable.due(run.first)
    if due is None or due == run.first:
        return run
    late = f"; missed; misfire is {timetable.rules.misfire.policy}" if now - due > timetable.rules.grace else ""
    cause = f'calendar "{timetable.calendar.name}" was closed; moved to {format_instant(due)}{late}'
    return LedgerRun(run.first, run.last, "moved", cause)


def _covered(
    timetable: Timetable, ledger: Sequence[LedgerRun], after: Instant, through: Instant
) -> Iterator[LedgerRun]:
    """Add runs for the nominal fires that do not run, so that all fires in (after, through] are covered."""
    reached = after
    for place, run in enumerate(ledger):
        yield from _runs_between(timetable, reached, run.first)
        reached = run.last
        if run.first == run.last:
            yield run
        elif timetable.rules.outside == "skip":
            yield from _split_by_openings(timetable, run)
        else:  # this run also covers the fires between it and the next run
            before = ledger[place + 1].first if place + 1 < len(ledger) else through + 1
            reached = max(reached, timetable.nominal_before(before) or reached)
            yield LedgerRun(run.first, reached, run.disposition, run.cause)
    yield from _runs_between(timetable, reached, through + 1)


def _runs_between(timetable: Timetable, after: Instant, before: Instant) -> Iterator[LedgerRun]:
    """Yield the runs for the nominal fires strictly between two instants; none of these fires runs."""
    first = timetable.nominal_after(after)
    if first is None or first >= before:
        return
    last = timetable.nominal_before(before) or first
    disposition, cause = _disposition(timetable, first)
    if timetable.rules.outside == "postpone" and disposition == "coalesced" and timetable.due(last) is None:
        closed = timetable.boundary(last + 1)  # the last opening ended between these fires
        yield LedgerRun(first, timetable.nominal_before(closed) or first, disposition, cause)
        first = timetable.nominal_after(closed - 1) or last
        disposition, cause = _disposition(timetable, first)
    yield LedgerRun(first, last, disposition, cause)


def _disposition(timetable: Timetable, at: Instant) -> tuple[Disposition, str]:
    """Return the disposition and the cause of a nominal fire that does not run."""
    closed = f'calendar "{timetable.calendar.name}" was closed'
    if timetable.rules.outside == "skip":
        return "skipped-calendar", closed
    if timetable.follows(at):
        return "coalesced", f"{closed}; another fire of this trigger, due at the same instant, stands for it"
    if timetable.due(at) is None:
        when = "does not open again" if timetable.rules.outside == "postpone" else "had never been open before"
        return "skipped-calendar", f"{closed} and {when}"
    return "skipped-calendar", f"{closed}, and its last open instant had passed"


def _split_by_openings(timetable: Timetable, run: LedgerRun) -> Iterator[LedgerRun]:
    """Split a run of skipped fires: those in closed time are recorded as skipped by the calendar.

    After MOST_ROWS rows the remaining fires become one row, because fires missed over years need no row per day.
    """
    first: Instant | None = run.first
    for _ in range(MOST_ROWS // 2):
        if first is None or first > run.last:
            return
        closes = timetable.calendar.next_closed(first)
        last = run.last if closes is None else timetable.nominal_before(min(closes, run.last + 1)) or first
        yield LedgerRun(first, last, run.disposition, run.cause)
        first = timetable.next(last)
        yield from _runs_between(timetable, last, min(first or run.last + 1, run.last + 1))
    if first is not None and first <= run.last:
        cause = f'{run.cause}; calendar "{timetable.calendar.name}" was closed at some of these fires'
        yield LedgerRun(first, run.last, run.disposition, cause)


def _merged(rows: Iterator[LedgerRun]) -> Iterator[LedgerRun]:
    """Merge adjacent rows with the same disposition and cause, except the rows of fires that run."""
    kept: LedgerRun | None = None
    for row in rows:
        if kept is None:
            kept = row
        elif row.disposition not in ("fired", "moved") and _key(row) == _key(kept):
            kept = LedgerRun(kept.first, row.last, row.disposition, row.cause)
        else:
            yield kept
            kept = row
    if kept is not None:
        yield kept


def _key(row: LedgerRun) -> tuple[str, str]:
    return row.disposition, row.cause
