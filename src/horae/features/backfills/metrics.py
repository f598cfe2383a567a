"""Metrics of backfills: executions that this server started, and the progress of backfills that are not completed."""

from collections import Counter
from collections.abc import Iterator, Mapping

from prometheus_client import Metric

from horae.features.backfills.part import BackfillsPart
from horae.server.metrics.families import FeatureMetrics, Gauge, Labels, counter


class BackfillMetrics(FeatureMetrics):
    """The metrics of backfills."""

    gauges = (
        Gauge(
            "backfills",
            "Uncompleted backfills by job and state: running, paused, or cancelled with live executions.",
            ("namespace", "job_name", "state"), chosen_labels=2,
        ),
        Gauge(
            "backfill_fires",
            "Fires of uncompleted backfills by job and state: pending, skipped, live, succeeded, failed,"
            " ended_otherwise.",
            ("namespace", "job_name", "state"), chosen_labels=2,
        ),
    )  # fmt: skip

    def collect(self) -> Iterator[Metric]:
        started = self.node.part(BackfillsPart).backfiller.started
        yield counter("backfill_executions", "Executions that this server started for backfills.", started)

    async def read_gauges(self, names: Mapping[int, str]) -> Mapping[str, Mapping[Labels, float]]:
        backfills, fires = Counter[Labels](), Counter[Labels]()
        for one in await self.node.part(BackfillsPart).backfills.unfinished():
            namespace = names.get(one.namespace, "")
            backfills[namespace, one.job, one.state] += one.backfills
            for state, count in one.fires.items():
                fires[namespace, one.job, state] += count
        return {"backfills": backfills, "backfill_fires": fires}
