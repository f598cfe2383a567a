"""What this server found by alert rules, and what became of notices."""

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.registry import Collector

from horae.engine.node import Node
from horae.features.alerts.part import AlertsPart
from horae.server.metrics.families import by, counter


class Alerts(Collector):
    """Alerts that began and ended, and their notices."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def collect(self) -> Iterator[Metric]:
        watch, delivery = self._node.part(AlertsPart).watch, self._node.part(AlertsPart).delivery
        changes = {"firing": watch.fired, "recovered": watch.recovered}
        told = "Changes of alerts that this server found, by what they changed to: firing or recovered."
        yield counter("alert_changes", told, by(changes), ["state"])
        told = "Looks at alert rules of this server that failed; the log says why."
        yield counter("alert_looks_failed", told, watch.failed)
        told = "Tries to deliver notices of alerts, by outcome: delivered, pending (tried again) or failed (given up)."
        yield counter("alert_notices", told, by(delivery.deliveries), ["outcome"])
