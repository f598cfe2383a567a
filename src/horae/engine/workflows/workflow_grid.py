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

MOST_CELLS = 20_000
GridOrder = Literal["run", "interval"]


class WorkflowGrid:
    """Executions beside one another."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def page(
        self, namespace: int, ref: str, *, limit: int = 50, cursor: str | None = None, by: GridOrder = "run"
    ) -> GridView:
        """A page of the newest; of a workflow with very many steps it is shorter than asked for.

        By `interval`, those of the page are ordered by the start of their data's interval, or else by when they were
        due; of executions about the same data the newest comes first.
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
        slices = [slice for slice, _ in chosen]
        extras = await self._store.read(lambda: execution_lists.extras_of(slices, MOST_BYTES))
        told = sum(1 for slice in slices if slice.parcel in extras)
        if told < len(chosen):
            chosen, following = chosen[:told], (slices[told - 1].parcel, chosen[told - 1][1])
        places = [(slice.parcel, item) for slice, item in chosen]
        states = await self._store.read(lambda: flow_reads.states_of(places))
        known = set(steps)
        steps += sorted({step for cells in states.values() for step in cells} - known)
        if by == "interval":
            chosen = sorted(chosen, key=lambda one: _data_of(one, extras), reverse=True)
        return GridView(
            steps=steps,
            items=[_item(one, extras, states[one[0].parcel, one[1]]) for one in chosen],
            next_cursor=None if following is None else make_cursor(following),
        )


def _data_of(chosen: Chosen, extras: dict[UUID, Extras]) -> tuple[Instant, UUID, int]:
    """Where an execution stands among others by the data that it is about."""
    slice, item = chosen
    interval = extras[slice.parcel][item].interval
    return slice.due_at if interval is None else interval[0], slice.parcel, item


def _item(chosen: Chosen, extras: dict[UUID, Extras], steps: dict[str, str]) -> GridItemView:
    slice, item = chosen
    began, ended = slice.started_at, slice.completed_at
    return GridItemView(
        execution_id=execution_id(slice.parcel, item),
        status=slice.status,
        at=format_instant(slice.due_at),
        interval=shown_interval(extras[slice.parcel][item].interval),
        seconds=None if began is None or ended is None else in_seconds(ended - began),
        steps=steps,
    )
