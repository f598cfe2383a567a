"""Metrics of webhook calls to this server, and of watched places that cannot be scanned."""

from collections.abc import Iterator, Mapping
from typing import get_args

from prometheus_client import Metric

from horae.features.events.engine.hooks import CallOutcome
from horae.features.events.part import EventsPart
from horae.server.metrics.families import FeatureMetrics, Gauge, Labels, by_label, counter


class EventMetrics(FeatureMetrics):
    """The metrics of webhooks and watches."""

    gauges = (
        Gauge(
            "failing_watches",
            "Watched places that cannot be scanned as a whole; they are tried again, and the log has the reasons.",
        ),
    )

    def collect(self) -> Iterator[Metric]:
        about = "Calls of webhooks by outcome: accepted, repeated, unsigned, unknown or unreadable."
        counts = self.node.part(EventsPart).hooks.counts
        calls = {outcome: counts.get(outcome, 0) for outcome in get_args(CallOutcome)}
        yield counter("webhooks", about, by_label(calls), ["outcome"])

    async def read_gauges(self, names: Mapping[int, str]) -> Mapping[str, Mapping[Labels, float]]:
        return {"failing_watches": {(): await self.node.part(EventsPart).watcher.troubled()}}
