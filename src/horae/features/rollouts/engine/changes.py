"""Changes of rollouts as scripts. Each is one transaction; an error rolls it back completely."""

from functools import partial

from horae.engine.definitions.job_changes import Adoption, JobDraft, rollout_conflict
from horae.env import Instant
from horae.features.rollouts.model.read import RolloutRequest, plan_of
from horae.features.rollouts.store import rollouts
from horae.model.definitions.job import Job
from horae.model.definitions.rollout import Rollout
from horae.store.admission import lanes
from horae.store.definitions import jobs
from horae.store.definitions.jobs import StoredJob
from horae.store.script import Script


def start(
    before: StoredJob, request: RolloutRequest, draft: JobDraft | None, by: str, now: Instant
) -> Script[Rollout | None]:
    """Begin a rollout, or change the shares of the active one; return None if the job has changed meanwhile.

    A draft becomes a version of the job, but not its current one. Raises Conflict if another rollout is active.
    """
    job = before.job
    if (yield from rollouts.lock(job.id, job.namespace)) != (job.version, job.state):
        return None
    candidate = None
    if draft is not None:
        if (yield from jobs.active_rollout(job.id)) is not None:
            raise rollout_conflict(job)
        queue, lane = yield from lanes.ensure_lane(job.namespace, draft.spec.queue, draft.spec.lane_needs, "", now)
        candidate = (yield from jobs.newest(job.id)) + 1
        yield from jobs.put_version(job.id, candidate, draft.spec, queue.id, lane.id, now)
    return (yield from rollouts.begin(job.id, plan_of(request, job.version, candidate), by, now))


def abort(job: Job, number: int | None, cause: str, by: str, now: Instant) -> Script[Rollout | None]:
    """End the active rollout, or only the one with this number; return None if it is no longer active."""
    if (yield from rollouts.lock(job.id, job.namespace)) is None:
        return None
    return (yield from rollouts.end(job.id, number, "aborted", cause, by, now))


def adoption(rollout: Rollout, version: int, by: str) -> Adoption:
    """Return the change that makes one of a rollout's versions the current one and ends the rollout."""
    end = partial(rollouts.end, rollout.job, rollout.number, "promoted", f"Version {version}.", by)
    return Adoption(version=version, end=end)
