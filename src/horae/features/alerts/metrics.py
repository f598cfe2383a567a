"""Metrics of alerts: firing alerts, changes found by this server, and tries to deliver notices."""

from collections.abc import Iterator, Mapping

from prometheus_client import Metric

from horae.features.alerts.part import AlertsPart
from horae.server.metrics.families import FeatureMetrics, Gauge, Labels, by, counter


class AlertMetrics(FeatureMetrics):
    """The metrics of alerts and their notices."""

    gauges = (Gauge("alerts", "Alerts that are firing, by severity.", ("namespace", "severity"), names=1),)

    def collect(self) -> Iterator[Metric]:
        watch, delivery = self.node.part(AlertsPart).watch, self.node.part(AlertsPart).delivery
        changes = {"firing": watch.fired, "recovered": watch.recovered}
        told = "Changes of alerts that this server found, by what they changed to: firing or recovered."
        yield counter("alert_changes", told, by(changes), ["state"])
        told = "Evaluations of alert rules that failed on this server; the log has the reasons."
        yield counter("alert_looks_failed", told, watch.failed)
        told = "Tries to deliver notices of alerts, by outcome: delivered, pending (tried again) or failed (given up)."
        yield counter("alert_notices", told, by(delivery.deliveries), ["outcome"])

    async def look(self, names: Mapping[int, str]) -> Mapping[str, Mapping[Labels, float]]:
        firing = await self.node.part(AlertsPart).alerts.firing()
        return {"alerts": {(names.get(namespace, ""), level): count for (namespace, level), count in firing.items()}}
