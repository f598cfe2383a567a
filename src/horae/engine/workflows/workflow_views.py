"""Views of workflows: the graph of an execution and the grid of a job's executions; also pausing and resuming.

The grid lists executions, newest first, with the states of their steps.
"""

from typing import Literal
from uuid import UUID

from horae.engine.base.refs import find_job
from horae.engine.executions.executions import Executions
from horae.env import Env, Instant
from horae.errors import Conflict
from horae.model.base.cursor import check_limit, make_cursor, read_cursor
from horae.model.base.ids import execution_id
from horae.model.base.instant import format_instant
from horae.model.base.view import in_seconds
from horae.model.executions.execution import FINAL
from horae.model.executions.execution_view import ExecutionView, shown_interval
from horae.model.executions.parcel import Extras
from horae.model.workflows.decisions.graph import GraphView, show_graph
from horae.model.workflows.decisions.values import Workflow
from horae.model.workflows.grid_view import GridItemView, GridView
from horae.store.contract import Store
from horae.store.executions.reads import execution_lists
from horae.store.executions.reads.execution_lists import END, Chosen, ExecutionFilter
from horae.store.executions.reads.item_parts import MOST_BYTES
from horae.store.triggers.dependencies.starts import Consequences
from horae.store.workflows import pause as workflow_pause
from horae.store.workflows import reads as workflow_reads

MOST_CELLS = 20_000  # executions times steps in one page
GridOrder = Literal["run", "interval"]


class WorkflowGraphs:
    """Shows workflows, also ended ones until they are deleted, and pauses and resumes running ones."""

    def __init__(self, env: Env, store: Store, executions: Executions) -> None:
        self._env, self._store, self._executions = env, store, executions

    async def graph(self, namespace: int, ref: str | UUID) -> GraphView:
        """Return the steps of an execution, their states and their dependencies. Raises NotFound, Gone, or Conflict."""
        execution = (await self._executions.find(namespace, ref)).execution
        found = await self._store.read(lambda: workflow_reads.read_workflow(execution.id))
        if found is None:
            raise _no_workflow(execution.id, execution.state in FINAL)
        return show_graph(
            found.plan, found.held.workflow, found.steps, found.names, found.held.began_at, execution.completed_at,
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
        move = workflow_pause.pause if pause else workflow_pause.resume
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


class WorkflowGrid:
    """Reads grids of executions."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def page(
        self, namespace: int, ref: str, *, limit: int = 50, cursor: str | None = None, by: GridOrder = "run"
    ) -> GridView:
        """Return a page of executions, newest first. For a workflow with very many steps it is shorter than requested.

        With `by="interval"`, the executions of the page are ordered by the start of their data interval, or else by
        their due time. Of executions with the same data interval the newest is first.
        """
        job = (await find_job(self._store, namespace, ref)).job
        steps: list[str] = []
        if isinstance(job.spec.task, Workflow):
            plan = await self._store.read(lambda: workflow_reads.present_plan(job.id))
            steps = [] if plan is None else [step for phase in plan.order.values() for step in phase]
        wanted, before = ExecutionFilter(job=job.id), END
        if cursor is not None:
            before = read_cursor(cursor, tuple[UUID, int])
        size = max(1, min(check_limit(limit), MOST_CELLS // max(1, len(steps))))
        chosen, following = await self._store.read(lambda: execution_lists.page(namespace, wanted, before, size))
        slices = [history for history, _ in chosen]
        extras = await self._store.read(lambda: execution_lists.extras_of(slices, MOST_BYTES))
        complete = sum(1 for history in slices if history.parcel in extras)
        if complete < len(chosen):
            chosen, following = chosen[:complete], (slices[complete - 1].parcel, chosen[complete - 1][1])
        places = [(history.parcel, item) for history, item in chosen]
        states = await self._store.read(lambda: workflow_reads.states_of(places))
        known = set(steps)
        steps += sorted({step for cells in states.values() for step in cells} - known)
        if by == "interval":
            chosen = sorted(chosen, key=lambda cell: _data_of(cell, extras), reverse=True)
        return GridView(
            steps=steps,
            items=[_item(cell, extras, states[cell[0].parcel, cell[1]]) for cell in chosen],
            next_cursor=None if following is None else make_cursor(following),
        )


def _data_of(chosen: Chosen, extras: dict[UUID, Extras]) -> tuple[Instant, UUID, int]:
    """Return the sort key of an execution by its data interval."""
    item_slice, item = chosen
    interval = extras[item_slice.parcel][item].interval
    return item_slice.due_at if interval is None else interval[0], item_slice.parcel, item


def _item(chosen: Chosen, extras: dict[UUID, Extras], steps: dict[str, str]) -> GridItemView:
    item_slice, item = chosen
    began, ended = item_slice.started_at, item_slice.completed_at
    return GridItemView(
        execution_id=execution_id(item_slice.parcel, item),
        status=item_slice.status,
        at=format_instant(item_slice.due_at),
        interval=shown_interval(extras[item_slice.parcel][item].interval),
        seconds=None if began is None or ended is None else in_seconds(ended - began),
        steps=steps,
    )
