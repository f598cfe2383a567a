"""A worker's session and its server with a bad network between them, driven by a seeded random generator."""

from random import Random
from uuid import UUID

from msgspec import Struct

from horae.env import SECOND, VirtualClock, virtual_env
from horae.errors import SessionEnded
from horae.model.definitions.job import Spec
from horae.model.definitions.retry import RetryPolicy
from horae.model.definitions.tasks import PythonTask
from horae.model.fleet.protocol import Answer, Exchange, Failure
from horae.worker.holding import CANCELLED, RELEASED, Chunk, ItemOutcome, StartedItem
from horae.worker.interrupts import Interrupt
from horae.worker.pace import DurationEstimates
from horae.worker.session import WorkerSession
from tests.worker.gateway import Gateway, parameters

SPECS = [
    Spec(name="short", task=PythonTask(function="f"), retry=RetryPolicy(retries=2)),
    Spec(name="long", task=PythonTask(function="f"), timeout=60 * SECOND),
    Spec(name="once", task=PythonTask(function="f"), delivery="at-most-once"),
]
FAILED = ItemOutcome(outcome="failed", error=Failure(type="Oops"))
FATES: dict[str, ItemOutcome] = {"cancel": CANCELLED, "preempt": RELEASED, "drain": RELEASED, "timeout": FAILED}


class Sent(Struct, eq=False):
    """A request on the network, or waiting at the server."""

    session: WorkerSession
    exchange: Exchange
    at: float


class Network:
    """Random events, one step at a time; each step checks the invariants."""

    def __init__(self, seed: int, slots: int) -> None:
        self.chance = Random(seed)
        self.clock = VirtualClock()
        self.gateway = Gateway(virtual_env(seed, self.clock))
        self.slots = slots
        self.pace = DurationEstimates()
        self.requests: list[Sent] = []
        self.answers: list[tuple[Sent, Answer]] = []
        self.begun: dict[tuple[UUID, int, int], int] = {}
        self.working: list[tuple[Chunk, StartedItem | None]] = []
        self.asked: dict[Chunk, Interrupt] = {}
        self.acted: list[tuple[StartedItem, str]] = []
        self.submitted = 0
        self._register()

    # Steps

    def step(self) -> None:
        steps = [
            self.send,
            self.deliver,
            self.deliver,
            self.hear,
            self.hear,
            self.take,
            self.work,
            self.work,
            self.move,
        ]
        steps += [self.repeat, self.lose_request, self.lose_answer, self.submit, self.request, self.tick]
        self.chance.choice(steps)()
        self.check()

    def send(self) -> None:
        exchange = self.session.next_exchange()
        if exchange is not None:
            self.requests.append(Sent(self.session, exchange, self.clock.monotonic()))

    def repeat(self) -> None:
        for exchange in self.session.unanswered():
            self.requests.append(Sent(self.session, exchange, self.clock.monotonic()))

    def deliver(self) -> None:
        """Let a random request reach the server; it may stay on the network and arrive again."""
        if not self.requests:
            return
        sent = self.chance.choice(self.requests)
        try:
            answer = self.gateway.exchange(sent.session.id, sent.exchange, patient=self.chance.random() < 0.8)
        except SessionEnded:
            self.requests.remove(sent)
            if sent.session is self.session:
                self.restart()
            return
        if answer is not None:
            self.answers.append((sent, answer))
            if self.chance.random() < 0.8:
                self.requests.remove(sent)

    def hear(self) -> None:
        """Let a random answer reach the worker; it may arrive again."""
        if self.answers:
            sent, answer = entry = self.chance.choice(self.answers)
            if self.chance.random() < 0.8:
                self.answers.remove(entry)
            self.interrupt(sent.session.answered(sent.exchange, answer, sent.at))

    def lose_request(self) -> None:
        if self.requests and self.chance.random() < 0.5:
            self.requests.remove(self.chance.choice(self.requests))

    def lose_answer(self) -> None:
        if self.answers and self.chance.random() < 0.5:
            self.answers.remove(self.chance.choice(self.answers))

    def take(self) -> None:
        chunk = self.session.take()
        if chunk is not None:
            self.working.append((chunk, None))

    def work(self) -> None:
        """Let a slot start the next item of its chunk, end its running one, or finish."""
        if not self.working:
            return
        place = self.chance.randrange(len(self.working))
        chunk, begun = self.working[place]
        if begun is not None:
            chunk.end(begun, self.clock.monotonic(), self.outcome(chunk))
            begun = None
        else:
            begun = chunk.begin(self.clock.monotonic())
            if begun is None:
                self.working.pop(place)
                owner = chunk.fence
                assert isinstance(owner, WorkerSession)
                owner.finish(chunk)
                return
            self.note(begun)
        self.working[place] = (chunk, begun)

    def outcome(self, chunk: Chunk) -> bytes | ItemOutcome:
        interrupt = self.asked.pop(chunk, None)
        if interrupt is not None and interrupt.kind != "lost":
            return FATES[interrupt.kind]
        return b'{"ok":true}' if self.chance.random() < 0.9 else FAILED

    def submit(self) -> None:
        if self.submitted < 60:
            count = self.chance.choice([1, 1, 5, 20])
            self.submitted += count
            self.gateway.submit(self.chance.choice(SPECS), parameters(count))

    def request(self) -> None:
        if self.gateway.running and self.chance.random() < 0.3:
            self.gateway.ask(*self.chance.choice(list(self.gateway.running)), self.chance.choice(["cancel", "preempt"]))

    def tick(self) -> None:
        self.session.tick()

    def move(self) -> None:
        self.clock.advance(int(self.chance.choice([0.001, 0.001, 0.05, 0.5, 2]) * SECOND))

    def restart(self) -> None:
        """Stop everything after the end of the session, and register again."""
        self.interrupt(self.session.end())
        self._register()

    # Invariants

    def note(self, begun: StartedItem) -> None:
        grant = begun[0].grant
        key = (grant.parcel, begun[1], grant.attempt)
        assert key not in self.begun, "an attempt was begun twice"
        self.begun[key] = 1

    def check(self) -> None:
        """Check I12, and that the worker holds no more work than it has slots, except for short jobs."""
        unanswered = {(exchange.channel, exchange.n) for exchange in self.session.unanswered()}
        for (parcel, index), held in self.gateway.running.items():
            known = self.session.holds(parcel, index, held.item.attempt)
            assert known or (held.channel, held.n) in unanswered, "running, and its worker never heard of it"
        assert len(self.session.stock.chunks) <= self.slots

    def interrupt(self, interrupts: list[Interrupt]) -> None:
        for interrupt in interrupts:
            mark = (interrupt.begun, interrupt.kind)
            assert mark not in self.acted, "acted twice on one request"
            self.acted.append(mark)
            self.asked[interrupt.chunk] = interrupt

    def settle(self) -> None:
        """Make the network reliable from now on: everything must finish."""
        for _ in range(4000):
            if not self.gateway.queue and not self.gateway.running and not self.answers:
                return
            self.send()
            self.repeat()
            for _ in range(min(4, len(self.requests))):
                self.deliver()
            while self.answers:
                self.hear()
            self.take()
            for _ in range(3 * self.slots):
                self.work()
            self.session.tick()
            self.requests.clear()
            self.clock.advance(10_000)
            self.check()
        raise AssertionError("work is left over")

    def _register(self) -> None:
        self.working = [(chunk, begun) for chunk, begun in self.working if begun is not None]
        stuck = len(self.working)
        self.session = WorkerSession(self.clock, self.gateway.register(), max(1, self.slots - stuck), self.pace)
