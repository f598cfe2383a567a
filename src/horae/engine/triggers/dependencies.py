"""Dependencies: which jobs a job waits for or starts, as users see them; and the service that ends incomplete joins.

A waiting execution is skipped when a required job fails, and ends when it has waited for too long.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from msgspec import Struct, structs

from horae.engine.base.clockwatch import ClockWatch
from horae.engine.base.hints import Hint, Hints
from horae.engine.base.refs import find_job
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.definitions.permits import visible
from horae.engine.executions.outcomes import Outcomes
from horae.engine.executions.promoter import CHECK_EVERY, RETRY_HELD, is_held, wait_until
from horae.engine.service import Alarm, Wait
from horae.engine.settings import EngineSettings
from horae.env import Env, Instant
from horae.model.base.instant import format_instant
from horae.model.base.view import shown_time
from horae.model.definitions.job import Job
from horae.model.executions.execution_view import shown_interval
from horae.model.triggers.dependency import Join, Needed, Parts, in_words, missing
from horae.model.triggers.dependency_view import DependenciesView, DependencyView, JoinUpstreamView, JoinView
from horae.store.contract import Store
from horae.store.definitions import job_reads
from horae.store.executions.reads import execution_reads
from horae.store.triggers.dependencies import dependency_reads as reads

MOST_JOINS = 50
MOST_CACHED = 10_000  # jobs with cached dependencies
GONE = '"{}" is deleted, so it does not start this job any more. Restore it, or remove it from the dependencies.'


class RunDependencies(Struct, frozen=True, kw_only=True):
    """The jobs related to a manual run: those it depends on, and those that depend on it, by name."""

    upstreams: Sequence[str]
    dependents: list[str]

    def note(self, *, propagate: bool, wait: bool) -> str | None:
        """Describe the jobs that the run waits for and starts; None when there are none."""
        sentences = []
        if self.upstreams and wait:
            sentences.append(f"It waits for {_listed(self.upstreams)}.")
        elif self.upstreams:
            sentences.append(f"It runs at once, whatever becomes of {_listed(self.upstreams)}.")
        elif wait:
            sentences.append("It depends on nothing, so it runs at once.")
        if self.dependents and propagate:
            sentences.append(f"Its end is reported to {_listed(self.dependents)}, which may start then.")
        elif self.dependents:
            sentences.append(f"Its end starts nothing: it is not reported to {_listed(self.dependents)}.")
        return " ".join(sentences) or None


def _listed(names: Sequence[str], most: int = 10) -> str:
    shown = ", ".join(f'"{name}"' for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


class Dependencies:
    """Reads dependencies. A `ref` is a job's name or id."""

    def __init__(self, store: Store, directory: LocalDirectory, hints: Hints) -> None:
        self._store, self._directory = store, directory
        self._known: dict[UUID, RunDependencies] = {}
        hints.listen(self._on_hint)

    def _on_hint(self, hint: Hint) -> None:
        """Drop the cache after a change of any job, because every other job may depend on it."""
        if hint.jobs:
            self._known = {}

    async def of_run(self, namespace: int, ref: str) -> RunDependencies:
        """Return the jobs that a run of a job waits for, and the dependents that the actor may see."""
        job = (self._directory.jobs.cached(namespace, ref) or await self._directory.jobs.get(namespace, ref)).job
        known = self._known
        if job.id not in known:
            found = await self._about(job)
            if len(known) >= MOST_CACHED:
                known.clear()
            known[job.id] = found  # if a job changed meanwhile, this dictionary is no longer the cache
        about = known[job.id]
        return structs.replace(about, dependents=visible(about.dependents))

    async def _about(self, job: Job) -> RunDependencies:
        dependents = await self._store.look_up(lambda: job_reads.dependents(job.id))
        upstreams = [UUID(job_id) for job_id in job.spec.dependencies]
        names = await self._store.read(lambda: job_reads.names_of(upstreams)) if upstreams else {}
        return RunDependencies(
            upstreams=[names.get(job_id, str(job_id)) for job_id in upstreams], dependents=dependents
        )

    async def of(self, namespace: int, ref: str) -> DependenciesView:
        """Return a job's dependencies, their state in recent joins, and its dependents. Raises NotFound."""
        job = (await find_job(self._store, namespace, ref)).job
        upstreams = await self._store.read(lambda: reads.of_job(job.id))
        joins = await self._store.read(lambda: reads.newest(job.id, MOST_JOINS))
        dependents = await self._store.read(lambda: job_reads.dependents(job.id))
        names = {upstream.job: upstream.name for upstream in upstreams}
        return DependenciesView(
            job_id=job.id,
            dependencies=[
                DependencyView(
                    job_id=upstream.job,
                    job=upstream.name,
                    state=upstream.state,
                    condition=upstream.condition,
                    unused_executions=upstream.unused,
                )
                for upstream in upstreams
            ],
            dependents=dependents,
            joins=[_shown(join, parts, job.spec.conditions_by_job, names) for join, parts in joins],
            notes=[GONE.format(upstream.name) for upstream in upstreams if upstream.state == "deleted"],
        )

    async def describe_waits(self, found: Sequence[execution_reads.FoundExecution]) -> dict[UUID, str]:
        """Describe the dependencies that these executions wait for, by execution."""
        wanted = [(each.execution.job, each.execution.id) for each in found if each.execution.reason == "dependency"]
        if not wanted:
            return {}
        waiting = await self._store.read(lambda: reads.waiting(wanted))
        upstreams = {job: await self._store.read(lambda: reads.of_job(job)) for job, _ in wanted}  # noqa: B023
        described = {}
        for execution, (join, parts) in waiting.items():
            own_upstreams = upstreams[join.dependent]
            needed: Needed = {upstream.job: upstream.condition for upstream in own_upstreams}
            described[execution] = _in_words(
                join, parts, needed, {upstream.job: upstream.name for upstream in own_upstreams}
            )
        return described


def _in_words(join: Join, parts: Parts, needed: Needed, names: Mapping[UUID, str]) -> str:
    awaited = [
        f'the {needed[upstream]} of "{names.get(upstream, str(upstream))}"' for upstream in missing(needed, parts)
    ]
    until = "" if join.deadline is None else f", until {format_instant(join.deadline)}"
    if not awaited:
        return "Its dependencies have ended; it continues in a moment."
    return f"It waits for {' and '.join(awaited)}{in_words(join.interval)}{until}."


def _shown(join: Join, parts: Parts, needed: Needed, names: Mapping[UUID, str]) -> JoinView:
    return JoinView(
        interval=shown_interval(join.interval),
        state=join.state,
        execution_id=join.execution,
        deadline=shown_time(join.deadline),
        upstream=[_part(upstream, needed, parts, names) for upstream in needed],
    )


def _part(upstream: UUID, needed: Needed, parts: Parts, names: Mapping[UUID, str]) -> JoinUpstreamView:
    part = parts.get(upstream)
    name = names.get(upstream, str(upstream))
    if part is None:
        return JoinUpstreamView(job=name, condition=needed[upstream], state="pending")
    return JoinUpstreamView(
        job=name,
        condition=needed[upstream],
        state="met" if part.met else "unmet",
        outcome=part.state,
        execution_id=part.execution,
    )


class JoinChecker:
    """Checks joins whose `wake_at` has come: a required job failed, or the execution has waited too long.

    When the last required job ends, the transaction of that end starts the dependent execution. So this service handles
    only joins that stay incomplete.
    """

    name = "joiner"

    def __init__(
        self,
        env: Env,
        store: Store,
        hints: Hints,
        settings: EngineSettings,
        outcomes: Outcomes,
        clock: ClockWatch,
    ) -> None:
        self._env, self._store, self._hints = env, store, hints
        self._batch, self._outcomes, self._clock = settings.promote_batch, outcomes, clock
        self._next: Instant | None = None
        self.alarm = Alarm()
        hints.listen(self._on_hint)

    def _on_hint(self, hint: Hint) -> None:
        if hint.wake_at is not None and (self._next is None or hint.wake_at < self._next):
            self._next = hint.wake_at
            self.alarm.ring()

    async def step(self) -> Wait:
        """Check one batch of joins; return the wait before the next call: 0 if the batch was full."""
        if not self._clock.trusted:
            return CHECK_EVERY
        asked_at = self._env.now()
        met, effects = await self._store.look_at_joins(self._batch)
        if met:
            self._outcomes.publish_settled(effects)
        if met == self._batch:
            return 0.0
        self._next = await self._store.next_join()
        if met == 0 and is_held(self._next, asked_at):
            return RETRY_HELD
        return wait_until(self._next, self._env.now())
