"""Dependencies: what a job waits for and what it starts, as people ask about it."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from msgspec import Struct, structs

from horae.engine.base.hints import Hint, Hints
from horae.engine.base.refs import find_job
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.definitions.permits import visible
from horae.model.base.instant import format_instant
from horae.model.base.view import shown_time
from horae.model.definitions.job import Job
from horae.model.executions.execution_view import shown_interval
from horae.model.triggers.dependency import Join, Needed, Parts, in_words, missing
from horae.model.triggers.dependency_view import DependenciesView, DependencyView, JoinView, PartView
from horae.store.contract import Store
from horae.store.definitions import job_reads
from horae.store.executions.reads import execution_reads
from horae.store.triggers.dependencies import dependency_reads as reads

MOST_JOINS = 50
MOST_KNOWN = 10_000  # jobs whose neighbours are remembered
GONE = '"{}" is deleted: this job does not start by it any more. Restore it, or take it off the list.'


class RunDependencies(Struct, frozen=True, kw_only=True):
    """What a manual run has to do with other jobs: those it depends on, and those that depend on it, by name."""

    upstreams: Sequence[str]
    dependents: list[str]

    def note(self, *, propagate: bool, wait: bool) -> str | None:
        """What the run waits for and starts; None when it is alone."""
        told = []
        if self.upstreams and wait:
            told.append(f"It waits for {_listed(self.upstreams)}.")
        elif self.upstreams:
            told.append(f"It runs at once, whatever becomes of {_listed(self.upstreams)}.")
        elif wait:
            told.append("It depends on nothing, so it runs at once.")
        if self.dependents and propagate:
            told.append(f"Its end is told to {_listed(self.dependents)}, which may start by it.")
        elif self.dependents:
            told.append(f"Its end starts nothing: {_listed(self.dependents)} will not hear of it.")
        return " ".join(told) or None


def _listed(names: Sequence[str], most: int = 10) -> str:
    shown = ", ".join(f'"{name}"' for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


class Dependencies:
    """What can be asked about dependencies. A `ref` is a job's name or id."""

    def __init__(self, store: Store, directory: LocalDirectory, hints: Hints) -> None:
        self._store, self._directory = store, directory
        self._known: dict[UUID, RunDependencies] = {}
        hints.listen(self._on_hint)

    def _on_hint(self, hint: Hint) -> None:
        """Whatever job changed may depend on any, and any on it."""
        if hint.jobs:
            self._known = {}

    async def about(self, namespace: int, ref: str) -> RunDependencies:
        """Return the jobs that a run of a job waits for, and those that it starts and the actor may learn of."""
        job = (self._directory.known(namespace, ref) or await self._directory.job(namespace, ref)).job
        known = self._known
        if job.id not in known:
            found = await self._about(job)
            if len(known) >= MOST_KNOWN:
                known.clear()
            known[job.id] = found  # forgotten with the rest if a job changed meanwhile
        about = known[job.id]
        return structs.replace(about, dependents=visible(about.dependents))

    async def _about(self, job: Job) -> RunDependencies:
        dependents = await self._store.look_up(lambda: job_reads.dependents(job.id))
        upstreams = [UUID(id) for id in job.spec.dependencies]
        names = await self._store.read(lambda: job_reads.names_of(upstreams)) if upstreams else {}
        return RunDependencies(upstreams=[names.get(id, str(id)) for id in upstreams], dependents=dependents)

    async def of(self, namespace: int, ref: str) -> DependenciesView:
        """What a job depends on, what of that is met, and which jobs depend on it. Raises NotFound."""
        job = (await find_job(self._store, namespace, ref)).job
        upstreams = await self._store.read(lambda: reads.of_job(job.id))
        joins = await self._store.read(lambda: reads.newest(job.id, MOST_JOINS))
        dependents = await self._store.read(lambda: job_reads.dependents(job.id))
        names = {up.job: up.name for up in upstreams}
        return DependenciesView(
            job_id=job.id,
            dependencies=[
                DependencyView(job_id=up.job, job=up.name, state=up.state, condition=up.condition, unused=up.unused)
                for up in upstreams
            ],
            dependents=dependents,
            joins=[_shown(join, parts, job.spec.needed, names) for join, parts in joins],
            notes=[GONE.format(up.name) for up in upstreams if up.state == "deleted"],
        )

    async def waits(self, found: Sequence[execution_reads.FoundExecution]) -> dict[UUID, str]:
        """What executions that wait for dependencies wait for, in words."""
        wanted = [(f.execution.job, f.execution.id) for f in found if f.execution.reason == "dependency"]
        if not wanted:
            return {}
        waiting = await self._store.read(lambda: reads.waiting(wanted))
        upstreams = {job: await self._store.read(lambda: reads.of_job(job)) for job, _ in wanted}  # noqa: B023
        told = {}
        for id, (join, parts) in waiting.items():
            mine = upstreams[join.dependent]
            needed: Needed = {up.job: up.condition for up in mine}
            told[id] = _in_words(join, parts, needed, {up.job: up.name for up in mine})
        return told


def _in_words(join: Join, parts: Parts, needed: Needed, names: Mapping[UUID, str]) -> str:
    awaited = [f'the {needed[up]} of "{names.get(up, str(up))}"' for up in missing(needed, parts)]
    until = "" if join.deadline is None else f", until {format_instant(join.deadline)}"
    if not awaited:
        return "What it waited for has ended; it goes on in a moment."
    return f"It waits for {' and '.join(awaited)}{in_words(join.interval)}{until}."


def _shown(join: Join, parts: Parts, needed: Needed, names: Mapping[UUID, str]) -> JoinView:
    return JoinView(
        interval=shown_interval(join.interval),
        state=join.state,
        execution_id=join.execution,
        deadline=shown_time(join.deadline),
        upstream=[_part(up, needed, parts, names) for up in needed],
    )


def _part(upstream: UUID, needed: Needed, parts: Parts, names: Mapping[UUID, str]) -> PartView:
    part = parts.get(upstream)
    name = names.get(upstream, str(upstream))
    if part is None:
        return PartView(job=name, condition=needed[upstream], state="pending")
    return PartView(
        job=name,
        condition=needed[upstream],
        state="met" if part.met else "unmet",
        ended=part.state,
        execution_id=part.execution,
    )
