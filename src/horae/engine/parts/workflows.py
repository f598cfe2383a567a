"""Workflows: begun, moved from step to step, and as people see and handle them."""

from collections.abc import Collection, Sequence

from horae.engine.parts.base import Base
from horae.engine.parts.part import Part
from horae.engine.parts.work import Work
from horae.engine.service import Service
from horae.engine.workflows.callbacks import Callbacks
from horae.engine.workflows.graphs import Graphs
from horae.engine.workflows.grid import Grid
from horae.engine.workflows.steps_by_hand import StepsByHand
from horae.engine.workflows.workflows import Flows, Opener
from horae.model.executions.tracer import Tracer


class Workflows(Part):
    """Opens workflows, looks at those that are due, and shows their graphs."""

    def __init__(self, base: Base, work: Work, tracer: Tracer | None) -> None:
        env, store, happenings = base.env, base.store, base.happenings
        self.opener = Opener(env, store, base.directory, base.hints, happenings, tracer)
        self.flows = Flows(env, store, base.hints, base.clock, base.outcomes, happenings)
        self.graphs = Graphs(env, store, work.executions)
        self.grid = Grid(store)
        self.steps_by_hand = StepsByHand(env, store, work.executions)
        self.callbacks = Callbacks(store, work.signals)

    async def prepare(self) -> None:
        await self.callbacks.prepare()

    def services(self, roles: Collection[str]) -> Sequence[Service]:
        return [self.opener, self.flows] if "scheduler" in roles else ()
