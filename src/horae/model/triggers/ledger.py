"""The ledger of fires: versions of triggers, what became of their nominal fires, and how a backfill cuts its rows."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from uuid import UUID

from msgspec import Struct, structs

from horae.env import Instant
from horae.model.triggers.calendars.compiled import Calendar
from horae.model.triggers.decisions.decide import NONEXISTENT, Disposition, latest, upcoming
from horae.model.triggers.decisions.lost import lost_between
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.values import Trigger


class TriggerVersion(Struct, frozen=True, kw_only=True):
    """A version of a trigger: what it is, and which nominal fires were its own, after < fire <= through."""

    id: UUID
    name: str
    trigger: Trigger
    rules: Rules
    params: str = "{}"  # of the trigger, as JSON
    after: Instant
    through: Instant
    born: Instant = 0  # when its job was made
    calendar: Calendar | None = None  # what its rules name, as it was at each time


class LedgerRow(Struct, frozen=True, kw_only=True):
    """What became of an unbroken run of a trigger's nominal fires. Only a run of one can have an execution."""

    trigger: UUID
    first: Instant
    last: Instant
    disposition: Disposition
    cause: str
    execution: UUID | None = None
    decided_at: Instant


def cut(row: LedgerRow, out: Sequence[Instant], trigger: Trigger, rules: Rules) -> Iterator[LedgerRow]:
    """What is left of a row when some of its fires are taken out: runs that cover each of the others once.

    The fires to take out are nominal ones of the row, in order. Each that stands alone leaves up to two runs beside it.
    What a clock change took, and the row told among its fires, is told for itself when no run spans it any more.
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
    for lost in lost_between(trigger, rules, after, before):
        yield structs.replace(row, first=lost.at, last=lost.at, disposition=NONEXISTENT, cause=lost.cause)


def row_of(rows: Sequence[LedgerRow], at: Instant) -> LedgerRow | None:
    """The row that covers an instant, among rows in the order of their last fires."""
    place = bisect_left(rows, at, key=lambda row: row.last)
    return rows[place] if place < len(rows) and rows[place].first <= at else None
