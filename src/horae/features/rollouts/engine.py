"""Rollouts: a share of a job's new executions runs another version, until the rollout is promoted or aborted.

Reported attempts are counted in memory and written to the store once a second, outside the transactions of the reports.
If a server stops, its unwritten counts are lost; so a rollout that exceeds its bound may be aborted a little later.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any
from uuid import UUID

import structlog

from horae.engine.base.hints import Hint, Hints
from horae.engine.base.refs import find_job
from horae.engine.definitions.job_changes import Adoption, JobDraft, rollout_conflict
from horae.engine.definitions.job_lists import no_such_version
from horae.engine.definitions.jobs import TRIES, Jobs
from horae.engine.definitions.permits import check_changes
from horae.engine.service import Alarm, Wait
from horae.engine.topics import Topics
from horae.env import Env, Instant
from horae.errors import BadInput, Busy, Conflict, NotFound, StoreUnavailable
from horae.features.rollouts.model.read import RolloutRequest, plan_of, read_request
from horae.features.rollouts.model.values import candidate_versions, judge
from horae.features.rollouts.model.view import RolloutView, show_rollout
from horae.features.rollouts.store import rollouts
from horae.model.base.event import ChangeEvent
from horae.model.definitions.job import Job, Spec
from horae.model.definitions.rollout import Rollout, RolloutAttempts
from horae.model.fields.values import a_text
from horae.model.workflows.decisions.values import Workflow
from horae.store.admission import lanes
from horae.store.contract import Store
from horae.store.definitions import jobs
from horae.store.definitions.jobs import StoredJob
from horae.store.definitions.rollouts import newest
from horae.store.executions.leaving.effects import Effects
from horae.store.script import Script

PACE = 1.0  # seconds between two writes
IDLE = 60.0  # seconds between steps without new attempts; an ended attempt wakes the service
MOST_REASON = 256  # characters
log = structlog.get_logger("horae.engine")


class Rollouts:
    """The operations on rollouts, and the service that counts attempts. A `ref` is a job's name or id."""

    name = "rollouts"

    def __init__(self, env: Env, store: Store, node: UUID, hints: Hints, jobs: Jobs, topics: Topics) -> None:
        self._env, self._store, self._node, self._hints, self._jobs = env, store, node, hints, jobs
        self._trials: list[RolloutAttempts] = []
        self._unjudged: set[UUID] = set()  # jobs with new attempts since their rollouts were judged
        self._count_at = 0.0
        self.alarm = Alarm()
        topics.settled.subscribe(self.name, self._settled)

    async def get(self, namespace: int, ref: str) -> RolloutView:
        """Return a job's newest rollout, active or ended. Raises NotFound."""
        job = (await find_job(self._store, namespace, ref)).job
        rollout = await self._store.read(lambda: newest(job.id))
        if rollout is None:
            raise no_rollout(job, f'Job "{job.name}" never had a rollout.')
        return await self._shown(job, rollout)

    async def put(self, namespace: int, ref: str, body: Any, *, by: str, if_match: int | None = None) -> RolloutView:
        """Begin a rollout of other versions to shares of a job's new executions, or change the active rollout's shares.

        If the request has a `change`, it creates a version, which does not become the current one. Raises BadInput,
        NotFound, Conflict.
        """
        request = read_request(body)
        for _ in range(TRIES):
            draft: JobDraft | None = None
            if request.change is not None:
                before, draft = await self._candidate(namespace, ref, request.change, if_match)
            else:
                before = await self._jobs.find_changeable(namespace, ref, if_match)
                await self._check_versions(before.job, plan_of(request, before.job.version, None).shares)
            made = await self._store.change(lambda now: start(before, request, draft, by, now))  # noqa: B023
            if made is not None:
                self._announce(before.job, made)
                return await self.get(namespace, str(before.job.id))
        raise _too_busy(ref)

    async def promote(
        self, namespace: int, ref: str, version: int | None = None, *, by: str, if_match: int | None = None
    ) -> RolloutView:
        """Make a version of the rollout the current one and end the rollout.

        `version` may be left out if the rollout tries only one version.
        """
        for _ in range(TRIES):
            before, rollout = await self._active(namespace, ref, if_match)
            chosen = _version_to_promote(before.job, rollout, version)
            spec = next(v.spec for v in await self._store.versions(before.job.id) if v.version == chosen)
            if await self._jobs.adopt(before, spec, adoption(rollout, chosen, by)):
                self._send_hint(before.job, "promoted")
                return await self.get(namespace, str(before.job.id))
        raise _too_busy(ref)

    async def abort(
        self, namespace: int, ref: str, *, by: str, reason: str = "", if_match: int | None = None
    ) -> RolloutView:
        """End a rollout: all new executions run the present version."""
        cause = a_text(reason, "reason", most=MOST_REASON)
        before, _ = await self._active(namespace, ref, if_match)
        if not await self._abort(before, None, cause, by):
            raise no_rollout(before.job)
        return await self.get(namespace, str(before.job.id))

    def _settled(self, effects: Effects) -> None:
        """Remember ended attempts of executions whose version a rollout chose, for the next step."""
        if effects.trials:
            self._trials += effects.trials
            self.alarm.ring()

    async def step(self) -> Wait:
        """Store the counts of ended attempts, and judge the rollouts to which they belong."""
        left = self._count_at - self._env.clock.monotonic()
        if not self._trials and not self._unjudged:
            return IDLE
        if left > 0:
            return left
        self._count_at = self._env.clock.monotonic() + PACE
        trials, self._trials = self._trials, []
        self._unjudged |= {one.job for one in trials}
        try:
            await self._store.write(lambda: rollouts.count(self._node, trials))
        except StoreUnavailable as error:
            if not error.fields.get("unknown"):
                self._trials = [*trials, *self._trials]
            raise
        for job in sorted(self._unjudged):
            await self._judge(job)
            self._unjudged.discard(job)
        return PACE

    async def _judge(self, job_id: UUID) -> None:
        """Abort a rollout that exceeds its bound."""
        rollout = await self._store.read(lambda: newest(job_id))
        if rollout is None or rollout.state != "on" or rollout.plan.abort_above is None:
            return
        stored = await self._store.read(lambda: rollouts.job(job_id))
        if stored is None or stored.job.state == "deleted":
            return
        tallies = await self._store.read(lambda: rollouts.tallies(job_id, rollout.since))
        cause = judge(rollout.plan, stored.job.version, tallies)
        if cause is not None:
            await self._abort(stored, rollout.number, cause, "")

    async def _abort(self, before: StoredJob, number: int | None, cause: str, by: str) -> bool:
        ended = await self._store.change(lambda now: abort(before.job, number, cause, by, now))
        if ended is not None:
            self._announce(before.job, ended)
        return ended is not None

    async def _active(self, namespace: int, ref: str, if_match: int | None) -> tuple[StoredJob, Rollout]:
        before = await self._jobs.find_changeable(namespace, ref, if_match)
        rollout = await self._store.read(lambda: newest(before.job.id))
        if rollout is None or rollout.state != "on":
            raise no_rollout(before.job)
        return before, rollout

    async def _candidate(
        self, namespace: int, ref: str, change: Any, if_match: int | None
    ) -> tuple[StoredJob, JobDraft]:
        """Draft the new version that a rollout tries."""
        before, draft = await self._jobs.draft_change(namespace, ref, change, if_match)
        if before.rolling is not None:
            raise rollout_conflict(before.job)
        if draft.spec.name != before.job.name:
            raise BadInput("A rollout cannot rename a job.", "Rename it by an edit, before or after.", field="change")
        if draft.spec == before.job.spec:
            raise BadInput("The change has no effect.", "Give a change for the new version.", field="change")
        _refuse_workflows(before.job, [draft.spec])
        return before, draft

    async def _check_versions(self, job: Job, wanted: dict[int, float]) -> None:
        known = await self._store.versions(job.id)
        for version in sorted(wanted.keys() - {one.version for one in known}):
            raise no_such_version(job.name, version, known)
        specs = [one.spec for one in known if one.version in wanted]
        _refuse_workflows(job, specs)
        check_changes((job.spec, spec) for spec in specs)

    async def _shown(self, job: Job, rollout: Rollout) -> RolloutView:
        tallies = await self._store.read(lambda: rollouts.tallies(rollout.job, rollout.since))
        return show_rollout(rollout, job.name, job.version, tallies)

    def _announce(self, job: Job, rollout: Rollout) -> None:
        self._jobs.announce_change(job)
        self._send_hint(job, rollout.state)
        tell = log.warning if rollout.state == "aborted" else log.info
        tell(f"rollout is {rollout.state}", job=job.name, cause=rollout.cause, by=rollout.by)

    def _send_hint(self, job: Job, state: str) -> None:
        self._hints.send(Hint(events=[ChangeEvent("rollout", job.id, state, job.namespace, self._env.now(), job.id)]))


def _refuse_workflows(job: Job, tried: Iterable[Spec]) -> None:
    """Refuse workflows: the jobs that a workflow owns change with it, so only its current version can run."""
    if any(isinstance(spec.task, Workflow) for spec in (job.spec, *tried)):
        remedy = (
            "Edit it without a rollout, or begin rollouts of the jobs that the steps run: an execution of a workflow"
            " keeps the job versions that were chosen when it began."
        )
        raise Conflict(f'"{job.name}" is a workflow, now or in a version to try: a rollout cannot run it.', remedy)


def _version_to_promote(job: Job, rollout: Rollout, version: int | None) -> int:
    """Return the version that becomes the current one."""
    tried = candidate_versions(rollout.plan, job.version)
    names = ", ".join(map(str, tried))
    if version is None:
        if len(tried) != 1:
            raise BadInput("The rollout tries several versions.", f"Say which: {names}.", field="version")
        return next(iter(tried))
    if version not in tried:
        raise BadInput(f"The rollout does not try version {version}.", f"The rollout tries {names}.", field="version")
    return version


def no_rollout(job: Job, detail: str = "") -> NotFound:
    remedy = f"Begin one: `horae jobs rollout start {job.name} --version N --share 10%`."
    return NotFound(detail or f'No rollout of job "{job.name}" is active.', remedy)


def _too_busy(ref: str) -> Busy:
    return Busy(f'Job "{ref}" was changed again and again meanwhile.')


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
