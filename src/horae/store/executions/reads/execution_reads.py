"""Reads of executions by id, and of their attempts.

One statement reads all four shelves, because four statements could miss an item that moves between shelves. Each shelf
is read by its key (parcel, lo).
"""

from collections.abc import Sequence
from functools import lru_cache
from uuid import UUID

import msgspec
from msgspec import Raw, Struct, structs

from horae.env import Instant
from horae.model.base.ids import execution_id, index_of, parcel_of
from horae.model.base.packing import Packed
from horae.model.executions.execution import Execution, UnsuccessfulAttempt
from horae.model.executions.hint import Offer
from horae.model.executions.parcel import extra_of
from horae.model.executions.settle import timing_of
from horae.model.executions.show_execution import read_failure, status_of
from horae.store.base.shelves import Columns
from horae.store.executions import first_starts
from horae.store.script import Fetch, ForEach, Row, Script, Statement

# The columns in which slices of all shelves are read. PostgreSQL needs their types for the NULLs of missing columns.
SLICE_COLUMNS: tuple[tuple[str, str], ...] = (
    ("lo", "int"), ("hi", "int"), ("attempt", "int"), ("failures", "int"), ("losses", "int"), ("state", "text"),
    ("reason", "text"), ("wake_at", "bigint"), ("queued_at", "bigint"), ("started_at", "bigint"),
    ("completed_at", "bigint"), ("session", "uuid"), ("worker", "text"), ("exit_code", "int"),
)  # fmt: skip
SHELF_EXPRESSIONS: dict[str, dict[str, str]] = {
    "waiting": {"state": "'waiting'", "reason": "reason", "wake_at": "wake_at"},
    "queued": {"state": "'queued'", "reason": "''", "queued_at": "queued_at"},
    "running": {
        "state": "'running'", "reason": "''", "queued_at": "queued_at", "session": "session",
        "started_at": "coalesce(started_at, granted_at)",
    },
    "history": {name: name for name in (
        "state", "reason", "queued_at", "started_at", "completed_at", "worker", "exit_code",
    )},
}  # fmt: skip
_ALWAYS = ("lo", "hi", "attempt", "failures", "losses")


def shelf_columns(shelf: str) -> str:
    """Return SLICE_COLUMNS as a list of SQL expressions on a shelf."""
    has = {name: name for name in _ALWAYS} | SHELF_EXPRESSIONS[shelf]
    return ", ".join(f"{has.get(name, f'NULL::{kind}')} AS {name}" for name, kind in SLICE_COLUMNS)


def _slice(shelf: str, alias: str) -> str:
    """Return SQL that joins the slice of a shelf with the given item: the last slice that begins at or before it."""
    first = f"SELECT max(x.lo) FROM {shelf} x WHERE x.parcel = given.parcel AND x.lo <= given.item"
    return (
        f" LEFT JOIN {shelf} {alias} ON {alias}.parcel = given.parcel AND {alias}.lo = ({first})"
        f" AND {alias}.hi > given.item"
    )


def _any(column: str, aliases: str = "wqrh") -> str:
    return f"coalesce({', '.join(f'{alias}.{column}' for alias in aliases)})"


_LAST_ERROR = (
    "(SELECT a.error FROM attempts a WHERE a.parcel = given.parcel AND a.lo <= given.item AND a.hi > given.item"
    " ORDER BY a.attempt DESC LIMIT 1)"
)
# An item is on one shelf, so at most one of the four joined slices exists.
MANY = Statement(
    "executions",
    "SELECT given.parcel, given.item, p.job, p.version, p.namespace, p.queue, p.priority, p.due_at, p.parent,"
    " p.submitted_at, j.name AS job_name, j.state AS job_state, u.name AS queue_name, l.needs,"
    f" {_any('lo')} AS lo, {_any('attempt')} AS attempt, {_any('failures')} AS failures, {_any('losses')} AS losses,"
    " CASE WHEN w.lo IS NOT NULL THEN 'waiting' WHEN q.lo IS NOT NULL THEN 'queued'"
    f" WHEN r.lo IS NOT NULL THEN 'running' ELSE h.state END AS state, {_any('reason', 'wh')} AS reason, w.wake_at,"
    f" {_any('queued_at', 'qrh')} AS queued_at, coalesce(r.started_at, r.granted_at, h.started_at) AS started_at,"
    " h.completed_at, r.session, coalesce(c.worker, h.worker) AS worker, c.last_seen, h.exit_code,"
    " h.ends AS result_ends, h.results, h.timings,"
    f" CASE WHEN w.reason = 'retry' THEN {_LAST_ERROR} ELSE h.error END AS error, p.ends, p.items, p.extras,"
    " g.attempt AS noted, g.percent, g.message, b.content"
    " FROM given JOIN parcels p ON p.id = given.parcel AND p.namespace = given.namespace JOIN jobs j ON j.id = p.job"
    " LEFT JOIN queues u ON u.id = p.queue LEFT JOIN lanes l ON l.id = p.lane"
    f"{_slice('waiting', 'w')}{_slice('queued', 'q')}{_slice('running', 'r')}{_slice('history', 'h')}"
    " LEFT JOIN sessions c ON c.id = r.session"
    " LEFT JOIN progress g ON g.parcel = given.parcel AND g.item = given.item"
    " LEFT JOIN blobs b ON b.parcel = given.parcel AND b.item = given.item",
)
SIZES = Statement(
    "execution_sizes",
    "SELECT given.parcel, given.item, length(p.items) + coalesce((SELECT length(h.results) FROM history h"
    " WHERE h.parcel = given.parcel AND h.lo <= given.item AND h.hi > given.item), 0) + coalesce(length(b.content), 0)"
    " FROM given JOIN parcels p ON p.id = given.parcel"
    " LEFT JOIN blobs b ON b.parcel = given.parcel AND b.item = given.item",
)
GIVEN: Columns = (("parcel", "uuid"), ("item", "int"), ("namespace", "int"))
OLDEST = Statement(
    "oldest_parcel",
    "SELECT (SELECT p.id FROM parcels p ORDER BY p.id LIMIT 1) AS id,"
    " (SELECT value FROM store WHERE key = 'created_at') AS created_at",
)
OFFERS = Statement(
    "offers", "SELECT queues, capabilities, id FROM sessions WHERE state = 'live' AND namespace = $1 LIMIT 2000"
)
EVER_OFFERED = Statement("ever_offered", "SELECT DISTINCT capabilities FROM sessions WHERE namespace = $1 LIMIT 5000")
ATTEMPTS = Statement(
    "attempts_of",
    "SELECT attempt, worker, outcome, started_at, ended_at, exit_code, error FROM attempts"
    " WHERE parcel = $1 AND lo <= $2 AND hi > $2 ORDER BY attempt",
)


class FoundExecution(Struct, frozen=True, kw_only=True):
    """An execution with the names of its job and queue."""

    execution: Execution
    job_name: str
    job_state: str = "active"
    queue_name: str | None = None
    needs: tuple[str, ...] = ()


Ref = tuple[int, UUID]  # a namespace and an execution of it


def by_ids(refs: Sequence[Ref]) -> Script[dict[Ref, FoundExecution]]:
    """Return executions by id, at one instant; those that are on no shelf of their namespace are left out."""
    rows = yield ForEach(
        MANY, GIVEN, [(parcel_of(execution), index_of(execution), namespace) for namespace, execution in refs]
    )
    found = [_found(row) for row in rows if row[18] is not None]
    starts = yield from first_starts.read(one.execution for one in found)
    if starts:
        found = [structs.replace(one, execution=first_starts.with_start(one.execution, starts)) for one in found]
    return {(one.execution.namespace, one.execution.id): one for one in found}


def sizes(ids: Sequence[UUID]) -> Script[dict[UUID, int]]:
    """Return the bytes of params and results that `by_ids` reads for each execution."""
    rows = yield ForEach(SIZES, GIVEN[:2], [(parcel_of(execution), index_of(execution)) for execution in ids])
    return {execution_id(parcel, item): int(size) for parcel, item, size in rows}


def by_id(execution: UUID, namespace: int) -> Script[FoundExecution | None]:
    """Return one execution; None when it is on no shelf of this namespace."""
    found = yield from by_ids([(namespace, execution)])
    return found.get((namespace, execution))


def _found(row: Row) -> FoundExecution:
    (parcel, item, job, version, namespace, queue, priority, due_at, parent, submitted_at, name, job_state, queue_name,
     needs, lo, attempt, failures, losses, state, reason, wake_at, queued_at, started_at, completed_at, session, worker,
     last_seen, exit_code, result_ends, results, timings, error, ends, items, extras, noted, percent, message,
     content) = row  # fmt: skip
    started, completed = timing_of(timings, item - lo, started_at, completed_at)
    fresh = noted == attempt
    reason = reason or ""
    execution = Execution(
        id=execution_id(parcel, item), job=job, version=version, namespace=namespace, queue=queue, priority=priority,
        due_at=due_at, parent=parent, submitted_at=submitted_at, state=status_of(state, reason), attempt=attempt,
        failures=failures, losses=losses, reason=reason, wake_at=wake_at, queued_at=queued_at, started_at=started,
        completed_at=completed, session=session, worker=worker, last_seen=last_seen, exit_code=exit_code,
        result=result_of(result_ends, results, item - lo, content), error=read_failure(error),
        params=Raw(Packed(ends, items).one(item)), extra=extra_of(extras, item),
        percent=percent if fresh else None, message=message if fresh and message else "",
    )  # fmt: skip
    return FoundExecution(
        execution=execution, job_name=name, job_state=job_state, queue_name=queue_name, needs=needs_of(needs)
    )


@lru_cache(4096)
def needs_of(text: str | None) -> tuple[str, ...]:
    return () if text is None else tuple(msgspec.json.decode(text))


def result_of(ends: bytes | None, results: bytes | None, index: int, content: bytes | None = None) -> Raw | None:
    """Return the result of one item, or None without a result.

    Large results are stored as blobs: `content` is the blob. If it was not read, the result is empty.
    """
    if results is None or ends is None:
        return None
    return Raw(Packed(ends, results).one(index) or content or b"")


def oldest() -> Script[tuple[UUID | None, Instant]]:
    """Return the oldest stored parcel, and the instant at which the store was created."""
    rows = yield Fetch(OLDEST)
    return rows[0][0], int(rows[0][1] or 0)


def offers(namespace: int) -> Script[list[Offer]]:
    """Return the queues and capabilities of live sessions."""
    rows = yield Fetch(OFFERS, (namespace,))
    return [
        Offer(frozenset(msgspec.json.decode(q)), frozenset(msgspec.json.decode(c)), session) for q, c, session in rows
    ]


def ever_offered(namespace: int) -> Script[list[frozenset[str]]]:
    """Return the different capabilities of all stored sessions, including sessions that ended lately."""
    rows = yield Fetch(EVER_OFFERED, (namespace,))
    return [frozenset(msgspec.json.decode(row[0])) for row in rows]


def attempts(execution: UUID) -> Script[list[UnsuccessfulAttempt]]:
    """Return the attempts that did not succeed, in order."""
    rows = yield Fetch(ATTEMPTS, (parcel_of(execution), index_of(execution)))
    return [
        UnsuccessfulAttempt(
            attempt=attempt, worker=worker, outcome=outcome, started_at=started_at, ended_at=ended_at,
            exit_code=exit_code, error=read_failure(error),
        )
        for attempt, worker, outcome, started_at, ended_at, exit_code, error in rows
    ]  # fmt: skip
