"""All metric families of one server, and their text for Prometheus."""

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from horae.engine.server_node import ServerNode
from horae.errors import StoreUnavailable
from horae.feature import load
from horae.server.call import ApiCall
from horae.server.metrics.services import ServerInfoMetrics, ServiceMetrics, StoreMetrics
from horae.server.metrics.stored import StoredMetrics, StoreSampler
from horae.server.metrics.traffic import ExchangeMetrics, ExecutionMetrics, RequestMetrics
from horae.server.route import Route

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4.encode()


class Metrics:
    """The metric families of one server."""

    def __init__(self, node: ServerNode) -> None:
        self.registry = CollectorRegistry()
        features = [load(feature.metrics)(node) for feature in node.features if feature.metrics]
        self._answers, self._sampler = RequestMetrics(), StoreSampler(node, features)
        self._stored = stored = StoredMetrics(features)
        executions = ExecutionMetrics(node, stored.names)
        for family in (
            executions,
            ExchangeMetrics(node),
            StoreMetrics(node, stored),
            ServiceMetrics(node),
            *features,
            ServerInfoMetrics(node),
        ):
            self.registry.register(family)
        ProcessCollector(registry=self.registry)
        self.registry.register(self._answers)
        self.registry.register(self._stored)

    def answered(self, route: Route, status: int, seconds: float) -> None:
        """Count an answered request."""
        self._answers.add(route.name, status, seconds)

    async def text(self) -> bytes:
        """Return the text for Prometheus, with fresh figures from the store.

        If the store cannot be reached, the text has only the figures of this process.
        """
        try:
            self._stored.set_sample(await self._sampler.sample())
        except StoreUnavailable:
            self._stored.set_sample(None, away=True)
        return generate_latest(self.registry)


async def exposition(call: ApiCall) -> bytes:
    """Return the text for Prometheus."""
    metrics: Metrics = call.scope["app"].metrics
    return await metrics.text()
