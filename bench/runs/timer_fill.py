"""Filling of a store with millions of triggers: the rows that the product writes, in bulk.

It runs in the bench's process while no server runs, and leaves the same rows as calls of the API.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice

import msgspec
from msgspec import Struct

from bench.kit.app import app
from horae.engine.server_node import ServerNode
from horae.env import SECOND, Env, Instant
from horae.model.base.ids import execution_id, parcel_id
from horae.model.executions.parcel import MAX_ITEMS
from horae.model.tenancy.principal import DEFAULT_NAMESPACE
from horae.model.triggers.cron.zone import names as zone_names
from horae.model.triggers.decisions.decide import due_after
from horae.model.triggers.decisions.named_trigger import NamedTrigger
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.values import Cron, Interval, Trigger, next_fire
from horae.store.base.shelves import Columns
from horae.store.definitions.jobs import StoredJob
from horae.store.script import Insert, Script, Together

STEPS, ALIKE = 5_000, 20
AT_ONCE = 4_000  # triggers in one transaction
EXPRESSIONS, ZONES = 500, 50
TEMPLATE = "bench-noop"
DAY, WINDOW = 86_400 * SECOND, 5 * SECOND

JOBS: Columns = (
    ("id", "uuid"), ("namespace", "int"), ("name", "text"), ("version", "int"), ("state", "text"),
    ("created_at", "bigint"), ("updated_at", "bigint"),
)  # fmt: skip
VERSIONS: Columns = (
    ("job", "uuid"), ("version", "int"), ("spec", "text"), ("queue", "int"), ("lane", "int"), ("created_at", "bigint"),
)  # fmt: skip
TRIGGERS: Columns = (
    ("id", "uuid"), ("job", "uuid"), ("namespace", "int"), ("name", "text"), ("version", "int"),
    ("definition", "text"), ("rules", "text"), ("state", "text"), ("valid_from", "bigint"), ("created_at", "bigint"),
)  # fmt: skip
TIMERS: Columns = (
    ("trigger_id", "uuid"), ("job", "uuid"), ("namespace", "int"), ("next_fire_at", "bigint"),
    ("decided_through", "bigint"), ("last_execution", "uuid"),
)  # fmt: skip


class Load(Struct, frozen=True):
    """Triggers to write, in order, with a number of triggers per job."""

    name: str
    whens: Iterable[NamedTrigger]
    per_job: int
    ran: bool = False  # each has fired before, and its execution has ended: overlap `skip` must check it


class TimerFiller:
    """A filler that writes jobs with triggers on its own node."""

    def __init__(self, node: ServerNode, template: StoredJob) -> None:
        self._node, self._template = node, template
        self._spec = msgspec.json.encode(template.job.spec).decode()

    async def load(self, load: Load) -> int:
        """Write all triggers of a load; return their number."""
        whens, number, total = iter(load.whens), 0, 0
        at_once = max(AT_ONCE // load.per_job, 1) * load.per_job
        writing: asyncio.Task[None] | None = None
        while some := list(islice(whens, at_once)):
            jobs = [some[lo : lo + load.per_job] for lo in range(0, len(some), load.per_job)]
            rows = self._rows(f"{load.name}-{number}", jobs, load.ran)
            if writing is not None:
                await writing
            writing = asyncio.create_task(self._node.store.write(partial(_write, rows)))
            await asyncio.sleep(0)  # the store writes these while the next rows are built
            number, total = number + 1, total + len(some)
        if writing is not None:
            await writing
        return total

    def _rows(self, name: str, jobs: Sequence[Sequence[NamedTrigger]], ran: bool) -> list[Insert]:
        now, template, new_id = self._node.env.now(), self._template, self._node.env.new_id
        made: list[tuple[object, ...]] = []
        versions: list[tuple[object, ...]] = []
        triggers: list[tuple[object, ...]] = []
        timers: list[tuple[object, ...]] = []
        for place, whens in enumerate(jobs):
            job = new_id()
            made.append((job, DEFAULT_NAMESPACE, f"{name}-{place}", 1, "active", now, now))
            versions.append((job, 1, self._spec, template.queue, template.lane, now))
            for index, when in enumerate(whens):
                if index % MAX_ITEMS == 0:
                    parcel = parcel_id(new_id())
                last = execution_id(parcel, index % MAX_ITEMS) if ran else None
                trigger_id = new_id()
                owned = (trigger_id, job, DEFAULT_NAMESPACE)
                told = (when.name, 1, _text(when.trigger), _text(when.rules), "active", now, now)
                triggers.append((*owned, *told))
                timers.append((*owned, due_after(when.trigger, when.rules, now), now, last))
        return [
            Insert("jobs", JOBS, made),
            Insert("job_versions", VERSIONS, versions),
            Insert("triggers", TRIGGERS, triggers),
            Insert("timers", TIMERS, timers),
        ]  # fmt: skip


def _write(rows: Sequence[Insert]) -> Script[None]:
    yield Together(rows)


def _text(value: Trigger | Rules) -> str:
    return msgspec.json.encode(value).decode()


@asynccontextmanager
async def filling_timers(env: Env, url: str) -> AsyncIterator[TimerFiller]:
    """Open a filler for the store at a URL, with the bench's jobs defined."""
    node = await ServerNode.open(env, url, owner="(horae bench)")
    try:
        await node.prepare()
        for definition in app.definitions():
            await node.definitions.jobs.put(DEFAULT_NAMESPACE, definition)
        yield TimerFiller(node, await node.base.directory.jobs.get(DEFAULT_NAMESPACE, TEMPLATE))
    finally:
        await node.stop()


def resting(count: int, now: Instant) -> Iterator[NamedTrigger]:
    """Yield triggers of mixed expressions in many zones; none is due today, in any zone."""
    crons = [Cron(expression=text, timezone=zone) for zone in _zones() for text in _expressions(now)]
    for i in range(count):
        yield NamedTrigger(name=f"t{i % 10}", trigger=crons[i % len(crons)], rules=Rules())


def _zones() -> list[str]:
    names = sorted(name for name in zone_names() if "/" in name and not name.startswith(("Etc/", "SystemV/")))
    return names[:: max(1, len(names) // ZONES)][:ZONES]


def _expressions(now: Instant) -> list[str]:
    """Return weekly, monthly, yearly and other expressions, on days other than yesterday to the day after tomorrow."""
    today = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=now)
    near = [today + timedelta(days=days) for days in (-1, 0, 1, 2)]
    weekdays = [day for day in range(7) if day not in {at.isoweekday() % 7 for at in near}]
    days = [day for day in range(1, 29) if day not in {at.day for at in near}]
    months = [month for month in range(1, 13) if month not in {at.month for at in near}]
    found = []
    for i in range(EXPRESSIONS):
        minute, hour, day = i * 7 % 60, i * 5 % 24, days[i % len(days)]
        found.append(
            (
                f"{minute} {hour} * * {weekdays[i % len(weekdays)]}",
                f"{minute} {hour} {day} * *",
                f"{minute} {hour} {day} {months[i % len(months)]} *",
                f"{minute},{(minute + 30) % 60} {hour}-23/4 {day} * *",
                f"{i % 60} {minute} {hour} * * {weekdays[i % len(weekdays)]}",
            )[i % 5]
        )
    return found


def steady(rate: int, seconds: int, at: Instant) -> Iterator[NamedTrigger]:
    """Yield triggers that fire once each from an instant on, one after another at an even rate.

    Every second one is an interval, the others are cron expressions with a fixed offset.
    """
    length = seconds * SECOND
    for i in range(rate * seconds):
        due = at + i * length // (rate * seconds)
        if i % 2:
            yield NamedTrigger(name=f"t{i % 10}", trigger=Interval(every=DAY, anchor=due))
        else:
            nominal = at + (due - at) // WINDOW * WINDOW
            rules = Rules(spread=WINDOW, offset=due - nominal)
            yield NamedTrigger(name=f"t{i % 10}", trigger=Cron(expression=_daily(nominal)), rules=rules)


def _daily(at: Instant) -> str:
    """Return the cron expression of an instant's time of day."""
    when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at)
    return f"{when.second} {when.minute} {when.hour} * * *"


def herd(count: int, at: Instant) -> Iterator[NamedTrigger]:
    """Yield triggers that are all due at one instant."""
    cron = Cron(expression=_daily(at))
    for i in range(count):
        yield NamedTrigger(name=f"t{i}", trigger=cron)


def cost_of_next() -> dict[str, float]:
    """Return the microseconds to compute the next fire, of one expression in sequence and of many similar triggers."""
    begun = 1_794_700_800 * SECOND
    common = [
        Cron(expression=text, timezone="Europe/Paris") for text in ("*/5 * * * *", "0 9 * * MON-FRI", "30 1 * * *")
    ]
    asked, at = 0, begun
    started = time.process_time()
    for cron in common:
        at = begun
        for _ in range(STEPS):
            at = next_fire(cron, at) or begun
            asked += 1
    each = (time.process_time() - started) * 1e6 / asked
    crons = [Cron(expression=text, timezone=zone) for zone in _zones() for text in _expressions(begun)]
    started = time.process_time()
    for i in range(ALIKE * len(crons)):
        next_fire(crons[i % len(crons)], begun + i)
    alike = (time.process_time() - started) * 1e6 / (ALIKE * len(crons))
    return {"one after another": each, "of triggers alike": alike}
