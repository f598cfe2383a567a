"""Reads of the ledger for backfills and audits: its rows, and the versions of triggers to which they belong.

It also replaces rows when a backfill runs fires that had been skipped.
"""

from collections.abc import Iterable, Sequence
from uuid import UUID

import msgspec
from msgspec import Struct, structs

from horae.env import Instant
from horae.model.triggers.decisions.decide import NONEXISTENT, is_spent, upcoming
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.values import Timed, Trigger
from horae.model.triggers.ledger import LedgerRow, TriggerVersion
from horae.store.base.shelves import Columns
from horae.store.script import Again, Fetch, ForEach, Insert, Row, Script, Statement
from horae.store.triggers.triggers import FIRES

# The columns that `read_version` reads, as the beginning of a statement.
VERSIONS = (
    "SELECT g.id, g.name, g.definition, g.rules, g.params, g.valid_from, g.valid_to, t.next_fire_at, t.decided_through,"
    " t.fired, j.created_at FROM triggers g JOIN jobs j ON j.id = g.job LEFT JOIN timers t ON t.trigger_id = g.id"
)
OF_JOB = Statement("trigger_versions", f"{VERSIONS} WHERE g.job = $1 ORDER BY g.name, g.valid_from, g.id")
ROWS = Statement(
    "ledger_rows",
    "SELECT trigger_id, first, last, disposition, cause, execution, decided_at FROM fires"
    f" WHERE trigger_id = $1 AND last >= $2 AND disposition <> '{NONEXISTENT}' ORDER BY last LIMIT $3",
)
RAN = Statement(
    "fires_that_ran",
    "SELECT count(*) FROM fires WHERE trigger_id = $1 AND last > $2 AND last <= $3 AND execution IS NOT NULL",
)
TAKE_OUT = Statement(
    "take_ledger_rows",
    "DELETE FROM fires USING given WHERE fires.trigger_id = given.trigger_id AND fires.last = given.last"
    " AND fires.first = given.first AND fires.execution IS NULL RETURNING 1",
)
KNOWN_FROM = Statement("fires_known_from", "SELECT value FROM store WHERE key = 'fires_known_from'")
FORGET_BEFORE = Statement(
    "forget_fires_before",
    "INSERT INTO store (key, value) VALUES ('fires_known_from', $1)"
    " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
)


class StoredVersion(Struct, frozen=True):
    """A version of a trigger."""

    version: TriggerVersion
    next_fire_at: Instant | None = None  # None also for a version that has ended, or is paused
    live: bool = False  # whether it has not ended
    spent: bool = False  # whether it has had as many fires as its rules allow

    def is_pending(self, until: Instant) -> bool:
        """Return whether fires before `until` are still to be decided."""
        if not self.live or self.spent:
            return False
        following = upcoming(self.version.trigger, self.version.rules, self.version.through)
        return following is not None and following < until

    def is_asleep(self, until: Instant) -> bool:
        """Return whether the trigger is paused, so that no server decides its pending fires before `until`."""
        return self.next_fire_at is None and self.is_pending(until)

    def reaching(self, until: Instant) -> TriggerVersion:
        """Return the version, decided up to `until` if it has no undecided fires before that instant."""
        if not self.live or self.spent or self.is_pending(until):
            return self.version
        return structs.replace(self.version, through=max(self.version.through, until - 1))


def versions(job: UUID) -> Script[list[StoredVersion]]:
    """Return all versions of a job's triggers that fire by the clock. Raises when a version cannot be read."""
    rows = yield Fetch(OF_JOB, (job,))
    found = (read_version(row) for row in rows)
    return [one for one in found if isinstance(one.version.trigger, Timed)]


def read_version(row: Row) -> StoredVersion:
    """Read a version from the columns of VERSIONS."""
    trigger_id, name, definition, rules_text, params, valid_from, valid_to, next_fire_at, *timer = row
    decided, fired, job_created_at = timer
    trigger, rules = msgspec.json.decode(definition, type=Trigger), msgspec.json.decode(rules_text, type=Rules)
    through = decided if decided is not None else valid_to
    version = TriggerVersion(
        id=trigger_id, name=name, trigger=trigger, rules=rules, params=params or "{}", after=valid_from,
        through=valid_from if through is None else through, job_created_at=job_created_at,
    )  # fmt: skip
    if decided is None:
        return StoredVersion(version)
    return StoredVersion(version, next_fire_at, live=True, spent=is_spent(rules, fired))


def rows_from(trigger: UUID, at: Instant, limit: int) -> Script[list[LedgerRow]]:
    """Return a trigger's rows whose last fire is at `at` or later, in this order, without rows of nonexistent fires."""
    rows = yield Fetch(ROWS, (trigger, at, limit))
    return [
        LedgerRow(
            trigger=row[0], first=row[1], last=row[2], disposition=row[3], cause=row[4], execution=row[5],
            decided_at=row[6],
        )
        for row in rows
    ]  # fmt: skip


def count_ran(trigger: UUID, after: Instant, through: Instant) -> Script[int]:
    """Count a trigger's fires with an execution that are later than `after` and not later than `through`."""
    rows = yield Fetch(RAN, (trigger, after, through))
    return int(rows[0][0])


def exchange_rows(old: Sequence[LedgerRow], new: Iterable[LedgerRow]) -> Script[None]:
    """Replace ledger rows by others. If an old row was deleted or changed meanwhile, the transaction starts again."""
    columns: Columns = (("trigger_id", "uuid"), ("first", "bigint"), ("last", "bigint"))
    if old:
        taken = yield ForEach(TAKE_OUT, columns, [(row.trigger, row.first, row.last) for row in old])
        if len(taken) != len(old):
            raise Again  # guard: ledger-rows-gone
    rows = [(r.trigger, r.first, r.last, r.disposition, r.cause, r.execution, r.decided_at) for r in new]
    if rows:
        yield Insert("fires", FIRES, rows)


def known_from() -> Script[Instant]:
    """Return the instant from which the ledger is complete; rows of earlier fires may have been deleted."""
    rows = yield Fetch(KNOWN_FROM)
    return int(rows[0][0]) if rows else 0


def forget_before(at: Instant) -> Script[None]:
    """Record that the ledger is complete only from `at` on. Callers do this before they delete older rows.

    The recorded instant never moves back.
    """
    if at > (yield from known_from()):
        yield Fetch(FORGET_BEFORE, (str(at),))
