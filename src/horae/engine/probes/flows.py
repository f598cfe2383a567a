"""Gates of workflows: a parent that waits for its steps, and a step of one that is paused."""

from uuid import UUID

from horae.engine.probes.case import ExecutionCase, Sources
from horae.model.gates import Blocker, closed
from horae.model.workflow.flow import OPEN
from horae.store.moves import flow_reads, flow_rows

MOST_TOLD = 10  # steps that a blocker names


async def children(sources: Sources, case: ExecutionCase) -> list[Blocker]:
    """What a workflow waits for: those of its steps that have begun, or are held."""
    found = await sources.store.read(lambda: flow_reads.whole(case.execution.id))
    if found is None:
        message = "It waits for what it has started; it has begun, and holds no worker meanwhile."
        return [closed("sleep", message, kind="children")]
    open_ = [row.step for row, _ in found.steps if row.state in OPEN]
    held = [row.step for row, _ in found.steps if row.state == "held"]
    named = ", ".join([*open_, *held][:MOST_TOLD])
    paused = found.held.flow.paused
    message = f"It waits for its steps: {named or 'they begin in a moment'}" + ("; it is paused." if paused else ".")
    remedy = f"Resume it with `horae executions resume {case.execution.id}`." if paused or held else None
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
