"""Audit of joins: it checks that every complete join has started its dependent, and that every execution that waits for
other jobs has a join.

Each check is one statement, so it reads one snapshot. This suffices because a transaction that changes a join changes
the execution of its dependent, too.
"""

from collections.abc import Iterable, Iterator
from uuid import UUID

from horae.env import Instant, Micros
from horae.model.base.ids import execution_id, index_of, parcel_of
from horae.model.base.instant import format_instant
from horae.model.triggers.dependency import NO_INTERVAL
from horae.store.base import shelves
from horae.store.executions.reads.audit import MOST, PATIENCE, Finding
from horae.store.script import Fetch, ForEach, Row, Script, Statement
from horae.store.triggers.dependencies import waits
from horae.store.triggers.dependencies.dependents import TIMED
from horae.store.triggers.dependencies.starts import REASON, Consequences, NewId

_OWN = f"EXISTS (SELECT 1 FROM triggers g WHERE g.job = j.id AND {TIMED})"
_UNMET = (
    "EXISTS (SELECT 1 FROM dependencies d WHERE d.job = s.dependent AND NOT EXISTS (SELECT 1 FROM join_parts p"
    " WHERE p.dependent = s.dependent AND p.step = s.step AND p.interval_start = s.interval_start"
    " AND p.upstream = d.upstream AND p.met))"
)
# Two kinds of complete joins are no findings. The execution was locked, so it is checked again, before the deadline. Or
# the job has a schedule and there is no execution yet, because the schedule starts it.
UNSTARTED = Statement(
    "audit_unstarted",
    "SELECT j.id AS job, j.name, s.interval_start, s.execution FROM joins s JOIN jobs j ON j.id = s.dependent"
    " WHERE s.state = 'open' AND j.state <> 'deleted' AND EXISTS (SELECT 1 FROM dependencies d WHERE d.job = j.id)"
    f" AND NOT {_UNMET} AND (s.wake_at IS NULL OR s.wake_at = s.deadline OR s.wake_at < $1)"
    f" AND (s.execution IS NOT NULL OR NOT {_OWN}) LIMIT $2",
)
FORGOTTEN = Statement(
    "audit_forgotten_joins",
    "SELECT j.id AS job, j.name, s.interval_start, s.execution FROM joins s JOIN jobs j ON j.id = s.dependent"
    " WHERE s.wake_at < $1 LIMIT $2",
)
UNUSED = Statement(
    "audit_unused",
    "SELECT j.id AS job, j.name FROM dependents s JOIN jobs j ON j.id = s.job WHERE j.state <> 'deleted'"
    " AND EXISTS (SELECT 1 FROM dependencies d WHERE d.job = j.id)"
    f" AND NOT EXISTS (SELECT 1 FROM dependencies d WHERE d.job = j.id AND d.unused = 0) AND NOT {_OWN} LIMIT $1",
)
UNAWAITED = Statement(
    "audit_unawaited",
    f"SELECT w.parcel, w.lo, w.hi, w.job FROM waiting w WHERE w.reason = '{REASON}' ORDER BY w.parcel, w.lo",
)
AWAITED = Statement("audit_awaited", "SELECT execution FROM joins WHERE state = 'open' AND execution IS NOT NULL")
WAKE = Statement(
    "audit_wake_unawaited",
    "UPDATE waiting SET wake_at = $3, reason = 'delay', gate = NULL FROM given WHERE waiting.parcel = given.parcel"
    f" AND waiting.lo = given.lo AND waiting.reason = '{REASON}'",
)


def audit_joins(now: Instant, patience: Micros | None = PATIENCE) -> Script[list[Finding]]:
    """Return the findings on joins.

    A join that was due for a check more than `patience` microseconds ago is a finding; with None, never.
    """
    overdue = now - (patience or 0)
    found = [_unstarted(row) for row in (yield Fetch(UNSTARTED, (overdue, MOST)))]
    found += [_unused(row) for row in (yield Fetch(UNUSED, (MOST,)))]
    if patience is not None:
        found += [_forgotten(row) for row in (yield Fetch(FORGOTTEN, (overdue, MOST)))]
    awaited = {row[0] for row in (yield Fetch(AWAITED))}
    found += _unawaited((yield Fetch(UNAWAITED)), awaited)
    return found[:MOST]


def _unstarted(row: Row) -> Finding:
    return _finding(row, "not-started", "every upstream has met its condition, but the job was not started")


def _forgotten(row: Row) -> Finding:
    return _finding(row, "overdue", "its join is due for a check, but was not checked")


def _finding(row: Row, kind: str, detail: str) -> Finding:
    job, name, start, execution = row
    interval = "" if start == NO_INTERVAL else f" from {format_instant(start)} on"
    parcel, item = (UUID(int=0), 0) if execution is None else (parcel_of(execution), index_of(execution))
    return Finding(
        kind="not-started" if kind == "not-started" else "overdue", shelf="joins", parcel=parcel, lo=item, hi=item + 1,
        detail=f'job "{name}"{interval}: {detail}', job=job,
    )  # fmt: skip


def _unused(row: Row) -> Finding:
    detail = f'job "{row[1]}": each upstream has a success that was not used, but the job was not started'
    return Finding(kind="not-started", shelf="joins", parcel=UUID(int=0), lo=0, hi=1, detail=detail, job=row[0])


def _unawaited(rows: Iterable[Row], awaited: set[UUID]) -> Iterator[Finding]:
    for parcel, lo, hi, job in rows:
        if any(execution_id(parcel, item) not in awaited for item in range(lo, hi)):
            detail = "it waits for other jobs, but has no join"
            yield Finding(kind="never-wakes", shelf="waiting", parcel=parcel, lo=lo, hi=hi, detail=detail, job=job)


def repair_joins(findings: Iterable[Finding], new_id: NewId, now: Instant) -> Script[int]:
    """Judge the joins of jobs in findings again, and let slices without a join wait no longer.

    Return the number of jobs and slices.
    """
    found = list(findings)
    jobs = sorted({f.job for f in found if f.shelf == "joins" and f.job is not None})
    for job in jobs:
        yield from waits.reconsider(job, new_id, now, Consequences())
    stranded = [f for f in found if f.shelf == "waiting" and f.job is not None]
    if stranded:
        yield ForEach(WAKE, shelves.SPAN, [(f.parcel, f.lo) for f in stranded], (now,))
    return len(jobs) + len(stranded)
