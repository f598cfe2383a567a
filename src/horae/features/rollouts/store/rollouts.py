"""Rollouts: their start, change and end, and the counts of their versions.

The start, each change and the end of a rollout give it a new number; the job's row has the number of the active
rollout. If the number has changed since the version of a new execution was chosen, the version is chosen again. The end
locks the job's row, its timers and the rows of the jobs that depend on it, as a change of the job does. So an execution
whose version was chosen earlier is either committed before the end, or the choice is repeated.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

import msgspec

from horae.env import Instant
from horae.features.rollouts.model.values import Tally, buckets_of
from horae.model.admission.keys import keys_of
from horae.model.definitions.rollout import Rollout, RolloutAttempts, RolloutPlan, RolloutState
from horae.store.base.shelves import Columns
from horae.store.definitions import jobs
from horae.store.definitions.rollouts import newest
from horae.store.script import Fetch, ForEach, Insert, Script, Statement
from horae.store.tenancy.holdings import OF_JOBS, Holdings, rows
from horae.store.triggers import triggers
from horae.store.triggers.dependencies import dependents

OWNER = Statement("job_of_rollout", f"SELECT {jobs.JOB} {jobs.FROM} WHERE j.id = $1")
SET = Statement("set_rollout", "UPDATE jobs SET rollout = $2, updated_at = $3 WHERE id = $1")
PUT = (
    "ON CONFLICT (job) DO UPDATE SET number = excluded.number, state = excluded.state, plan = excluded.plan,"
    " since = excluded.since, changed_at = excluded.changed_at, cause = excluded.cause,"
    " changed_by = excluded.changed_by"
)
_ROW: Columns = (
    ("job", "uuid"), ("number", "int"), ("state", "text"), ("plan", "text"), ("since", "bigint"),
    ("changed_at", "bigint"), ("cause", "text"), ("changed_by", "text"),
)  # fmt: skip
CHOSEN = Statement("chosen_parcels", "SELECT p.id, p.version, p.keys FROM given JOIN parcels p ON p.id = given.parcel")
_COUNTS: Columns = (
    ("job", "uuid"), ("since", "bigint"), ("version", "int"), ("outcome", "text"), ("bucket", "int"),
    ("server", "uuid"), ("n", "bigint"),
)  # fmt: skip
_ADD = "ON CONFLICT (job, since, version, outcome, bucket, server) DO UPDATE SET n = rollout_counts.n + excluded.n"
TALLIES = Statement(
    "rollout_tallies",
    "SELECT c.version, c.outcome, c.bucket, sum(c.n) FROM rollout_counts c WHERE c.job = $1 AND c.since = $2"
    " GROUP BY c.version, c.outcome, c.bucket",
)
FORGET = Statement("forget_rollout_counts", "DELETE FROM rollout_counts WHERE job = $1 AND since <> $2")
HOLDINGS = Holdings(rows=(rows("rollout_counts", "job, since, version, outcome, bucket, server", OF_JOBS),))


def job(job_id: UUID) -> Script[jobs.StoredJob | None]:
    """Return the job of a rollout."""
    rows = yield Fetch(OWNER, (job_id,))
    return jobs.stored(rows[0]) if rows else None


def lock(job: UUID, namespace: int) -> Script[tuple[int, str] | None]:
    """Lock a job, its triggers and its dependents, so that no version is chosen now; return the version and state.

    Return None if the job does not exist.
    """
    locked = yield from jobs.lock(job, namespace)
    if locked is not None:
        yield from triggers.of_job(job, lock=True)  # guard: rollout-locks-triggers
        yield from dependents.lock_around({job})
    return locked


def begin(job: UUID, plan: RolloutPlan, by: str, now: Instant) -> Script[Rollout]:
    """Begin a rollout of a locked job, or change the shares of the active one.

    The counts of an active rollout are kept unless its versions change.
    """
    before = yield from newest(job)
    goes_on = before is not None and before.state == "on" and before.plan.shares.keys() == plan.shares.keys()
    rollout = Rollout(
        job=job, number=1 if before is None else before.number + 1, state="on", plan=plan,
        since=before.since if before is not None and goes_on else now if before is None else max(now, before.since + 1),
        changed_at=now, by=by,
    )  # fmt: skip
    yield from _put(rollout)
    yield Fetch(FORGET, (job, rollout.since))
    yield Fetch(SET, (job, rollout.number, now))
    return rollout


def end(
    job: UUID, number: int | None, state: RolloutState, cause: str, by: str, now: Instant
) -> Script[Rollout | None]:
    """End the rollout of a locked job. Return None if no rollout is active, or if `number` is that of another one."""
    before = yield from newest(job)
    if before is None or before.state != "on" or number not in (None, before.number):
        return None
    rollout = msgspec.structs.replace(before, number=before.number + 1, state=state, changed_at=now, cause=cause, by=by)
    yield from _put(rollout)
    yield Fetch(SET, (job, None, now))
    return rollout


def _put(rollout: Rollout) -> Script[None]:
    row = (
        rollout.job, rollout.number, rollout.state, msgspec.json.encode(rollout.plan).decode(), rollout.since,
        rollout.changed_at, rollout.cause, rollout.by,
    )  # fmt: skip
    yield Insert("rollouts", _ROW, [row], conflict=PUT)


def count(server: UUID, trials: Sequence[RolloutAttempts]) -> Script[None]:
    """Add attempts to the counts of the versions that they ran; `server` is the id of this server."""
    rows = yield ForEach(
        CHOSEN, (("parcel", "uuid"),), [(parcel,) for parcel in sorted({one.parcel for one in trials})]
    )
    chosen: Mapping[UUID, tuple[int, int]] = {
        parcel: (version, keys_of(keys).rollout) for parcel, version, keys in rows
    }
    sums: dict[tuple[UUID, int, int, str, int], int] = {}
    for one in trials:
        version, since = chosen.get(one.parcel, (0, 0))
        for bucket, n in buckets_of(one) if since else ():
            key = (one.job, since, version, one.outcome, bucket)
            sums[key] = sums.get(key, 0) + n
    if sums:
        yield Insert("rollout_counts", _COUNTS, [(*key, server, sums[key]) for key in sorted(sums)], conflict=_ADD)


def tallies(job: UUID, since: Instant) -> Script[dict[int, Tally]]:
    """Return the counts of each version since a rollout began, over all servers."""
    rows = yield Fetch(TALLIES, (job, since))
    found: dict[int, Tally] = {}
    for version, outcome, bucket, n in rows:
        found.setdefault(version, Tally()).add(outcome, bucket, int(n))
    return found
