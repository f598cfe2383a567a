"""All families of one server, and their text."""

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from horae.engine.node import Node
from horae.server.call import Call
from horae.server.metrics.alerts import Alerts
from horae.server.metrics.answers import Answers
from horae.server.metrics.exchanges import Exchanges
from horae.server.metrics.executions import Executions
from horae.server.metrics.looked import Looked, Shown, look
from horae.server.metrics.services import Itself, Services
from horae.server.metrics.storage import Storage
from horae.server.route import Route

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4.encode()


class Metrics:
    """The families of one server."""

    def __init__(self, node: Node) -> None:
        self.registry = CollectorRegistry()
        self._answers, self._shown = Answers(), Shown()
        executions = Executions(node, lambda: self._shown.looked.namespaces)
        for family in (executions, Exchanges(node), Storage(node), Services(node), Alerts(node), Itself(node)):
            self.registry.register(family)
        ProcessCollector(registry=self.registry)
        self.registry.register(self._answers)
        self.registry.register(self._shown)

    def answered(self, route: Route, status: int, seconds: float) -> None:
        """A request was answered."""
        self._answers.add(route.name, status, seconds)

    def text(self, looked: Looked) -> bytes:
        """What Prometheus reads, with what the store just said."""
        self._shown.looked = looked
        return generate_latest(self.registry)


async def exposition(call: Call) -> bytes:
    """The text Prometheus reads."""
    metrics: Metrics = call.scope["app"].metrics
    return metrics.text(await look(call.node))
