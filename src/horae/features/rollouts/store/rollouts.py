"""Rollouts: which versions new executions are chosen from, and what becomes of them.

A job's row says which rollout is on, by its number: whoever chose by another chooses again. What ends one holds the
job's row, its timers and its dependents' row, as a change of the job does: what was chosen before is there, or never.
"""

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

import msgspec

from horae.env import Instant
from horae.features.rollouts.model.values import Plan, Rollout, RolloutState, Tally, Trial
from horae.model.admission.keys import keys_of
from horae.model.definitions.job import Spec
from horae.store.base.shelves import Columns
from horae.store.definitions import jobs
from horae.store.script import Among, Fetch, ForEach, Insert, Row, Script, Statement
from horae.store.triggers import triggers
from horae.store.triggers.dependencies import dependents

COLUMNS = "r.job, r.number, r.state, r.plan, r.since, r.changed_at, r.cause, r.changed_by"
OF_JOBS = Statement("rollouts_of_jobs", f"SELECT {COLUMNS} FROM rollouts r WHERE r.job = ANY($1) AND r.state = 'on'")
NEWEST = Statement("rollout_of_job", f"SELECT {COLUMNS} FROM rollouts r WHERE r.job = $1")
OWNER = Statement("job_of_rollout", f"SELECT {jobs.JOB} {jobs.FROM} WHERE j.id = $1")
ARMS = Statement(
    "rollout_arms",
    "SELECT v.job, v.version, v.spec, v.queue, v.lane FROM given"
    " JOIN job_versions v ON v.job = given.job AND v.version = given.version",
)
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

_read_plan = msgspec.json.Decoder(Plan).decode
_read_spec = msgspec.json.Decoder(Spec).decode


class Arm(msgspec.Struct, frozen=True):
    """A version of a job, and where its executions stand in line."""

    spec: Spec
    queue: int
    lane: int


def _rollout(row: Row) -> Rollout:
    return Rollout(
        job=row[0], number=row[1], state=row[2], plan=_read_plan(row[3]), since=row[4], changed_at=row[5],
        cause=row[6], by=row[7],
    )  # fmt: skip


def newest(job: UUID) -> Script[Rollout | None]:
    """A job's newest rollout, whether it is on or not."""
    rows = yield Fetch(NEWEST, (job,))
    return _rollout(rows[0]) if rows else None


def job(id: UUID) -> Script[jobs.StoredJob | None]:
    """The job of a rollout."""
    rows = yield Fetch(OWNER, (id,))
    return jobs.stored(rows[0]) if rows else None


def on(wanted: Collection[UUID]) -> Script[dict[UUID, tuple[Rollout, dict[int, Arm]]]]:
    """The rollouts of these jobs that are on, with the versions that they choose from."""
    rows = yield Among(OF_JOBS, sorted(wanted))
    found = [_rollout(row) for row in rows]
    given = [(rollout.job, version) for rollout in found for version in sorted(rollout.plan.shares)]
    arms = (yield ForEach(ARMS, (("job", "uuid"), ("version", "int")), given)) if given else []
    known: dict[UUID, dict[int, Arm]] = {rollout.job: {} for rollout in found}
    for job, version, spec, queue, lane in arms:
        known[job][version] = Arm(_read_spec(spec), queue, lane)
    return {rollout.job: (rollout, known[rollout.job]) for rollout in found}


def hold(job: UUID, namespace: int) -> Script[tuple[int, str] | None]:
    """Lock a job and whatever chooses versions of it; its version and state."""
    locked = yield from jobs.lock(job, namespace)
    if locked is not None:
        yield from triggers.of_job(job, lock=True)  # guard: rollout-locks-triggers
        yield from dependents.lock_around({job})
    return locked


def begin(job: UUID, plan: Plan, by: str, now: Instant) -> Script[Rollout]:
    """Share out new executions of a job that is held. A rollout that is on goes on with other shares: what was counted
    of it stays, unless it is about other versions.
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
    """End the rollout of a job that is held; None when none is on, or another than the one of this number."""
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


def count(server: UUID, trials: Sequence[Trial]) -> Script[None]:
    """Add what attempts of chosen executions came to, by the version that ran."""
    rows = yield ForEach(CHOSEN, (("parcel", "uuid"),), [(id,) for id in sorted({one.parcel for one in trials})])
    chosen: Mapping[UUID, tuple[int, int]] = {id: (version, keys_of(keys).rollout) for id, version, keys in rows}
    sums: dict[tuple[UUID, int, int, str, int], int] = {}
    for one in trials:
        version, since = chosen.get(one.parcel, (0, 0))
        for bucket, n in one.buckets() if since else ():
            key = (one.job, since, version, one.outcome, bucket)
            sums[key] = sums.get(key, 0) + n
    if sums:
        yield Insert("rollout_counts", _COUNTS, [(*key, server, sums[key]) for key in sorted(sums)], conflict=_ADD)


def tallies(job: UUID, since: Instant) -> Script[dict[int, Tally]]:
    """What was counted of each version since a rollout began, on all servers."""
    rows = yield Fetch(TALLIES, (job, since))
    found: dict[int, Tally] = {}
    for version, outcome, bucket, n in rows:
        found.setdefault(version, Tally()).add(outcome, bucket, int(n))
    return found
