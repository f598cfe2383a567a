"""What only the store knows, asked each time that somebody reads the metrics."""

import asyncio
from collections import Counter
from collections.abc import Iterator

from msgspec import Struct, field
from prometheus_client import Metric
from prometheus_client.registry import Collector

from horae.engine.base.survey import MOST_HOLDERS, Survey, Table
from horae.engine.node import Node
from horae.errors import Busy, StoreUnavailable
from horae.features.alerts.part import AlertsPart
from horae.features.backfills.part import BackfillsPart
from horae.features.dead_letters.part import DeadLettersPart
from horae.features.events.part import EventsPart
from horae.server.metrics.families import bounded, gauge
from horae.server.promptly import heard

PATIENCE = 5.0  # seconds that the store has to answer; Prometheus itself waits for ten
LITTLE_PATIENCE = 1.0  # if it is known to be away


class Looked(Struct):
    """What the store said of all namespaces: the survey of the kernel, and the figures of features."""

    survey: Survey = field(default_factory=Survey)
    watches: int = 0
    backfills: Table = field(default_factory=Counter)
    fires: Table = field(default_factory=Counter)
    replays: Table = field(default_factory=Counter)
    alerts: Table = field(default_factory=Counter)


class Look:
    """Asks the store, once for all who read at the same time."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._going: asyncio.Task[Looked] | None = None

    async def now(self) -> Looked | None:
        """Return what the store says; None if it takes longer than readers wait. Raises StoreUnavailable."""
        if self._going is None or self._going.done():
            self._going = asyncio.create_task(look(self._node), name="horae-metrics")
            self._going.add_done_callback(heard)
        going = self._going
        await asyncio.wait({going}, timeout=PATIENCE if self._node.ready else LITTLE_PATIENCE)
        if not going.done():
            return None
        try:
            return going.result()
        except StoreUnavailable:
            raise
        except Busy:
            return None


async def look(node: Node) -> Looked:
    """Ask for everything."""
    survey = await node.work.surveyor.look()
    looked, names = Looked(survey, await node.part(EventsPart).watcher.troubled()), survey.namespaces
    for (namespace, state), count in (await node.part(DeadLettersPart).replays.counts()).items():
        looked.replays[names.get(namespace, ""), state] = count
    for (namespace, severity), count in (await node.part(AlertsPart).alerts.firing()).items():
        looked.alerts[names.get(namespace, ""), severity] = count
    for one in await node.part(BackfillsPart).backfills.unfinished():
        looked.backfills[names.get(one.namespace, ""), one.job, one.state] = one.backfills
        for standing, count in one.fires.items():
            looked.fires[names.get(one.namespace, ""), one.job, standing] += count
    return looked


class Shown(Collector):
    """The last look. Of a store that could not be asked nothing is told, rather than what was so before."""

    def __init__(self) -> None:
        self.looked: Looked | None = None
        self.away = False
        self.names: dict[int, str] = {}  # of all namespaces that were ever seen: counters of theirs do not go away

    def show(self, looked: Looked | None, *, away: bool = False) -> None:
        self.looked, self.away = looked, away
        if looked is not None:
            self.names.update(looked.survey.namespaces)

    @property
    def _said(self) -> Looked:
        return self.looked or Looked()

    @property
    def _survey(self) -> Survey:
        return self._said.survey

    def _number(self, name: str, told: str, value: float) -> Metric:
        return gauge(name, told, {} if self.looked is None else value)

    def collect(self) -> Iterator[Metric]:
        yield from self._queues()
        yield from self._workers()
        yield from self._limits()
        yield from self._jobs()
        told = "Triggers that cannot be decided; they are tried again every minute, and the log and their jobs say why."
        yield self._number("troubled_triggers", told, self._survey.troubled)
        told = "Watched places that cannot be looked at; they are tried again, and the log says why."
        yield self._number("troubled_watches", told, self._said.watches)

    def _queues(self) -> Iterator[Metric]:
        survey, labels = self._survey, ["namespace", "queue"]
        yield gauge("queued_executions", "Executions queued, by queue.", bounded(survey.queued, 2), labels)
        told = "How long the oldest of what is queued has been queued, by queue."
        yield gauge("oldest_queued_seconds", told, bounded(survey.oldest, 2, together=max), labels)
        told = "1 for each queue of which nothing is started, by a hold or a maintenance window."
        yield gauge("held_queues", told, bounded(survey.held, 2), labels)

    def _workers(self) -> Iterator[Metric]:
        survey = self._survey
        yield gauge("workers", "Workers, by status.", bounded(survey.workers, 1), ["namespace", "status"])
        told = "Slots of workers that are there, by whether something runs in them: busy or idle."
        yield gauge("worker_slots", told, bounded(survey.slots, 1), ["namespace", "state"])

    def _limits(self) -> Iterator[Metric]:
        survey, labels = self._survey, ["namespace", "queue"]
        told = "Executions that run under the limit of a queue, or of a namespace (no queue)."
        yield gauge("limit_used", told, bounded(survey.used, 2), labels)
        told = "How many of them may run at once."
        yield gauge("limit_size", told, bounded(survey.limits, 2, order=survey.used), labels)
        told = f"Entries of executions that hold limits by key and sequences; {MOST_HOLDERS} stands for more."
        yield self._number("limit_holders", told, survey.holders)

    def _jobs(self) -> Iterator[Metric]:
        looked, by_job = self._said, ["namespace", "job_name", "state"]
        told = "Circuits of jobs that are open or half-open, by job and state."
        yield gauge("circuits", told, bounded(self._survey.circuits, 2), by_job)
        told = (
            "Backfills that are not completed, by job and state: running, paused, or cancelled with executions to end."
        )
        yield gauge("backfills", told, bounded(looked.backfills, 2), by_job)
        told = (
            "Fires of these backfills, by job and how they stand: to_come, left_alone, live, succeeded, failed or"
            " ended_otherwise."
        )
        yield gauge("backfill_fires", told, bounded(looked.fires, 2), ["namespace", "job_name", "standing"])
        told = "Replays of dead letters that go on or are paused, by state."
        yield gauge("replays", told, bounded(looked.replays, 1), ["namespace", "state"])
        told = "Alerts that are firing, by severity."
        yield gauge("alerts", told, bounded(looked.alerts, 1), ["namespace", "severity"])
