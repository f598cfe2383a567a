"""Workflows: the services that start and advance them, and the operations of users on them."""

from collections.abc import Collection, Sequence

from horae.engine.executions.signals import Callbacks
from horae.engine.parts.base import BasePart
from horae.engine.parts.part import ServerPart
from horae.engine.parts.work import WorkPart
from horae.engine.service import Service
from horae.engine.workflows.steps_by_hand import StepsByHand
from horae.engine.workflows.workflow_views import WorkflowGraphs, WorkflowGrid
from horae.engine.workflows.workflows import WorkflowAdvancer, WorkflowOpener
from horae.model.executions.tracer import Tracer


class WorkflowsPart(ServerPart):
    """Starts workflows, advances those that are due, and shows their graphs."""

    def __init__(self, base: BasePart, work: WorkPart, tracer: Tracer | None) -> None:
        env, store, topics = base.env, base.store, base.topics
        self.opener = WorkflowOpener(env, store, base.directory, base.hints, topics, tracer)
        self.advancer = WorkflowAdvancer(env, store, base.hints, base.clock, base.outcomes, topics)
        self.graphs = WorkflowGraphs(env, store, work.executions)
        self.grid = WorkflowGrid(store)
        self.steps_by_hand = StepsByHand(env, store, work.executions)
        self.callbacks = Callbacks(store, work.signals)

    async def prepare(self) -> None:
        await self.callbacks.prepare()

    def services(self, roles: Collection[str]) -> Sequence[Service]:
        return [self.opener, self.advancer] if "scheduler" in roles else ()
