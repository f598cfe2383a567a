"""The table of backfills: create, list, pause, resume and cancel. The module `work` processes them."""

from collections.abc import Sequence
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.features.backfills.model.values import Backfill, BackfillCounts, BackfillState
from horae.store.base.shelves import Columns, names
from horae.store.expiry.expiry import Cutoffs
from horae.store.script import Fetch, Insert, Row, Script, Statement
from horae.store.tenancy.holdings import Holdings, PendingWork, records

FIRST = UUID(int=0)
COLUMNS: Columns = (
    ("id", "uuid"), ("namespace", "int"), ("job", "uuid"), ("trigger_name", "text"), ("from_at", "bigint"),
    ("to_at", "bigint"), ("newest_first", "bool"), ("force", "bool"), ("max_concurrent", "int"),
    ("priority", "smallint"), ("params", "text"), ("state", "text"), ("cursor_at", "bigint"), ("cursor_name", "text"),
    ("total", "bigint"), ("already", "bigint"), ("unknown", "bigint"), ("started", "bigint"), ("succeeded", "bigint"),
    ("failed", "bigint"), ("ended", "bigint"), ("first_at", "bigint"), ("last_at", "bigint"), ("known_from", "bigint"),
    ("note", "text"), ("created_by", "text"), ("created_at", "bigint"), ("completed_at", "bigint"),
)  # fmt: skip
GET = Statement("backfill", f"SELECT {names(COLUMNS)} FROM backfills WHERE id = $1 AND namespace = $2")
PAGE = Statement(
    "backfills",
    f"SELECT {names(COLUMNS)} FROM backfills WHERE namespace = $1 AND id < $2 AND ($3::uuid IS NULL OR job = $3)"
    " AND ($4::text IS NULL OR state = $4) ORDER BY id DESC LIMIT $5",
)
# Paused backfills without live executions need no processing until they are resumed.
OPEN = Statement(
    "open_backfills",
    "SELECT id, job FROM backfills WHERE completed_at IS NULL"
    " AND (state <> 'paused' OR started > succeeded + failed + ended) AND id > $1 ORDER BY id LIMIT $2",
)
LOCK = Statement("lock_backfill", f"SELECT {names(COLUMNS)} FROM backfills WHERE id = $1 AND namespace = $2 FOR UPDATE")
SET_STATE = Statement("set_backfill_state", "UPDATE backfills SET state = $2, note = $3 WHERE id = $1")
RUNS = Statement(
    "backfill_runs",
    "SELECT r.at, r.trigger_id, g.name, r.execution, r.forced, r.outcome FROM backfill_runs r"
    " LEFT JOIN triggers g ON g.id = r.trigger_id WHERE r.backfill = $1 AND (r.at, r.trigger_id) > ($2, $3)"
    " ORDER BY r.at, r.trigger_id LIMIT $4",
)
LIVE_RUNS = Statement(
    "live_backfill_runs",
    "SELECT trigger_id, at, execution FROM backfill_runs WHERE backfill = $1 AND outcome IS NULL"
    " ORDER BY at, trigger_id",
)
COUNT_UNFINISHED = Statement(
    "standing_backfills",
    "SELECT b.namespace, j.name, b.state, count(*), sum(b.total), sum(b.already), sum(b.unknown), sum(b.started),"
    " sum(b.succeeded), sum(b.failed), sum(b.ended) FROM backfills b JOIN jobs j ON j.id = b.job"
    " WHERE b.completed_at IS NULL GROUP BY b.namespace, j.name, b.state"
    " ORDER BY b.namespace, j.name, b.state LIMIT $1",
)
OLD_RUNS = Statement(
    "expire_backfill_runs",
    "WITH old AS MATERIALIZED (SELECT r.backfill, r.trigger_id, r.at FROM backfill_runs r"
    " JOIN backfills b ON b.id = r.backfill WHERE b.completed_at < $1 LIMIT $2)"
    " DELETE FROM backfill_runs WHERE (backfill, trigger_id, at) IN (SELECT backfill, trigger_id, at FROM old)"
    " RETURNING 1",
)
OLD = Statement(
    "expire_backfills",
    "DELETE FROM backfills WHERE completed_at < $1"
    " AND NOT EXISTS (SELECT 1 FROM backfill_runs r WHERE r.backfill = backfills.id)",
)


class BackfillRun(Struct, frozen=True):
    """One fire that a backfill ran."""

    at: Instant
    trigger: UUID
    name: str | None  # the name of its trigger, while that is stored
    execution: UUID
    forced: bool
    outcome: str | None


def put(backfill: Backfill) -> Script[None]:
    """Insert a new backfill. The backfiller of any server starts its executions."""
    yield Insert("backfills", COLUMNS, [to_row(backfill)])


def to_row(b: Backfill) -> Row:
    c = b.counts
    at, name = b.at or (None, None)
    return (
        b.id, b.namespace, b.job, b.trigger, b.since, b.until, b.newest_first, b.force, b.max_concurrent, b.priority,
        b.params, b.state, at, name, c.total, c.already, c.unknown, c.started, c.succeeded, c.failed, c.ended,
        b.first_at, b.last_at, b.known_from, b.note, b.created_by, b.created_at, b.completed_at,
    )  # fmt: skip


def read(row: Row) -> Backfill:
    """Read a backfill from its columns."""
    return Backfill(
        id=row[0], namespace=row[1], job=row[2], trigger=row[3], since=row[4], until=row[5],
        newest_first=bool(row[6]), force=bool(row[7]), max_concurrent=row[8], priority=row[9], params=row[10],
        state=row[11], at=None if row[12] is None else (row[12], row[13]),
        counts=BackfillCounts(
            total=row[14], already=row[15], unknown=row[16], started=row[17], succeeded=row[18], failed=row[19],
            ended=row[20],
        ),
        first_at=row[21], last_at=row[22], known_from=row[23], note=row[24], created_by=row[25], created_at=row[26],
        completed_at=row[27],
    )  # fmt: skip


def get(backfill_id: UUID, namespace: int) -> Script[Backfill | None]:
    """Return a backfill, or None."""
    rows = yield Fetch(GET, (backfill_id, namespace))
    return read(rows[0]) if rows else None


def page(
    namespace: int, before: UUID, job: UUID | None, state: BackfillState | None, limit: int
) -> Script[list[Backfill]]:
    """Return the backfills of a namespace that were created before the backfill `before`, newest first."""
    rows = yield Fetch(PAGE, (namespace, before, job, state, limit))
    return [read(row) for row in rows]


def unfinished(limit: int, after: UUID = FIRST) -> Script[list[tuple[UUID, UUID]]]:
    """Return the backfills after an id with fires to start or live executions to settle, each with its job."""
    rows = yield Fetch(OPEN, (after, limit))
    return [(row[0], row[1]) for row in rows]


def change(
    backfill_id: UUID, namespace: int, state: BackfillState, among: Sequence[BackfillState]
) -> Script[Backfill | None]:
    """Set a backfill's state if its present state is in `among`.

    Return the backfill as it was before; None if it does not exist.
    """
    rows = yield Fetch(LOCK, (backfill_id, namespace))
    if not rows:
        return None
    before = read(rows[0])
    if before.state in among:
        yield Fetch(SET_STATE, (backfill_id, state, ""))
    return before


def runs(backfill_id: UUID, after: tuple[Instant, UUID], limit: int) -> Script[list[BackfillRun]]:
    """Return the fires that a backfill ran, ordered by fire time."""
    rows = yield Fetch(RUNS, (backfill_id, *after, limit))
    return [BackfillRun(row[0], row[1], row[2], row[3], bool(row[4]), row[5]) for row in rows]


def live_runs(backfill_id: UUID) -> Script[list[tuple[UUID, Instant, UUID]]]:
    """Return the runs of a backfill without a recorded end, as (trigger, instant, execution)."""
    rows = yield Fetch(LIVE_RUNS, (backfill_id,))
    return [(row[0], row[1], row[2]) for row in rows]


class UnfinishedBackfills(Struct, frozen=True):
    """The uncompleted backfills of one job in one state: their number, and the sum of their counters."""

    namespace: int
    job: str
    state: BackfillState
    backfills: int
    counts: BackfillCounts


def count_unfinished(most: int) -> Script[list[UnfinishedBackfills]]:
    """Count the uncompleted backfills of all namespaces, by job and state."""
    rows = yield Fetch(COUNT_UNFINISHED, (most,))
    fields = BackfillCounts.__struct_fields__
    return [
        UnfinishedBackfills(
            row[0], row[1], row[2], row[3], BackfillCounts(**dict(zip(fields, map(int, row[4:]), strict=True)))
        )
        for row in rows
    ]


def sweep(cutoffs: Cutoffs, most: int = 1000) -> Script[bool]:
    """Delete backfills that were completed long ago; return true if there may be more."""
    gone = yield Fetch(OLD_RUNS, (cutoffs.executions, most))
    yield Fetch(OLD, (cutoffs.executions,))
    return len(gone) == most


def _cancel(backfill_id: UUID, namespace: int, now: Instant) -> Script[object]:
    return (yield from change(backfill_id, namespace, "cancelled", ["running", "paused", "cancelled"]))


HOLDINGS = Holdings(
    records=(
        records(
            "backfill_runs",
            "backfill, at, trigger_id",
            "backfill IN (SELECT id FROM backfills WHERE namespace = $1 AND created_at < $2 AND state NOT IN"
            " ('running', 'paused'))",
        ),
        records("backfills", "id", "namespace = $1 AND created_at < $2 AND state NOT IN ('running', 'paused')"),
    ),
    under_way=PendingWork(
        "backfill",
        Statement(
            "namespace_backfills",
            "SELECT id FROM backfills WHERE namespace = $1 AND created_at < $2 AND state IN ('running', 'paused')"
            " ORDER BY id",
        ),
        _cancel,
    ),
)
