"""Rollouts under way: the versions of a job between which new executions are distributed.

A job's row has the number of its active rollout. If a transaction finds that this number has changed since a version
was chosen, the version is chosen again.
"""

from collections.abc import Collection
from uuid import UUID

import msgspec

from horae.model.definitions.job import Spec
from horae.model.definitions.rollout import Rollout, RolloutPlan
from horae.store.script import Among, Fetch, ForEach, Row, Script, Statement

COLUMNS = "r.job, r.number, r.state, r.plan, r.since, r.changed_at, r.cause, r.changed_by"
OF_JOBS = Statement("rollouts_of_jobs", f"SELECT {COLUMNS} FROM rollouts r WHERE r.job = ANY($1) AND r.state = 'on'")
NEWEST = Statement("rollout_of_job", f"SELECT {COLUMNS} FROM rollouts r WHERE r.job = $1")
ARMS = Statement(
    "rollout_arms",
    "SELECT v.job, v.version, v.spec, v.queue, v.lane FROM given"
    " JOIN job_versions v ON v.job = given.job AND v.version = given.version",
)

_read_plan = msgspec.json.Decoder(RolloutPlan).decode
_read_spec = msgspec.json.Decoder(Spec).decode


class RolloutArm(msgspec.Struct, frozen=True):
    """A version of a job to which a rollout sends executions, with its queue and lane."""

    spec: Spec
    queue: int
    lane: int


def _rollout(row: Row) -> Rollout:
    return Rollout(
        job=row[0], number=row[1], state=row[2], plan=_read_plan(row[3]), since=row[4], changed_at=row[5],
        cause=row[6], by=row[7],
    )  # fmt: skip


def newest(job: UUID) -> Script[Rollout | None]:
    """Return a job's newest rollout, which may have ended."""
    rows = yield Fetch(NEWEST, (job,))
    return _rollout(rows[0]) if rows else None


def active_rollouts(wanted: Collection[UUID]) -> Script[dict[UUID, tuple[Rollout, dict[int, RolloutArm]]]]:
    """Return the rollouts under way for these jobs, each with the versions between which it chooses, by number."""
    rows = yield Among(OF_JOBS, sorted(wanted))
    found = [_rollout(row) for row in rows]
    given = [(rollout.job, version) for rollout in found for version in sorted(rollout.plan.shares)]
    arms = (yield ForEach(ARMS, (("job", "uuid"), ("version", "int")), given)) if given else []
    known: dict[UUID, dict[int, RolloutArm]] = {rollout.job: {} for rollout in found}
    for job, version, spec, queue, lane in arms:
        known[job][version] = RolloutArm(_read_spec(spec), queue, lane)
    return {rollout.job: (rollout, known[rollout.job]) for rollout in found}
