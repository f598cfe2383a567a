"""Metrics that are not counted in memory: each scrape reads them from the store."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field
from prometheus_client import Metric
from prometheus_client.registry import Collector

from horae.engine.base.survey import MOST_HOLDERS, Survey
from horae.engine.server_node import ServerNode
from horae.errors import Busy, StoreUnavailable
from horae.server.metrics.families import FeatureMetrics, Labels, gauge, limit_series
from horae.server.time_limits import ignore_late_result

PATIENCE = 5.0  # seconds to wait for the store; Prometheus waits ten seconds for a scrape
AWAY_PATIENCE = 1.0  # seconds to wait for a store that could not be reached before


class StoreSample(Struct):
    """Figures from the store for all namespaces: the kernel's survey, and the gauges of features."""

    survey: Survey = field(default_factory=Survey)
    figures: dict[str, Mapping[Labels, float]] = field(default_factory=dict)  # name of a gauge -> its values


class StoreSampler:
    """Reads figures from the store. Simultaneous scrapes share one read."""

    def __init__(self, node: ServerNode, features: Sequence[FeatureMetrics]) -> None:
        self._node, self._features = node, features
        self._going: asyncio.Task[StoreSample] | None = None

    async def sample(self) -> StoreSample | None:
        """Return fresh figures from the store; None if the store is busy or too slow. Raises StoreUnavailable."""
        if self._going is None or self._going.done():
            self._going = asyncio.create_task(sample_store(self._node, self._features), name="horae-metrics")
            self._going.add_done_callback(ignore_late_result)
        going = self._going
        await asyncio.wait({going}, timeout=PATIENCE if self._node.ready else AWAY_PATIENCE)
        if not going.done():
            return None
        try:
            return going.result()
        except StoreUnavailable:
            raise
        except Busy:
            return None


async def sample_store(node: ServerNode, features: Sequence[FeatureMetrics]) -> StoreSample:
    """Read all figures from the store."""
    sample = StoreSample(await node.work.surveyor.survey())
    for feature in features:
        sample.figures.update(await feature.read_gauges(sample.survey.namespaces))
    return sample


class StoredMetrics(Collector):
    """The metrics of the last sample. If the store could not be read, there are no values, rather than old ones."""

    def __init__(self, features: Sequence[FeatureMetrics]) -> None:
        self._gauges = [gauge for feature in features for gauge in feature.gauges]
        self.sample: StoreSample | None = None
        self.away = False  # the store could not be reached
        self.names: dict[int, str] = {}  # all namespaces ever seen, since their counters must not disappear

    def set_sample(self, sample: StoreSample | None, *, away: bool = False) -> None:
        self.sample, self.away = sample, away
        if sample is not None:
            self.names.update(sample.survey.namespaces)

    @property
    def _known_sample(self) -> StoreSample:
        return self.sample or StoreSample()

    @property
    def _survey(self) -> Survey:
        return self._known_sample.survey

    def _number(self, name: str, help_text: str, value: float) -> Metric:
        return gauge(name, help_text, {} if self.sample is None else value)

    def collect(self) -> Iterator[Metric]:
        yield from self._queues()
        yield from self._workers()
        yield from self._limits()
        yield from self._jobs()
        help_text = (
            "Triggers whose next fire cannot be computed, for example because of a faulty expression;"
            " they are retried every minute, and the log shows the reason."
        )
        yield self._number("failing_triggers", help_text, self._survey.troubled)
        for one in self._gauges:
            values = self._known_sample.figures.get(one.name, {})
            yield gauge(one.name, one.help_text, limit_series(values, one.chosen_labels), one.labels)

    def _queues(self) -> Iterator[Metric]:
        survey, labels = self._survey, ["namespace", "queue"]
        yield gauge("queued_executions", "Executions queued, by queue.", limit_series(survey.queued, 2), labels)
        help_text = "Time for which the oldest queued execution has been queued, by queue."
        yield gauge("oldest_queued_seconds", help_text, limit_series(survey.oldest, 2, combine=max), labels)
        help_text = "1 for each queue that starts no executions because of a hold or a maintenance window."
        yield gauge("held_queues", help_text, limit_series(survey.held, 2), labels)

    def _workers(self) -> Iterator[Metric]:
        survey = self._survey
        yield gauge("workers", "Workers, by status.", limit_series(survey.workers, 1), ["namespace", "status"])
        help_text = "Slots of present workers, by state: busy or idle."
        yield gauge("worker_slots", help_text, limit_series(survey.slots, 1), ["namespace", "state"])

    def _limits(self) -> Iterator[Metric]:
        survey, labels = self._survey, ["namespace", "queue"]
        help_text = (
            "Running executions that count towards the limit of a queue;"
            " if the label `queue` is empty, towards the limit of the namespace."
        )
        yield gauge("limit_used", help_text, limit_series(survey.used, 2), labels)
        help_text = "The limit of simultaneous executions of a queue; if the label `queue` is empty, of the namespace."
        yield gauge("limit_size", help_text, limit_series(survey.limits, 2, sort_values=survey.used), labels)
        help_text = (
            "Stored rows of held keys: one for each parcel and each key of a limit, a sequence or a trigger's turn;"
            f" at most {MOST_HOLDERS} are counted."
        )
        yield self._number("limit_holders", help_text, survey.holders)

    def _jobs(self) -> Iterator[Metric]:
        help_text = "Open and half-open circuits, by job and state."
        yield gauge("circuits", help_text, limit_series(self._survey.circuits, 2), ["namespace", "job_name", "state"])
