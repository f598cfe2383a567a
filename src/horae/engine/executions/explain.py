"""Explain: why an execution or a job does not run, what would let it run, and when an execution will probably start.

Every gate is checked by its probe in `engine/executions/probes`, in the order of `model/executions/gates.py`.
"""

from collections.abc import Sequence
from uuid import UUID

from msgspec.structs import replace

from horae.engine.admission.hold_watch import HoldWatch
from horae.engine.base.refs import find_job
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.executions.executions import Executions
from horae.engine.executions.probes.case import Case, ExecutionCase, Sources
from horae.engine.executions.probes.order import share_factor
from horae.engine.executions.probes.table import OF_EXECUTIONS, OF_JOBS
from horae.engine.executions.probes.workers import ahead_of
from horae.env import Env, Instant
from horae.model.base.ids import execution_id, index_of, parcel_of
from horae.model.base.instant import format_instant
from horae.model.base.view import shown_time
from horae.model.executions.estimate import Estimate, estimate, work_before
from horae.model.executions.execution import FINAL, READS_AS_RUNNING, RUNNING, Execution
from horae.model.executions.explain_view import ExplanationView, JobExplanationView, show_blocker, show_estimate
from horae.model.executions.gates import GATES, Blocker
from horae.model.executions.hint import WORKFLOW
from horae.model.fleet.session import Session
from horae.store.contract import Store
from horae.store.executions.reads import execution_reads, explain_reads
from horae.store.executions.reads.execution_reads import FoundExecution

MOST_WORKERS = 2_000
MOST_EXECUTIONS = 3  # executions that are explained with their job
MAX_ERROR_CHARS = 500  # characters of an error's message
FREE = "Nothing holds it: a worker takes it in a moment."


class Explainer:
    """Explains why executions and jobs do not run. A `ref` is an execution's id, or a job's name or id."""

    def __init__(
        self, env: Env, store: Store, directory: LocalDirectory, holds: HoldWatch, executions: Executions
    ) -> None:
        self._env, self._store, self._executions = env, store, executions
        self._sources = Sources(store, directory, holds)

    async def execution(self, namespace: int, ref: str | UUID) -> ExplanationView:
        """Return the blockers of an execution, in order.

        Raises NotFound, or Gone when its id is older than the retention.
        """
        found = await self._executions.find(namespace, ref)
        return await self._explained(found, await self._sessions(namespace))

    async def starts_at(self, namespace: int, execution_id: UUID) -> Instant | None:
        """Estimate the start of an execution that has not begun; None if it cannot be estimated.

        Raises the errors of `execution`.
        """
        found = await self._executions.find(namespace, execution_id)
        _, start = await self._blockers_and_start(found, await self._sessions(namespace))
        return None if start is None else start.starts_at

    async def job(self, namespace: int, ref: str) -> JobExplanationView:
        """Return the blockers of a job, and of its next executions. Raises NotFound."""
        stored = await find_job(self._store, namespace, ref)
        job, sessions = stored.job, await self._sessions(namespace)
        case = Case(
            now=self._env.now(), namespace=namespace, job=job, queue=stored.queue, queue_name=job.spec.queue,
            needs=frozenset(job.spec.lane_needs), sessions=sessions,
        )  # fmt: skip
        blockers = [
            blocker
            for gate in GATES
            if gate.name in OF_JOBS
            for blocker in await OF_JOBS[gate.name](self._sources, case)
        ]
        first = await self._store.read(lambda: explain_reads.pending_of(job.id, MOST_EXECUTIONS))
        refs = [(namespace, execution_id(parcel, lo)) for parcel, lo in first]
        pending = await self._store.read(lambda: execution_reads.by_ids(refs))
        due = [blocker.until for blocker in blockers if blocker.gate == "not-due" and blocker.until is not None]
        return JobExplanationView(
            job_id=job.id,
            job=job.name,
            state=job.state,
            summary=_summary(blockers, "Nothing keeps it from running."),
            blockers=[show_blocker(blocker) for blocker in blockers],
            next_fire_at=shown_time(min(due, default=None)),
            executions=[await self._explained(found, sessions) for found in pending.values()],
        )

    async def _explained(self, found: FoundExecution, sessions: Sequence[Session]) -> ExplanationView:
        execution = found.execution
        blockers, start = await self._blockers_and_start(found, sessions)
        return ExplanationView(
            execution_id=execution.id,
            job_id=execution.job,
            job=found.job_name,
            status=execution.state,
            queue=found.queue_name,
            summary=_summary(blockers, _where(execution)),
            blockers=[show_blocker(blocker) for blocker in blockers],
            estimate=None if start is None else show_estimate(start),
            worker_id=execution.worker or None,
            started_at=shown_time(execution.started_at),
            completed_at=shown_time(execution.completed_at),
        )

    async def _blockers_and_start(
        self, found: FoundExecution, sessions: Sequence[Session]
    ) -> tuple[list[Blocker], Estimate | None]:
        """Return the blockers of an execution that has not begun, and an estimate of its start."""
        if found.execution.state in FINAL or _runs(found.execution):
            return [], None
        case = await self._case(found, sessions)
        blockers: list[Blocker] = []
        for gate in GATES:
            if gate.name in OF_EXECUTIONS:
                blockers += await OF_EXECUTIONS[gate.name](self._sources, case)
        if found.execution.reason == "children":  # it has begun; its steps have their own explanations
            return blockers, None
        return blockers, await self._estimate(case, blockers)

    async def _case(self, found: FoundExecution, sessions: Sequence[Session]) -> ExecutionCase:
        execution = found.execution
        stored = await find_job(self._store, execution.namespace, execution.job)
        parcel, item = parcel_of(execution.id), index_of(execution.id)
        place = await self._store.read(lambda: explain_reads.position_of(parcel, item))
        return ExecutionCase(
            now=self._env.now(), namespace=execution.namespace, job=stored.job, queue=execution.queue,
            queue_name=found.queue_name or stored.job.spec.queue, needs=frozenset(found.needs), sessions=sessions,
            execution=execution, place=place,
        )  # fmt: skip

    async def _estimate(self, case: ExecutionCase, blockers: Sequence[Blocker]) -> Estimate:
        if WORKFLOW in case.needs:  # servers run it; it needs no worker
            return replace(estimate(case.now, blockers, 0, 1, 0), slots=0)
        fitting = case.fitting()
        slots = sum(session.concurrency for session in fitting)
        before = await ahead_of(self._sources, case)
        free = slots - sum(session.running for session in fitting)
        if before.count < free:  # it starts at once, however long the executions before it take
            return estimate(case.now, blockers, before.count, slots, 0)
        running = await self._store.read(lambda: explain_reads.held_by([session.id for session in fitting]))
        jobs = {*before.jobs, *(job for job, *_ in running)}
        expected = self._sources.directory.expectations
        lengths = {job: expected.of(job) for job in jobs if expected.knows(job)}
        times = share_factor(self._sources, case)
        queued = {job: round(count * times) for job, count in before.jobs.items()}
        work = work_before(queued, running, lengths, case.now) if before.whole else None
        return estimate(case.now, blockers, before.count, slots, work)

    async def _sessions(self, namespace: int) -> list[Session]:
        found = await self._store.sessions(namespace, self._env.now(), MOST_WORKERS)
        return [session for session in found if session.state == "live"]


def _runs(execution: Execution) -> bool:
    """Return whether a worker has an execution.

    An execution that sleeps, or waits for steps or a signal, has the state `running` here, but no worker has it.
    """
    return execution.state == RUNNING and execution.reason not in READS_AS_RUNNING


def _summary(blockers: Sequence[Blocker], otherwise: str) -> str:
    """Return the first blocker's message and the number of the other blockers."""
    if not blockers:
        return otherwise
    first, more = blockers[0].message, len(blockers) - 1
    if not more:
        return first
    return f"{first} There is 1 more reason." if more == 1 else f"{first} There are {more} more reasons."


def _where(execution: Execution) -> str:
    if _runs(execution):
        since = "" if execution.started_at is None else f" since {format_instant(execution.started_at)}"
        return f"It runs on {execution.worker or 'a worker'}{since}, attempt {execution.attempt}."
    if execution.state in FINAL:
        at = "" if execution.completed_at is None else f" at {format_instant(execution.completed_at)}"
        return f"It has ended{at} as {execution.state}{_why(execution)}."
    return FREE


def _why(execution: Execution) -> str:
    """Return the error or the reason of an ended execution in one line."""
    if execution.error is None:
        return f": {execution.reason}" if execution.reason else ""
    first = execution.error.message.partition("\n")[0][:MAX_ERROR_CHARS].rstrip(".")
    return f": {execution.error.type}: {first}" if first else f": {execution.error.type}"
