"""The ledger of fires: trigger versions, outcomes of nominal fires, and the splitting of rows for a backfill."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from uuid import UUID

from msgspec import Struct, structs

from horae.env import Instant
from horae.model.triggers.calendars.compiled import Calendar
from horae.model.triggers.decisions.decide import NONEXISTENT, Disposition, latest, upcoming
from horae.model.triggers.decisions.lost_times import lost_times_between
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.values import Trigger


class TriggerVersion(Struct, frozen=True, kw_only=True):
    """A version of a trigger: its definition, and its range of nominal fires, after < fire <= through."""

    id: UUID
    name: str
    trigger: Trigger
    rules: Rules
    params: str = "{}"  # of the trigger, as JSON
    after: Instant
    through: Instant
    born: Instant = 0  # the creation time of its job
    calendar: Calendar | None = None  # the calendar named by its rules, through time


class LedgerRow(Struct, frozen=True, kw_only=True):
    """The outcome of an unbroken run of a trigger's nominal fires. Only a run of one fire can have an execution."""

    trigger: UUID
    first: Instant
    last: Instant
    disposition: Disposition
    cause: str
    execution: UUID | None = None
    decided_at: Instant


def cut(row: LedgerRow, out: Sequence[Instant], trigger: Trigger, rules: Rules) -> Iterator[LedgerRow]:
    """Split a row when some of its fires are taken out, into rows that cover each of the other fires once.

    The fires to take out are nominal fires of the row, in order. Each of them leaves up to two runs beside it. Wall
    times skipped by a clock change get a row of their own if no remaining run spans them.
    """
    reached = row.first
    for run in _runs(row, out, trigger, rules):
        yield from _lost(row, reached, run.first, trigger, rules)
        yield run
        reached = run.last
    yield from _lost(row, reached, row.last, trigger, rules)


def _runs(row: LedgerRow, out: Sequence[Instant], trigger: Trigger, rules: Rules) -> Iterator[LedgerRow]:
    start: Instant | None = row.first
    for at in out:
        if start is not None and start < at:
            yield structs.replace(row, first=start, last=max(start, latest(trigger, rules, at) or start))
        start = upcoming(trigger, rules, at)
    if start is not None and start <= row.last:
        yield structs.replace(row, first=start)


def _lost(row: LedgerRow, after: Instant, before: Instant, trigger: Trigger, rules: Rules) -> Iterator[LedgerRow]:
    for lost in lost_times_between(trigger, rules, after, before):
        yield structs.replace(row, first=lost.at, last=lost.at, disposition=NONEXISTENT, cause=lost.cause)


def row_of(rows: Sequence[LedgerRow], at: Instant) -> LedgerRow | None:
    """Return the row that covers an instant, from rows in the order of their last fires."""
    place = bisect_left(rows, at, key=lambda row: row.last)
    return rows[place] if place < len(rows) and rows[place].first <= at else None
