"""Counts of executions that have not ended, for users; one statement per shelf counts those of all namespaces."""

from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.model.base.ids import execution_id
from horae.model.executions.execution import READS_AS_RUNNING
from horae.store.script import Fetch, Script, Statement

QUEUED = Statement(
    "live_queued", "SELECT namespace, queue, sum(hi - lo), min(queued_at) FROM queued GROUP BY namespace, queue"
)
RUNNING = Statement("live_running", "SELECT namespace, queue, sum(hi - lo) FROM running GROUP BY namespace, queue")
WAITING = Statement("live_waiting", "SELECT namespace, reason, sum(hi - lo) FROM waiting GROUP BY namespace, reason")
LONGEST = Statement(
    "longest_running",
    "SELECT r.parcel, r.lo, r.job, j.name, r.started_at, g.percent, g.message, c.worker FROM"
    " (SELECT parcel, lo, job, attempt, session, started_at FROM running WHERE namespace = $1"
    " AND started_at IS NOT NULL ORDER BY started_at LIMIT 10) AS r JOIN jobs j ON j.id = r.job"
    " LEFT JOIN sessions c ON c.id = r.session LEFT JOIN progress g ON g.parcel = r.parcel AND g.item = r.lo"
    " AND g.attempt = r.attempt ORDER BY r.started_at",
)


class QueueLoad(Struct):
    """The numbers of queued and of running executions of a queue."""

    queued: int = 0
    oldest: Instant | None = None  # when the oldest of them was queued
    running: int = 0


class LiveCounts(Struct):
    """The number of executions of a namespace that have not ended, by state."""

    queues: dict[int, QueueLoad] = {}
    waiting: int = 0
    retrying: int = 0  # how many of the waiting ones wait for another attempt
    suspended: int = 0  # executions on the shelf `waiting` that are shown as running

    def queue(self, queue_id: int) -> QueueLoad:
        return self.queues.setdefault(queue_id, QueueLoad())

    @property
    def queued(self) -> int:
        return sum(queue.queued for queue in self.queues.values())

    @property
    def running(self) -> int:
        return sum(queue.running for queue in self.queues.values()) + self.suspended


class LongestExecution(Struct, frozen=True):
    """One of the executions of a namespace that have run for the longest time."""

    id: UUID
    job: UUID
    job_name: str
    started_at: Instant
    percent: float | None
    message: str | None
    worker: str | None


def live_counts() -> Script[dict[int, LiveCounts]]:
    """Count the executions that have not ended, by namespace."""
    found: dict[int, LiveCounts] = {}
    for namespace, queue, count, oldest in (yield Fetch(QUEUED)):
        load = found.setdefault(namespace, LiveCounts()).queue(queue)
        load.queued, load.oldest = int(count), oldest
    for namespace, queue, count in (yield Fetch(RUNNING)):
        found.setdefault(namespace, LiveCounts()).queue(queue).running = int(count)
    for namespace, reason, count in (yield Fetch(WAITING)):
        of = found.setdefault(namespace, LiveCounts())
        if reason in READS_AS_RUNNING:
            of.suspended += int(count)
        else:
            of.waiting += int(count)
            of.retrying += int(count) if reason == "retry" else 0
    return found


def longest_running(namespace: int) -> Script[list[LongestExecution]]:
    """Return the ten executions of a namespace that have run for the longest time."""
    rows = yield Fetch(LONGEST, (namespace,))
    return [LongestExecution(execution_id(parcel, lo), *rest) for parcel, lo, *rest in rows]
