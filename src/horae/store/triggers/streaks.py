"""Automatic pauses: a job's triggers are paused after a number of failed executions in a row.

The table `streaks` has no counter of failures: they are counted from `history` each time. Its row of a job has the
instant from which failures count, and whether the job's triggers are paused because of them. It also has the reason of
a pause of the whole job, see `pause_for`.
"""

from collections.abc import Collection
from uuid import UUID

import msgspec

from horae.env import Instant
from horae.model.base.ids import execution_id
from horae.model.definitions.job import Spec
from horae.model.executions.streak import AutoPause, EndedExecutions, failure_streak
from horae.store.definitions import jobs
from horae.store.script import Among, Fetch, Row, Script, Statement
from horae.store.triggers import triggers
from horae.store.triggers.triggers import Owner

AT_LEAST = 64  # slices of history to read at least; more for a job with a high `pauseAfter`
LATELY = Statement(
    "failed_lately", "SELECT job FROM job_minutes WHERE minute >= $1 AND failed > 0 ORDER BY minute LIMIT 100000"
)
SPEC = Statement(
    "spec_of_job",
    "SELECT j.namespace, v.spec FROM jobs j JOIN job_versions v ON v.job = j.id AND v.version = j.version"
    " WHERE j.id = $1 AND j.state <> 'deleted'",
)
NEWEST = Statement(
    "newest_of_job",
    "SELECT hi - lo, state, completed_at, parcel, hi FROM history WHERE job = $1 ORDER BY parcel DESC LIMIT $2",
)
SINCE = Statement("streak_of_job", "SELECT since, paused_at FROM streaks WHERE job = $1")
PUT = Statement(
    "pause_by_streak",
    "INSERT INTO streaks (job, since, paused_at, failures, execution, triggers) VALUES ($1, 0, $2, $3, $4, $5)"
    " ON CONFLICT (job) DO UPDATE SET paused_at = excluded.paused_at, failures = excluded.failures,"
    " execution = excluded.execution, triggers = excluded.triggers",
)
PUT_REASON = Statement(
    "pause_by_reason",
    "INSERT INTO streaks (job, since, paused_at, reason) VALUES ($1, 0, $2, $3)"
    " ON CONFLICT (job) DO UPDATE SET paused_at = coalesce(streaks.paused_at, excluded.paused_at),"
    " reason = excluded.reason",
)
RESET = Statement(
    "reset_streak",
    "INSERT INTO streaks (job, since) VALUES ($1, $2) ON CONFLICT (job) DO UPDATE SET since = excluded.since,"
    " paused_at = NULL, failures = NULL, execution = NULL, triggers = NULL, reason = NULL",
)
PAUSES = Statement(
    "pauses_by_streaks",
    "SELECT job, paused_at, failures, execution, triggers, reason FROM streaks WHERE job = ANY($1)"
    " AND paused_at IS NOT NULL",
)


def failed_lately(minute: int) -> Script[set[UUID]]:
    """Return jobs with failures since a minute (minutes since the epoch)."""
    rows = yield Fetch(LATELY, (minute,))
    return {row[0] for row in rows}


def is_watched(job: UUID) -> Script[bool]:
    """Return whether a job's triggers are to be paused after failures.

    Callers check this first, because most jobs have no such rule: then nothing needs to be locked.
    """
    rows = yield Fetch(SPEC, (job,))
    return bool(rows) and msgspec.json.decode(rows[0][1], type=Spec).pause_after is not None


def pause_if_failing(job: UUID, now: Instant) -> Script[tuple[int, AutoPause] | None]:
    """Pause a job's triggers if `pauseAfter` executions failed in a row; return the namespace and the pause.

    The job is locked before the check, so that only one of several servers pauses it, and a user who resumes it at the
    same moment is not overruled.
    """
    rows = yield Fetch(SPEC, (job,))
    spec = msgspec.json.decode(rows[0][1], type=Spec) if rows else None
    if spec is None or spec.pause_after is None:
        return None
    namespace = rows[0][0]
    present = yield from jobs.lock(job, namespace)
    if present is None or present[1] != "active":
        return None
    known = yield Fetch(SINCE, (job,))
    if known and known[0][1] is not None:
        return None
    rows = yield Fetch(NEWEST, (job, max(AT_LEAST, 4 * spec.pause_after)))
    newest = sorted(rows, key=lambda row: (row[3], row[4]), reverse=True)
    found = failure_streak([read_ended(row) for row in newest], known[0][0] if known else 0)
    if found is None or found.failures < spec.pause_after:
        return None
    owner = Owner(job, namespace, present[0])
    active = [timer for timer in (yield from triggers.of_job(job, lock=True)) if timer.state == "active"]
    if not active:
        return None
    for timer in active:
        yield from triggers.set_state(timer, "paused", owner, now)
    names = tuple(timer.name for timer in active)
    encoded = msgspec.json.encode(names).decode()
    yield Fetch(PUT, (job, now, found.failures, found.execution, encoded))
    return namespace, AutoPause(job=job, at=now, failures=found.failures, execution=found.execution, triggers=names)


def read_ended(row: Row) -> EndedExecutions:
    """Read a row of `NEWEST`."""
    count, state, at, parcel, hi = row
    return EndedExecutions(count, state, at, execution_id(parcel, hi - 1))


def pauses(jobs: Collection[UUID]) -> Script[dict[UUID, AutoPause]]:
    """Return the automatic pauses of jobs or of their triggers, by job. Jobs without such a pause are left out."""
    rows = yield Among(PAUSES, sorted(jobs))
    return {
        job: AutoPause(
            job=job, at=at, failures=failures or 0, execution=execution,
            triggers=tuple(msgspec.json.decode(names or "[]")), reason=reason or "",
        )
        for job, at, failures, execution, names, reason in rows
    }  # fmt: skip


def pause_for(job: UUID, reason: str, now: Instant) -> Script[int | None]:
    """Pause a job and its executions, and store the reason. Return its namespace, or None when it is not active."""
    rows = yield Fetch(SPEC, (job,))
    if not rows or (found := (yield from jobs.lock(job, rows[0][0]))) is None or found[1] != "active":
        return None
    yield from jobs.set_state(job, "paused", now)
    for timer in (yield from triggers.of_job(job, lock=True)):
        yield from triggers.pause(timer)
    yield Fetch(PUT_REASON, (job, now, reason))
    return int(rows[0][0])


def reset(job: UUID, now: Instant) -> Script[None]:
    """Ignore earlier failures from now on, because a user resumed a trigger of the job. The caller holds its lock."""
    if (yield Fetch(SINCE, (job,))):
        yield Fetch(RESET, (job, now))


def resume(job: UUID, namespace: int, version: int, now: Instant) -> Script[bool]:
    """Resume the triggers that were paused because of failures.

    Return False when there is no such pause, or when the job is not active or no longer at this version.
    """
    if (yield from jobs.lock(job, namespace)) != (version, "active"):
        return False
    paused = (yield from pauses([job])).get(job)
    if paused is None:
        return False
    owner = Owner(job, namespace, version)
    for timer in (yield from triggers.of_job(job, lock=True)):
        if timer.name in paused.triggers:
            yield from triggers.set_state(timer, "active", owner, now)
    yield Fetch(RESET, (job, now))
    return True
