"""Filling of a store with jobs that ran for a week: the rows that servers would have written, in bulk.

Every execution is a row of history with its own parcel, like those of triggered jobs; one job is a workflow.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from random import Random
from uuid import UUID

import msgspec
from msgspec import structs

from bench.kit.app import app
from bench.runs.timer_fill import JOBS, TIMERS, TRIGGERS, VERSIONS, resting
from horae.engine.server_node import ServerNode
from horae.env import SECOND, Env, Instant
from horae.features.statistics.store import statistics
from horae.model.base.ids import first_id_at
from horae.model.executions.tally import DAY, HOUR, MINUTE, TEN_MINUTES, JobTally, NamespaceTally, begin_of
from horae.model.fleet.protocol import Failure
from horae.model.tenancy.principal import DEFAULT_NAMESPACE
from horae.model.triggers.decisions.decide import due_after
from horae.store.base.shelves import HISTORY, Columns
from horae.store.executions.parcels import PARCELS
from horae.store.script import Insert, Script, Together

AT_ONCE = 2_000  # rows in one transaction
DAYS = 7
TEMPLATE, FLOW = "bench-noop", "nightly-flow"
STEPS = tuple(f"step-{n}" for n in range(10))
FLOW_RUNS = 1_000
WRITERS = 3  # servers that wrote statistics
FAILED_EVERY = 50
WORDS = ("report", "invoice", "import", "export", "cleanup", "digest", "backup", "sync")
FLOW_STEPS: Columns = (
    ("parcel", "uuid"), ("item", "int"), ("step", "text"), ("phase", "text"), ("state", "text"), ("missing", "int"),
    ("succeeded", "int"), ("failed", "int"), ("skipped", "int"), ("iteration", "int"), ("total", "int"), ("ok", "int"),
    ("bad", "int"), ("reason", "text"),
)  # fmt: skip
Rows = list[tuple[object, ...]]


class ApiFiller:
    """A filler that writes on its own node."""

    def __init__(self, node: ServerNode) -> None:
        self._node, self._now = node, node.env.now()
        self._rng = Random(8)
        self._number = 0

    async def jobs(self, count: int) -> list[UUID]:
        """Create jobs, each with a trigger; return their ids."""
        template = await self._node.base.directory.jobs.get(DEFAULT_NAMESPACE, TEMPLATE)
        spec, made = template.job.spec, list[UUID]()
        whens = resting(count, self._now)
        for lo in range(0, count, AT_ONCE):
            jobs: Rows = []
            versions: Rows = []
            triggers: Rows = []
            timers: Rows = []
            for n in range(lo, min(lo + AT_ONCE, count)):
                job, when = self._node.env.new_id(), next(whens)
                name = f"{WORDS[n % len(WORDS)]}-{n:06}"
                own = structs.replace(spec, name=name, description=f"Number {n}", tags={"team": f"team-{n % 40}"})
                text = msgspec.json.encode(own).decode()
                jobs.append((job, DEFAULT_NAMESPACE, name, 1, "active", self._now, self._now, own.words))
                versions.append((job, 1, text, template.queue, template.lane, self._now))
                spelled = (msgspec.json.encode(when.trigger).decode(), msgspec.json.encode(when.rules).decode())
                of_job = (job, DEFAULT_NAMESPACE)
                triggers.append((job, *of_job, when.name, 1, *spelled, "active", self._now, self._now))
                timers.append((job, *of_job, due_after(when.trigger, when.rules, self._now), self._now, None))
                made.append(job)
            await self._write(
                Insert("jobs", (*JOBS, ("words", "text")), jobs), Insert("job_versions", VERSIONS, versions),
                Insert("triggers", TRIGGERS, triggers), Insert("timers", TIMERS, timers),
            )  # fmt: skip
        return made

    async def history(self, jobs: Sequence[UUID], count: int) -> None:
        """Write executions of these jobs in turn, over a week."""
        template = await self._node.base.directory.jobs.get(DEFAULT_NAMESPACE, TEMPLATE)
        begin, length = self._now - DAYS * DAY * SECOND, DAYS * DAY * SECOND
        for lo in range(0, count, AT_ONCE):
            parcels: Rows = []
            ended: Rows = []
            for n in range(lo, min(lo + AT_ONCE, count)):
                parcel, at = self._parcel(begin + n * length // count)
                parcels.append(_parcel(parcel, jobs[n % len(jobs)], template.queue, template.lane, at))
                ended.append(self._ended(parcel, jobs[n % len(jobs)], template.queue, at, n % FAILED_EVERY == 7))
            await self._write(Insert("parcels", PARCELS, parcels), Insert("history", HISTORY, ended))

    async def flow(self) -> None:
        """Write a workflow that ran often."""
        steps = [{"name": name, "python": TEMPLATE, "params": {"i": 1}} for name in STEPS]
        made, _ = await self._node.definitions.jobs.put(DEFAULT_NAMESPACE, {"name": FLOW, "workflow": {"steps": steps}})
        template = await self._node.base.directory.jobs.get(DEFAULT_NAMESPACE, TEMPLATE)
        job = made.job_id
        for lo in range(0, FLOW_RUNS, 100):
            parcels: Rows = []
            ended: Rows = []
            cells: Rows = []
            for n in range(lo, lo + 100):
                parcel, at = self._parcel(self._now - (FLOW_RUNS - n) * HOUR * SECOND // 10)
                parcels.append(_parcel(parcel, job, template.queue, template.lane, at))
                ended.append(self._ended(parcel, job, template.queue, at, failed=False))
                cells += [(parcel, 0, step, "main", "success", *(0,) * 8, "") for step in STEPS]
            await self._write(
                Insert("parcels", PARCELS, parcels), Insert("history", HISTORY, ended),
                Insert("flow_steps", FLOW_STEPS, cells),
            )  # fmt: skip

    async def statistics(self, jobs: Sequence[UUID]) -> None:
        """Write the statistics of that week: days of all jobs, hours of some, and all of the namespace."""
        writers = [self._node.env.new_id() for _ in range(WRITERS)]
        tally = JobTally(success=49, failed=1, busy=50 * SECOND)
        for _ in range(50):
            tally.durations.add(self._rng.randrange(10_000, 10 * SECOND))
        spans = [(DAY, begin_of(self._now - ago * DAY * SECOND, DAY)) for ago in range(DAYS + 1)]
        hours = [(HOUR, begin_of(self._now - ago * HOUR * SECOND, HOUR)) for ago in range(DAYS * 24)]
        of_jobs = [((job, *span), tally) for job in jobs for span in spans]
        of_jobs += [((job, *span), tally) for job in jobs[:: max(1, len(jobs) // 100)] for span in hours]
        for lo in range(0, len(of_jobs), AT_ONCE):
            some = of_jobs[lo : lo + AT_ONCE]
            writer = writers[lo // AT_ONCE % WRITERS]
            await self._node.store.write(partial(statistics.put_jobs, writer, some))
        await self._of_namespace(writers)

    async def _of_namespace(self, writers: Sequence[UUID]) -> None:
        busy = NamespaceTally(success=5_000, failed=100, retried=20, busy=SECOND, queued=100)
        for _ in range(500):
            busy.add_lag(self._rng.randrange(1_000, SECOND), 1)
            busy.waits.add(self._rng.randrange(1_000, 60 * SECOND))
        rows = [
            ((DEFAULT_NAMESPACE, span, begin_of(self._now - ago * span * SECOND, span)), busy)
            for span, count in ((MINUTE, 1440), (TEN_MINUTES, 1440), (HOUR, 31 * 24))
            for ago in range(count)
        ]
        for writer in writers:
            await self._node.store.write(partial(statistics.put_namespaces, writer, rows))

    def _parcel(self, at: Instant) -> tuple[UUID, Instant]:
        """Return a unique id of that time."""
        self._number += 1
        return UUID(int=first_id_at(at).int | self._number << 16 | 7 << 76 | 2 << 62), at

    def _ended(self, parcel: UUID, job: UUID, queue: int, at: Instant, failed: bool) -> tuple[object, ...]:
        took = self._rng.randrange(10_000, 10 * SECOND)
        error = Failure(type=f"Error{self._number % 5}", message="It did not work.") if failed else None
        return (
            parcel, 0, 1, job, queue, DEFAULT_NAMESPACE, 1, int(failed), 0, "failed" if failed else "success", "",
            "bench", at, at + SECOND, at + SECOND + took, None, None, None, None,
            None if error is None else msgspec.json.encode(error).decode(), 0,
        )  # fmt: skip

    async def _write(self, *rows: Insert) -> None:
        await self._node.store.write(partial(_written, rows))

    async def days(self) -> None:
        """Create partitions for rows that are older than the store."""
        for ago in range(DAYS + 1):
            await self._node.store.database.ensure_partitions(self._now - ago * DAY * SECOND)


def _parcel(parcel_id: UUID, job: UUID, queue: int, lane: int, at: Instant) -> tuple[object, ...]:
    envelope = (DEFAULT_NAMESPACE, job, 1, queue, lane, 4, None, at, None, None, 0, 1)
    return (parcel_id, *envelope, b"", b"{}", None, at)


def _written(rows: Sequence[Insert]) -> Script[None]:
    yield Together(rows)


@asynccontextmanager
async def filling_api(env: Env, url: str) -> AsyncIterator[ApiFiller]:
    """Open a filler for the store at a URL, with the bench's jobs defined."""
    node = await ServerNode.open(env, url, owner="(horae bench)")
    try:
        await node.prepare()
        for definition in app.definitions():
            await node.definitions.jobs.put(DEFAULT_NAMESPACE, definition)
        yield ApiFiller(node)
    finally:
        await node.stop()


def names(jobs: int) -> Iterator[str]:
    """Yield some names of the created jobs."""
    for n in range(0, jobs, max(1, jobs // 20)):
        yield f"{WORDS[n % len(WORDS)]}-{n:06}"
