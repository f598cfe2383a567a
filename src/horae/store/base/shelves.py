"""The four shelves: their columns, and the conversion of slices to rows and back."""

from collections.abc import Iterable, Sequence
from uuid import UUID

import msgspec

from horae.model.executions.settle import FailedAttempt, FinishedSlice
from horae.model.executions.slice import QueuedSlice, RunningSlice, Slice, WaitingSlice
from horae.store.script import ColumnType, ForEach, Insert, Row, Statement
from horae.store.tables import LIVE_SHELVES

Columns = tuple[tuple[str, ColumnType], ...]

SLICE: Columns = (
    ("parcel", "uuid"), ("lo", "int"), ("hi", "int"), ("job", "uuid"), ("queue", "int"), ("namespace", "int"),
    ("attempt", "int"), ("failures", "int"), ("losses", "int"), ("alone", "smallint"), ("width", "int"),
    ("flags", "smallint"),
)  # fmt: skip
WAITING: Columns = (*SLICE, ("wake_at", "bigint"), ("reason", "text"), ("gate", "text"), ("rank", "bigint"))
QUEUED: Columns = (
    *SLICE, ("lane", "int"), ("rank", "bigint"), ("queued_at", "bigint"), ("expires_at", "bigint"),
)  # fmt: skip
RUNNING: Columns = (
    *SLICE, ("session", "uuid"), ("channel", "smallint"), ("n", "bigint"), ("lane", "int"), ("rank", "bigint"),
    ("queued_at", "bigint"), ("granted_at", "bigint"), ("started_at", "bigint"),
)  # fmt: skip
HISTORY: Columns = (
    ("parcel", "uuid"), ("lo", "int"), ("hi", "int"), ("job", "uuid"), ("queue", "int"), ("namespace", "int"),
    ("attempt", "int"), ("failures", "int"), ("losses", "int"), ("state", "text"), ("reason", "text"),
    ("worker", "text"), ("queued_at", "bigint"), ("started_at", "bigint"), ("completed_at", "bigint"),
    ("exit_code", "int"), ("ends", "bytea"), ("results", "bytea"), ("timings", "bytea"), ("error", "text"),
    ("flags", "smallint"),
)  # fmt: skip
ATTEMPTS: Columns = (
    ("parcel", "uuid"), ("lo", "int"), ("hi", "int"), ("attempt", "int"), ("worker", "text"), ("session", "uuid"),
    ("outcome", "text"), ("kind", "text"), ("started_at", "bigint"), ("ended_at", "bigint"), ("exit_code", "int"),
    ("error", "text"),
)  # fmt: skip
SPAN: Columns = (("parcel", "uuid"), ("lo", "int"))
ITEM: Columns = (("parcel", "uuid"), ("item", "int"))
REQUESTS: Columns = (
    ("parcel", "uuid"), ("item", "int"), ("attempt", "int"), ("kind", "text"), ("session", "uuid"),
    ("reason", "text"), ("created_at", "bigint"),
)  # fmt: skip


def names(columns: Columns, prefix: str = "") -> str:
    """Return the names of columns as a list in SQL, each after `prefix`, such as "w."."""
    return ", ".join(prefix + name for name, _ in columns)


def waiting(row: Row) -> WaitingSlice:
    return WaitingSlice(
        parcel=row[0], lo=row[1], hi=row[2], job=row[3], queue=row[4], namespace=row[5], attempt=row[6],
        failures=row[7], losses=row[8], alone=row[9], width=row[10], flags=row[11], wake_at=row[12],
        reason=row[13], gate=row[14], rank=row[15],
    )  # fmt: skip


def queued(row: Row) -> QueuedSlice:
    return QueuedSlice(
        parcel=row[0], lo=row[1], hi=row[2], job=row[3], queue=row[4], namespace=row[5], attempt=row[6],
        failures=row[7], losses=row[8], alone=row[9], width=row[10], flags=row[11], lane=row[12],
        rank=row[13], queued_at=row[14], expires_at=row[15],
    )  # fmt: skip


def running(row: Row) -> RunningSlice:
    return RunningSlice(
        parcel=row[0], lo=row[1], hi=row[2], job=row[3], queue=row[4], namespace=row[5], attempt=row[6],
        failures=row[7], losses=row[8], alone=row[9], width=row[10], flags=row[11], session=row[12],
        channel=row[13], n=row[14], lane=row[15], rank=row[16], queued_at=row[17], granted_at=row[18],
        started_at=row[19],
    )  # fmt: skip


def _slice_row(s: Slice) -> tuple[object, ...]:
    return (
        s.parcel, s.lo, s.hi, s.job, s.queue, s.namespace, s.attempt, s.failures, s.losses, s.alone, s.width, s.flags,
    )  # fmt: skip


def put_waiting(slices: Iterable[WaitingSlice]) -> Insert:
    return Insert("waiting", WAITING, [(*_slice_row(s), s.wake_at, s.reason, s.gate, s.rank) for s in slices])


def put_queued(slices: Iterable[QueuedSlice]) -> Insert:
    rows = [(*_slice_row(s), s.lane, s.rank, s.queued_at, s.expires_at) for s in slices]
    return Insert("queued", QUEUED, rows)


def put_running(slices: Iterable[RunningSlice]) -> Insert:
    rows = [
        (*_slice_row(s), s.session, s.channel, s.n, s.lane, s.rank, s.queued_at, s.granted_at, s.started_at)
        for s in slices
    ]
    return Insert("running", RUNNING, rows)


def put_finished(finished: Iterable[FinishedSlice]) -> Insert:
    return Insert("history", HISTORY, [_history_row(f) for f in finished])


def _history_row(f: FinishedSlice) -> tuple[object, ...]:
    s, results = f.slice, f.results
    return (
        s.parcel, s.lo, s.hi, s.job, s.queue, s.namespace, s.attempt, s.failures, s.losses, f.state, f.reason,
        f.worker, f.queued_at, f.started_at, f.completed_at, f.exit_code,
        results.ends if results else None, results.blob if results else None, f.timings, json_or_none(f.error),
        s.flags,
    )  # fmt: skip


def put_blobs(blobs: Iterable[tuple[UUID, int, bytes]]) -> Insert:
    """Insert large results, each stored in a row of its own; they replace results of an earlier attempt."""
    newest = "ON CONFLICT (parcel, item) DO UPDATE SET content = excluded.content"
    return Insert("blobs", (*ITEM, ("content", "bytea")), list(blobs), conflict=newest)  # guard: result-stored-once


def put_attempts(tried: Sequence[FailedAttempt], worker: str, session: object) -> Insert:
    rows = [
        (t.parcel, t.lo, t.hi, t.attempt, worker, session, t.outcome, t.error.kind if t.error else "", t.started_at,
         t.ended_at, t.exit_code, json_or_none(t.error))
        for t in tried
    ]  # fmt: skip
    return Insert("attempts", ATTEMPTS, rows)


def json_or_none(value: object) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


def is_live(parcel: str, item: str) -> str:
    """Return the SQL condition that an item has not ended; `parcel` and `item` are SQL expressions."""
    found = " OR ".join(
        f"EXISTS (SELECT 1 FROM {shelf} s WHERE s.parcel = {parcel} AND s.lo <= {item} AND s.hi > {item})"
        for shelf in LIVE_SHELVES
    )
    return f"({found})"


_TAKE = {
    shelf: Statement(f"take_{shelf}", f"DELETE FROM {shelf} WHERE (parcel, lo) IN (SELECT parcel, lo FROM given)")
    for shelf in LIVE_SHELVES
}


def take(shelf: str, slices: Iterable[Slice]) -> ForEach:
    """Delete slices from a shelf by parcel and first item; the caller has locked their rows."""
    return ForEach(_TAKE[shelf], SPAN, [(s.parcel, s.lo) for s in slices])
