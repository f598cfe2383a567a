"""Gates that other executions and jobs open: dependencies, turns of one trigger, steps and their workflow."""

from uuid import UUID

from horae.engine.executions.probes.case import Case, ExecutionCase, Sources
from horae.model.base.instant import format_instant
from horae.model.base.view import shown_time
from horae.model.executions.execution_view import shown_interval
from horae.model.executions.gates import Blocker, closed
from horae.model.triggers.dependency import in_words, missing
from horae.model.workflows.decisions.graph import describe_wait
from horae.model.workflows.decisions.workflow import OPEN
from horae.model.workflows.waits import Approval
from horae.store.executions.reads import explain_reads
from horae.store.triggers.dependencies import dependency_reads
from horae.store.workflows import reads as workflow_reads
from horae.store.workflows import rows as workflow_rows

MOST_NAMED = 10  # steps that a blocker names


async def dependency(sources: Sources, case: ExecutionCase) -> list[Blocker]:
    """Return one blocker for each job that the execution waits for."""
    execution = case.execution
    if execution.reason != "dependency":
        return []
    wanted = [(execution.job, execution.id)]
    found = (await sources.store.read(lambda: dependency_reads.waiting(wanted))).get(execution.id)
    if found is None:
        return [closed("dependency", "What it waited for has ended; it goes on in a moment.", until=case.now)]
    join, parts = found
    upstreams = {
        upstream_job.job: upstream_job
        for upstream_job in await sources.store.read(lambda: dependency_reads.of_job(execution.job))
    }
    deadline = "" if join.deadline is None else f" It waits until {format_instant(join.deadline)}."
    return [
        closed(
            "dependency",
            f'It waits for the {upstream_job.condition} of "{upstream_job.name}"{in_words(join.interval)}.{deadline}',
            f'Run "{upstream_job.name}" with `horae jobs trigger {upstream_job.name}`, or see what holds it with'
            f" `horae explain {upstream_job.name}`.",
            job=upstream_job.name,
            jobId=str(upstream_job.job),
            condition=upstream_job.condition,
            interval=shown_interval(join.interval),
            deadline=shown_time(join.deadline),
        )
        for job_id in missing({job: upstream_job.condition for job, upstream_job in upstreams.items()}, parts)
        if (upstream_job := upstreams.get(job_id)) is not None
    ]


async def overlap(sources: Sources, case: ExecutionCase) -> list[Blocker]:
    key = case.place.gate
    if case.execution.reason != "overlap" or key is None:
        return []
    holder = await sources.store.read(lambda: explain_reads.holder_of(key))
    trigger = key.split(":", 2)[2]
    if holder is None:
        message = f'The previous execution of the trigger "{trigger}" has ended: its turn comes in a moment.'
        return [closed("overlap", message, until=case.now, trigger=trigger, execution=None)]
    message = f'Execution {holder} of the same trigger, "{trigger}", has not ended, and the two must not overlap.'
    remedy = f"It ends, or is cancelled with `horae executions cancel {holder}`."
    return [closed("overlap", message, remedy, trigger=trigger, execution=str(holder))]


async def upstream(sources: Sources, case: Case) -> list[Blocker]:
    """Return the upstream jobs of a job, except those that have already ended for its next execution."""
    found = await sources.store.read(lambda: dependency_reads.of_job(case.job.id))
    return [
        closed(
            "upstream",
            f'It starts after the {upstream_job.condition} of "{upstream_job.name}"{_state(upstream_job.state)}.',
            f'See what holds "{upstream_job.name}" with `horae explain {upstream_job.name}`.',
            job=upstream_job.name,
            jobId=str(upstream_job.job),
            condition=upstream_job.condition,
            state=upstream_job.state,
        )
        for upstream_job in found
        if not upstream_job.unused
    ]


def _state(state: str) -> str:
    return "" if state == "active" else f", which is {state}"


async def children(sources: Sources, case: ExecutionCase) -> list[Blocker]:
    """Return the steps of a workflow that have begun or are held."""
    found = await sources.store.read(lambda: workflow_reads.read_workflow(case.execution.id))
    if found is None:
        message = "It waits for the executions that it started; it has begun, and occupies no worker meanwhile."
        return [closed("sleep", message, kind="children")]
    begun = [row for row, _ in found.steps if row.state in OPEN]
    active = [row.step for row in begun]
    held = [row.step for row, _ in found.steps if row.state == "held"]
    waits = {row.step: describe_wait(found.waits.get(row.step), row.wake_at) for row in begun if row.state == "waiting"}
    named = ", ".join(f"{step} ({waits[step]})" if waits.get(step) else step for step in [*active, *held][:MOST_NAMED])
    paused = found.held.workflow.paused
    message = f"It waits for its steps: {named or 'they begin in a moment'}" + ("; it is paused." if paused else ".")
    approvals = [step for step, wait in found.waits.items() if isinstance(wait, Approval)]
    remedy = None
    if paused or held:
        remedy = f"Resume it with `horae executions resume {case.execution.id}`."
    elif approvals:
        remedy = f"Approve it with `horae executions approve {case.execution.id} {approvals[0]}`, or reject it."
    shown = active[:MOST_NAMED]
    return [closed("sleep", message, remedy, kind="children", steps=shown, held=held[:MOST_NAMED], paused=paused)]


async def workflow_paused(sources: Sources, case: ExecutionCase) -> list[Blocker]:
    parent: UUID | None = case.execution.parent
    if case.execution.reason != "paused" or parent is None:
        return []
    found = (await sources.store.read(lambda: workflow_rows.workflows_of([parent]))).get(parent)
    if found is None or not found.workflow.paused:
        return []
    remedy = f"Resume it with `horae executions resume {parent}`."
    return [closed("workflow-paused", f"Its workflow {parent} is paused.", remedy, execution=str(parent))]
