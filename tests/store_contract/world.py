"""A small world on one store: jobs, submissions and workers with defaults, for tests of the moves.

It makes no decisions: a worker numbers its exchanges and sends the outcomes that a test names.
"""

from collections import defaultdict
from random import Random
from typing import Any
from uuid import UUID

from msgspec import Raw, Struct

from horae.env import Env, Instant, VirtualClock
from horae.model.admission.claim_plan import LaneState
from horae.model.admission.keys import EnvelopeKeys, encode_keys
from horae.model.admission.limits import namespace_limit, queue_limit
from horae.model.admission.policy import PRIORITY
from horae.model.admission.rank import RankLeads
from horae.model.base.ids import index_of, parcel_of
from horae.model.definitions.job import Spec
from horae.model.definitions.retry import RetryPolicy
from horae.model.definitions.tasks import CommandTask
from horae.model.executions import submission
from horae.model.executions.parcel import AT_LEAST_ONCE, AT_MOST_ONCE, Envelope
from horae.model.executions.slice import RunningSlice
from horae.model.fleet.deal import WorkRequest
from horae.model.fleet.protocol import Exchange, Failure, LogLines, Outcome, Progress, Register, Started
from horae.model.triggers.decisions.named_trigger import NamedTrigger
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.values import Trigger
from horae.store.admission import coarse, holder_sweep, holders, lanes
from horae.store.base import shelves
from horae.store.contract import Store
from horae.store.definitions import jobs
from horae.store.driver import Driver, one
from horae.store.fleet.exchange import Arising, IncomingExchange, Reply, WaitingExchange
from horae.store.schema import all_tables as schema
from horae.store.script import Fetch, Rows, Script, Statement
from horae.store.triggers import audit_fires, triggers
from horae.store.triggers.dependencies import audit_joins
from horae.store.workflows import audit as workflow_audit
from tests.store_contract.auditing import audit_executions
from tests.suspects import may_meet

KEPT = {"store", "namespaces", "queues"}


def emptying() -> list[str]:
    """Return the statements that empty every table except for the first rows."""
    tables = [table.name for table in schema.metadata.sorted_tables if table.name not in KEPT]
    return [
        *(f"DELETE FROM {table}" for table in tables),
        "DELETE FROM store WHERE key = 'fires_known_from'",
        "UPDATE store SET value = '1' WHERE key = 'epoch'",
        "DELETE FROM queues WHERE namespace <> 1",
        "DELETE FROM namespaces WHERE id <> 1",
    ]


NAMESPACE = 1
POLICY = PRIORITY


class TestJob(Struct, frozen=True, kw_only=True):
    """A job that exists."""

    __test__ = False

    id: UUID
    spec: Spec
    queue: int
    lane: int
    version: int = 1

    @property
    def policy(self) -> dict[tuple[UUID, int], RetryPolicy]:
        return {(self.id, self.version): self.spec.retry}


lead = RankLeads(lambda queue: POLICY)
rank = lead.rank


class World:
    """One store with its jobs, parcels and workers."""

    def __init__(self, driver: Driver, env: Env) -> None:
        self.driver = driver
        self.env = env
        self.store = Store(driver, env)
        self.rng = Random(7)

    @property
    def clock(self) -> VirtualClock:
        assert isinstance(self.env.clock, VirtualClock)
        return self.env.clock

    def now(self) -> Instant:
        return self.env.now()

    async def wipe(self) -> None:
        """Empty every table except for the first rows."""

        def script() -> Script[None]:
            for number, statement in enumerate(emptying()):
                yield Fetch(Statement(f"wipe_{number}", statement))

        await self.driver.write(script)

    async def rows(self, sql: str, *params: Any) -> Rows:
        return await self.driver.read(one(Statement("test", sql), *params))

    async def do(self, sql: str, *params: Any) -> Rows:
        return await self.driver.write(one(Statement("test", sql), *params))

    # Jobs and submissions

    async def job(self, name: str = "job", *, queue: str = "default", **spec: Any) -> TestJob:
        """Create a job, durable by default; `retries` and other options are fields of its spec."""
        made = Spec(name=name, task=CommandTask(argv=("true",)), queue=queue, **{"durable": True, **spec})
        id, now = self.env.new_id(), self.now()

        def script() -> Script[TestJob]:
            q, lane = yield from lanes.ensure_lane(NAMESPACE, queue, made.lane_needs, "", now)
            assert (yield from jobs.add(id, NAMESPACE, made, q.id, lane.id, now)) is None
            return TestJob(id=id, spec=made, queue=q.id, lane=lane.id)

        return await self.store.write(script)

    def wanted(
        self,
        job: TestJob,
        n: int = 1,
        *,
        due_at: Instant = 0,
        key: str | None = None,
        key_for: int = 60_000_000,
        priority: int | None = None,
        parent: UUID | None = None,
        keys: EnvelopeKeys | None = None,
    ) -> list[submission.NewExecution]:
        """Return executions to submit."""
        level = job.spec.priority if priority is None else priority
        envelope = Envelope(
            namespace=NAMESPACE, job=job.id, version=job.version, queue=job.queue, lane=job.lane, priority=level,
            due_at=due_at, parent=parent, keys=job.spec.keys if keys is None else encode_keys(keys),
            delivery=AT_MOST_ONCE if job.spec.delivery == "at-most-once" else AT_LEAST_ONCE,
            bounds=job.spec.parcel_timeouts,
        )  # fmt: skip
        unique = None if key is None else (NAMESPACE, f"job:{job.id}", key)
        return [
            submission.NewExecution(
                envelope=envelope, rank_lead=lead(job.queue, level, job.id), item=f'{{"i":{i}}}'.encode(),
                unique=unique, unique_for=key_for,
            )
            for i in range(n)
        ]  # fmt: skip

    async def submit(self, job: TestJob, n: int = 1, **more: Any) -> list[submission.Receipt]:
        """Submit in one request, and return the receipts."""
        done = await self.store.submit([submission.Submission(executions=self.wanted(job, n, **more))])
        answer = done.answers[0]
        assert isinstance(answer, list)
        return answer

    async def hand_over(
        self, job: TestJob, n: int, *takers: WaitingExchange, paused: frozenset[UUID] = frozenset(), **more: Any
    ) -> submission.SubmitResult:
        """Submit in one request while these exchanges wait."""
        wanted = submission.Submission(executions=self.wanted(job, n, **more))
        return await self.store.submit([wanted], takers, paused)

    async def parcel(self, job: TestJob, n: int = 1, **more: Any) -> UUID:
        """Submit executions that form one parcel, and return its id."""
        receipts = await self.submit(job, n, **more)
        parcels = {parcel_of(receipt.execution_id) for receipt in receipts}
        assert [index_of(receipt.execution_id) for receipt in receipts] == list(range(n))
        assert len(parcels) == 1
        return parcels.pop()

    # Workers

    async def worker(self, name: str = "w", concurrency: int = 100) -> "Worker":
        presence = Register(protocol=1, worker=name, concurrency=concurrency)
        session = await self.store.register(NAMESPACE, presence)
        return Worker(self, session.id)

    async def all_lanes(self) -> list[int]:
        return [row[0] for row in await self.rows("SELECT id FROM lanes ORDER BY id")]

    async def views(self) -> list[LaneState]:
        """Return the view of a server that knows every lane and its limits."""
        limits = await self.store.read(coarse.all_limits)
        rows = await self.rows("SELECT id, queue, namespace FROM lanes ORDER BY id")
        return [
            LaneState(lane=id, limits=tuple(n for n in (namespace_limit(owner), queue_limit(queue)) if n in limits))
            for id, queue, owner in rows
        ]

    # Reads

    async def on(self, shelf: str, parcel: UUID | None = None) -> list[Any]:
        """Return the slices on a shelf in the order of their parcels and items."""
        columns, read = {
            "waiting": (shelves.WAITING, shelves.waiting),
            "queued": (shelves.QUEUED, shelves.queued),
            "running": (shelves.RUNNING, shelves.running),
        }[shelf]
        rows = await self.rows(f"SELECT {shelves.names(columns)} FROM {shelf} ORDER BY parcel, lo")
        return [slice for slice in map(read, rows) if parcel in (None, slice.parcel)]

    async def history(self, parcel: UUID | None = None) -> list[tuple[int, int, str, str]]:
        """Return ended slices: (lo, hi, state, reason)."""
        rows = await self.rows("SELECT parcel, lo, hi, state, reason FROM history ORDER BY parcel, lo")
        return [tuple(row[1:]) for row in rows if parcel in (None, row[0])]

    async def states(self, parcel: UUID) -> list[str]:
        """Return the state of each item of a parcel, from the view for people."""
        rows = await self.rows("SELECT item, state FROM executions WHERE parcel = $1 ORDER BY item", parcel)
        assert [row[0] for row in rows] == list(range(len(rows)))
        return [row[1] for row in rows]

    async def check(self) -> None:
        """Check the invariants that hold after every operation."""
        now = self.now()
        report = await self.store.read(lambda: audit_executions(now, patience=None))
        assert report.findings == [], ", ".join(f"{f.kind} on {f.shelf}: {f.detail}" for f in report.findings)
        joins = await self.store.read(lambda: audit_joins.audit_joins(now, patience=None))
        assert joins == [], ", ".join(f"{f.kind}: {f.detail}" for f in joins)
        flows = await self.store.read(workflow_audit.audit_workflows)
        assert flows == [], ", ".join(f"{f.kind}: {f.detail}" for f in flows)
        fires = await self.store.read(audit_fires.audit_fires)
        assert fires.findings == [], ", ".join(f"{f.kind} fires" for f in fires.findings)
        nobody = UUID(int=0)
        unnamed = await self.rows("SELECT key FROM unique_keys WHERE execution = $1", nobody)
        assert unnamed == [], "a key has no execution"
        assert await self.rows("SELECT key FROM idempotency WHERE answer IS NULL") == [], "a request has no answer"
        idle = await self.rows(
            "SELECT q.parcel, q.item FROM requests q LEFT JOIN running r ON r.parcel = q.parcel AND r.lo <= q.item"
            " AND r.hi > q.item AND r.session = q.session AND r.attempt = q.attempt WHERE r.parcel IS NULL"
        )
        assert idle == [], "a request is stored for an item that its session does not run"
        slots = dict(await self.rows("SELECT id, concurrency FROM sessions"))
        held: dict[UUID, list[int]] = defaultdict(list)
        for slice in await self.on("running"):
            held[slice.session] += [slice.losses] * (slice.hi - slice.lo)
        crowded = [id for id, losses in held.items() if not may_meet(losses, slots[id])]
        assert crowded == [], "a session holds more suspects than it may"
        await self._check_keys(now)
        if self.driver.dialect == "postgresql":
            assert self.driver.retries == 0, "a deadlock or a serialization failure"

    async def _check_keys(self, now: Instant) -> None:
        """Check that the holders of keys are on the shelves, and that no execution waits at a key with room."""
        assert len(await self.store.read(lambda: holder_sweep.stale_holders(10))) == 0, "an ended execution holds a key"
        gates = await self.store.read(lambda: holder_sweep.gates("", 1000))
        keys = [gate for gate in gates if holder_sweep.is_key(gate)]
        entered = await self.store.write(lambda: holder_sweep.admit(keys, now))
        assert entered.queued == [], "an execution waited at a key with room"


class Worker:
    """A worker's session: it numbers its exchanges and stores its grants."""

    def __init__(self, world: World, session: UUID) -> None:
        self.world = world
        self.session = session
        self.numbers: dict[int, int] = defaultdict(int)  # the last one answered, by channel

    def head(self, up: Exchange, lanes: frozenset[int], *, patient: bool = False) -> IncomingExchange:
        return IncomingExchange(session=self.session, exchange=up, lanes=lanes, patient=patient)

    async def exchange(
        self,
        *,
        free: int = 0,
        channel: int = 0,
        n: int | None = None,
        patient: bool = False,
        lanes: frozenset[int] | None = None,
        paused: frozenset[UUID] = frozenset(),
        policies: Any = None,
        views: list[LaneState] | None = None,
        arising: Arising | None = None,
        **up: Any,
    ) -> Reply:
        """Make one exchange; its number is the next unless given, and is taken when it is answered."""
        number = self.numbers[channel] + 1 if n is None else n
        body = Exchange(channel=channel, n=number, free=free, **up)
        seen = await self.world.views() if views is None else views
        may = frozenset(view.lane for view in seen) if lanes is None else lanes
        done = await self.world.store.exchange(
            [self.head(body, may, patient=patient)], seen, paused, policies or {}, self.world.rng, arising
        )
        (reply,) = done.replies
        if reply.decision == "answer":
            self.numbers[channel] = max(self.numbers[channel], number)
        if done.claimed.freed:  # as a server does
            await self.world.store.change(lambda now: holders.free(done.claimed.freed, now))
        self.effects = done.effects
        self.marks = done.claimed.lanes
        return reply

    async def claim(self, k: int = 1, **more: Any) -> list[RunningSlice]:
        """Ask for k items, and return the granted slices."""
        reply = await self.exchange(free=k, **more)
        assert reply.decision == "answer"
        return reply.granted

    async def report(self, *outcomes: Outcome, **more: Any) -> Reply:
        return await self.exchange(outcomes=list(outcomes), **more)

    def parked(
        self, k: int, lanes: frozenset[int], *, channel: int = 0, n: int | None = None, **more: Any
    ) -> WaitingExchange:
        """Return an exchange of this session that waits for work."""
        number = self.numbers[channel] + 1 if n is None else n
        return WaitingExchange(
            want=WorkRequest(session=self.session, channel=channel, n=number, free=k, **more), lanes=lanes
        )

    async def lose(self) -> None:
        """End the session as the rescuer that watched it would."""
        (row,) = await self.world.rows("SELECT last_seen FROM sessions WHERE id = $1", self.session)
        assert await self.world.store.mark_lost(self.session, row[0])

    async def holds(self) -> list[RunningSlice]:
        return [slice for slice in await self.world.on("running") if slice.session == self.session]


def _outcome(kind: str, slice: Any, lo: int | None, hi: int | None, **more: Any) -> Outcome:
    first, last = slice.lo if lo is None else lo, slice.hi if hi is None else hi
    attempt = more.pop("attempt", slice.attempt)
    return Outcome(parcel=slice.parcel, lo=first, hi=last, attempt=attempt, outcome=kind, **more)  # type: ignore[arg-type]


def success(slice: Any, lo: int | None = None, hi: int | None = None, **more: Any) -> Outcome:
    results = [Raw(result) for result in more.pop("results", [])]
    return _outcome("success", slice, lo, hi, results=results, **more)


def failed(slice: Any, lo: int | None = None, hi: int | None = None, **more: Any) -> Outcome:
    return _outcome("failed", slice, lo, hi, **{"error": Failure(type="ValueError", message="no")} | more)


def cancelled(slice: Any, lo: int | None = None, hi: int | None = None, **more: Any) -> Outcome:
    return _outcome("cancelled", slice, lo, hi, **more)


def released(slice: Any, lo: int | None = None, hi: int | None = None, **more: Any) -> Outcome:
    return _outcome("released", slice, lo, hi, **more)


def suspended(slice: Any, wake_at: Instant, lo: int | None = None, hi: int | None = None) -> Outcome:
    return _outcome("suspended", slice, lo, hi, wake_at=wake_at)


def began(slice: Any, at: Instant, lo: int | None = None, hi: int | None = None) -> Started:
    first, last = slice.lo if lo is None else lo, slice.hi if hi is None else hi
    return Started(parcel=slice.parcel, lo=first, hi=last, attempt=slice.attempt, at=at)


def progress(slice: Any, item: int, percent: float | None, **more: Any) -> Progress:
    return Progress(parcel=slice.parcel, item=item, percent=percent, **{"attempt": slice.attempt} | more)


def lines(slice: Any, item: int, seq: int, *texts: str, **more: Any) -> LogLines:
    told = [(0, "stdout", text) for text in texts]
    return LogLines(parcel=slice.parcel, item=item, seq=seq, lines=told, **{"attempt": slice.attempt} | more)


def spans(slices: Any) -> list[tuple[int, int]]:
    """Return slices as ranges."""
    return [(slice.lo, slice.hi) for slice in slices]


async def add_trigger(
    world: World, job: TestJob, trigger: Trigger, rules: Rules | None = None, name: str | None = None, **more: Any
) -> UUID:
    """Add a trigger to a job, named after its id by default; `params` and `paused` are its fields."""
    id, now = world.env.new_id(), world.now()
    when = NamedTrigger(name=name or f"trigger-{id}", trigger=trigger, rules=rules or Rules(), **more)
    owner = triggers.Owner(job.id, NAMESPACE, job.version)
    await world.store.write(lambda: triggers.add(id, owner, when, now))
    return id
