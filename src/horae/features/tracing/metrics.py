"""Metrics of spans that this server sent, failed to send, or dropped."""

from collections.abc import Iterator

from prometheus_client import Metric

from horae.features.tracing.part import TracingPart
from horae.server.metrics.families import FeatureMetrics, by_label, counter

NO_SPANS = dict.fromkeys(("sent", "failed", "dropped"), 0)


class SpanMetrics(FeatureMetrics):
    """Numbers of spans by outcome."""

    def collect(self) -> Iterator[Metric]:
        about = (
            "Spans of traces by outcome: sent, failed (the collector did not take them)"
            " or dropped (too many waited to be sent)."
        )
        spans = NO_SPANS if (sink := self.node.part(TracingPart).sink) is None else sink.counts
        yield counter("spans", about, by_label(spans), ["outcome"])
