"""Gates of workflows: a parent that waits for its steps, and a step of one that is paused."""

from uuid import UUID

from horae.engine.executions.probes.case import ExecutionCase, Sources
from horae.model.executions.gates import Blocker, closed
from horae.model.workflows.decisions.flow import OPEN
from horae.model.workflows.decisions.graph import said_of
from horae.model.workflows.waits import Approval
from horae.store.workflows import reads as flow_reads
from horae.store.workflows import rows as flow_rows

MOST_TOLD = 10  # steps that a blocker names


async def children(sources: Sources, case: ExecutionCase) -> list[Blocker]:
    """What a workflow waits for: those of its steps that have begun, or are held."""
    found = await sources.store.read(lambda: flow_reads.whole(case.execution.id))
    if found is None:
        message = "It waits for what it has started; it has begun, and holds no worker meanwhile."
        return [closed("sleep", message, kind="children")]
    begun = [row for row, _ in found.steps if row.state in OPEN]
    open_ = [row.step for row in begun]
    held = [row.step for row, _ in found.steps if row.state == "held"]
    waits = {row.step: said_of(found.waits.get(row.step), row.wake_at) for row in begun if row.state == "waiting"}
    named = ", ".join(f"{step} ({waits[step]})" if waits.get(step) else step for step in [*open_, *held][:MOST_TOLD])
    paused = found.held.flow.paused
    message = f"It waits for its steps: {named or 'they begin in a moment'}" + ("; it is paused." if paused else ".")
    asked = [step for step, wait in found.waits.items() if isinstance(wait, Approval)]
    remedy = None
    if paused or held:
        remedy = f"Resume it with `horae executions resume {case.execution.id}`."
    elif asked:
        remedy = f"Agree with `horae executions approve {case.execution.id} {asked[0]}`, or reject it."
    told = open_[:MOST_TOLD]
    return [closed("sleep", message, remedy, kind="children", steps=told, held=held[:MOST_TOLD], paused=paused)]


async def paused(sources: Sources, case: ExecutionCase) -> list[Blocker]:
    parent: UUID | None = case.execution.parent
    if case.execution.reason != "paused" or parent is None:
        return []
    found = (await sources.store.read(lambda: flow_rows.flows_of([parent]))).get(parent)
    if found is None or not found.flow.paused:
        return []
    remedy = f"Resume it with `horae executions resume {parent}`."
    return [closed("workflow-paused", f"Its workflow {parent} is paused.", remedy, execution=str(parent))]
