"""Metrics of alerts: firing alerts, changes of alerts by this server, and its tries to deliver notices."""

from collections.abc import Iterator, Mapping

from prometheus_client import Metric

from horae.features.alerts.part import AlertsPart
from horae.server.metrics.families import FeatureMetrics, Gauge, Labels, by_label, counter


class AlertMetrics(FeatureMetrics):
    """The metrics of alerts and their notices."""

    gauges = (Gauge("alerts", "Alerts that are firing, by severity.", ("namespace", "severity"), chosen_labels=1),)

    def collect(self) -> Iterator[Metric]:
        watch, delivery = self.node.part(AlertsPart).watch, self.node.part(AlertsPart).delivery
        changes = {"firing": watch.fired, "recovered": watch.recovered}
        about = "Changes of alerts that this server wrote, by new state: firing or recovered."
        yield counter("alert_changes", about, by_label(changes), ["state"])
        about = "Evaluations of alert rules that failed on this server; the log has the reasons."
        yield counter("alert_evaluations_failed", about, watch.failed)
        about = "Tries to deliver notices, by outcome: delivered, pending (will be tried again) or failed (given up)."
        yield counter("alert_notices", about, by_label(delivery.deliveries), ["outcome"])

    async def read_gauges(self, names: Mapping[int, str]) -> Mapping[str, Mapping[Labels, float]]:
        firing = await self.node.part(AlertsPart).alerts.firing()
        return {"alerts": {(names.get(namespace, ""), level): count for (namespace, level), count in firing.items()}}
