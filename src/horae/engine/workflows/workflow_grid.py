"""The grid of a job: its executions, newest first, by the steps of its workflow."""

from typing import Literal
from uuid import UUID

from horae.engine.base.refs import find_job
from horae.env import Instant
from horae.model.base.cursor import check_limit, make_cursor, read_cursor
from horae.model.base.ids import execution_id
from horae.model.base.instant import format_instant
from horae.model.base.view import in_seconds
from horae.model.executions.execution_view import shown_interval
from horae.model.executions.parcel import Extras
from horae.model.workflows.decisions.values import Workflow
from horae.model.workflows.grid_view import GridItemView, GridView
from horae.store.contract import Store
from horae.store.executions.reads import execution_lists
from horae.store.executions.reads.execution_lists import END, Chosen, ExecutionFilter
from horae.store.executions.reads.item_parts import MOST_BYTES
from horae.store.workflows import reads as flow_reads

MOST_CELLS = 20_000  # executions times steps in one page
GridOrder = Literal["run", "interval"]


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
            plan = await self._store.read(lambda: flow_reads.present_plan(job.id))
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
        states = await self._store.read(lambda: flow_reads.states_of(places))
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
