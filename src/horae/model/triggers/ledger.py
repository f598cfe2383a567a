"""The ledger of fires: trigger versions, outcomes of nominal fires, and the split of rows that a backfill needs."""

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
    """A version of a trigger: its definition, and the range of its nominal fires: after < fire <= through."""

    id: UUID
    name: str
    trigger: Trigger
    rules: Rules
    params: str = "{}"  # the params of the trigger, as JSON
    after: Instant
    through: Instant
    job_created_at: Instant = 0
    # The calendar named by its rules. It judges each instant by the calendar's version that was valid at that instant.
    calendar: Calendar | None = None


class LedgerRow(Struct, frozen=True, kw_only=True):
    """Consecutive nominal fires of a trigger with the same outcome. Only a row of one fire can have an execution."""

    trigger: UUID
    first: Instant
    last: Instant
    disposition: Disposition
    cause: str
    execution: UUID | None = None
    decided_at: Instant


def cut(row: LedgerRow, removed: Sequence[Instant], trigger: Trigger, rules: Rules) -> Iterator[LedgerRow]:
    """Take fires out of a row: yield the rows that cover each of its other fires once.

    `removed` are nominal fires of the row, in order. Wall times skipped by a clock change get a row of their own if
    none of the remaining rows spans them.
    """
    reached = row.first
    for run in _runs(row, removed, trigger, rules):
        yield from _lost(row, reached, run.first, trigger, rules)
        yield run
        reached = run.last
    yield from _lost(row, reached, row.last, trigger, rules)


def _runs(row: LedgerRow, removed: Sequence[Instant], trigger: Trigger, rules: Rules) -> Iterator[LedgerRow]:
    start: Instant | None = row.first
    for at in removed:
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
