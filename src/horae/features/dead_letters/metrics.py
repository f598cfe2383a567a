"""Metrics of replays of dead letters: unfinished replays, and dead letters that this server retried."""

from collections import Counter
from collections.abc import Iterator, Mapping

from prometheus_client import Metric

from horae.features.dead_letters.part import DeadLettersPart
from horae.server.metrics.families import FeatureMetrics, Gauge, Labels, counter


class ReplayMetrics(FeatureMetrics):
    """The metrics of replays."""

    gauges = (
        Gauge(
            "replays", "Running and paused replays of dead letters, by state.", ("namespace", "state"), chosen_labels=1
        ),
    )

    def collect(self) -> Iterator[Metric]:
        retried = self.node.part(DeadLettersPart).replayer.retried
        yield counter("replayed_executions", "Dead letters that this server retried in replays.", retried)

    async def read_gauges(self, names: Mapping[int, str]) -> Mapping[str, Mapping[Labels, float]]:
        replays = Counter[Labels]()
        for (namespace, state), count in (await self.node.part(DeadLettersPart).replays.counts()).items():
            replays[names.get(namespace, ""), state] += count
        return {"replays": replays}
