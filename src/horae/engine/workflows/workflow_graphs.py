"""The graph of a workflow's execution, and its pause and resumption."""

from uuid import UUID

from horae.engine.executions.executions import Executions
from horae.env import Env
from horae.errors import Conflict
from horae.model.executions.execution import FINAL
from horae.model.executions.execution_view import ExecutionView
from horae.model.workflows.decisions.graph import GraphView, show_graph
from horae.store.contract import Store
from horae.store.triggers.dependencies.starts import Consequences
from horae.store.workflows import pause as flow_pause
from horae.store.workflows import reads as flow_reads


class WorkflowGraphs:
    """Shows workflows, also ended ones until they are deleted, and pauses and resumes running ones."""

    def __init__(self, env: Env, store: Store, executions: Executions) -> None:
        self._env, self._store, self._executions = env, store, executions

    async def graph(self, namespace: int, ref: str | UUID) -> GraphView:
        """Return the steps of an execution, their states and their dependencies. Raises NotFound, Gone, or Conflict."""
        execution = (await self._executions.find(namespace, ref)).execution
        found = await self._store.read(lambda: flow_reads.read_workflow(execution.id))
        if found is None:
            raise _no_workflow(execution.id, execution.state in FINAL)
        return show_graph(
            found.plan, found.held.flow, found.steps, found.names, found.held.began_at, execution.completed_at,
            execution.state, self._env.now(), found.waits, found.starts,
        )  # fmt: skip

    async def pause(self, namespace: int, ref: str | UUID) -> ExecutionView:
        """Let no step start until the workflow is resumed. Running steps go on."""
        return await self._change(namespace, ref, pause=True)

    async def resume(self, namespace: int, ref: str | UUID) -> ExecutionView:
        """Let steps start again."""
        return await self._change(namespace, ref, pause=False)

    async def _change(self, namespace: int, ref: str | UUID, *, pause: bool) -> ExecutionView:
        execution = (await self._executions.find(namespace, ref)).execution
        consequences = Consequences()
        move = flow_pause.pause if pause else flow_pause.resume
        if not await self._store.change(lambda now: move(execution.id, self._env.new_id, now, consequences)):
            raise _no_workflow(execution.id, execution.state in FINAL)
        self._store.started(consequences)
        self._store.created(consequences.parcels)
        return await self._executions.get(namespace, execution.id)


def _no_workflow(ref: UUID, ended: bool) -> Conflict:
    if ended:
        return Conflict(
            f"Execution {ref} is not a workflow, or has ended.",
            f"`horae executions show {ref}` shows its result; a workflow runs again with `horae executions rerun`.",
        )
    return Conflict(
        f"Execution {ref} is not a workflow, or has not begun.",
        f"`horae explain {ref}` shows what it waits for.",
    )
