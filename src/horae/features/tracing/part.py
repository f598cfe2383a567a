"""The part of a server that records spans of ended workflows.

The kernel itself calls the tracer for the spans of requests and grants.
"""

from collections.abc import Collection, Sequence

from horae.engine.parts.part import ServerPart
from horae.engine.server_node import ServerNode
from horae.engine.service import Service
from horae.features.tracing.engine.spans import Tracing, WorkflowSpans
from horae.model.executions.tracer import SpanSink
from horae.store.executions.leaving.effects import Effects


class TracingPart(ServerPart):
    """The part that records spans of workflows, if the settings name an endpoint."""

    def __init__(self, node: ServerNode) -> None:
        self.tracing = node.tracer if isinstance(node.tracer, Tracing) else None
        self.workflows: WorkflowSpans | None = None
        if self.tracing is not None:
            self.workflows = WorkflowSpans(node.store, node.base.directory.definitions, self.tracing)
            node.base.topics.settled.subscribe("tracing", self._settled)

    @property
    def sink(self) -> SpanSink | None:
        """Return the exporter of spans, or None."""
        return None if self.tracing is None else self.tracing.sink

    def _settled(self, effects: Effects) -> None:
        if self.workflows is not None:
            self.workflows.add(effects.ended)

    def services(self, roles: Collection[str]) -> Sequence[Service]:
        return [] if self.workflows is None else [self.workflows]

    async def flush(self) -> None:
        while self.workflows is not None and await self.workflows.step() == 0.0:
            pass  # there are more

    async def close(self) -> None:
        if self.tracing is not None:
            await self.tracing.sink.close()
