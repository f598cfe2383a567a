"""Costs of executions: none starts without room, and no more is requested than there is room for."""

from itertools import count
from random import Random
from uuid import UUID

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from horae.env import SECOND, VirtualClock
from horae.model.admission.placement.placement import Cost
from horae.model.definitions.job import Spec
from horae.model.definitions.tasks import CommandTask
from horae.model.fleet.protocol import Answer, Exchange, Grant, Registered
from horae.worker.pace import DurationEstimates
from horae.worker.session import WorkerSession

SLOTS, RESOURCES = 6, {"gpu": 2, "memory": 8}
JOBS = {
    UUID(int=1): Spec(name="plain", task=CommandTask(argv=("true",))),
    UUID(int=2): Spec(name="wide", task=CommandTask(argv=("true",)), slots=4),
    UUID(int=3): Spec(name="hungry", task=CommandTask(argv=("true",)), resources={"memory": 5}),
    UUID(int=4): Spec(name="both", task=CommandTask(argv=("true",)), slots=2, resources={"gpu": 1, "memory": 2}),
}


class Worker:
    """A session and a server that grants work that fits the reported room, in its own order."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        registered = Registered(session_id=UUID(int=9), namespace="d", session_timeout=15_000_000, heartbeat=5_000_000,
                                now=self.clock.now())  # fmt: skip
        self.session = WorkerSession(self.clock, registered, SLOTS, DurationEstimates(), RESOURCES)
        self.queue: list[UUID] = []
        self.parcels = count(100)
        self.chunks: list = []
        self.ran: list[UUID] = []

    def answer(self, exchange: Exchange) -> None:
        """Grant work that fits, each item in its own parcel."""
        free, room, grants, left = exchange.free, dict(exchange.room), [], []
        for job in self.queue:
            cost = JOBS[job].cost
            if cost.times(free, room):
                free, room = free - cost.slots, cost.left_of(room, 1)
                grants.append(Grant(parcel=UUID(int=next(self.parcels)), lo=0, hi=1, job=job, version=1, attempt=1,
                                    token=1, due_at=0, items=[Raw(b"{}")]))  # fmt: skip
            else:
                left.append(job)
        self.queue = left
        jobs = {f"{id}:1": Raw(msgspec.json.encode(spec)) for id, spec in JOBS.items()}
        self.session.answered(
            exchange, Answer(slices=grants, jobs=jobs, now=self.clock.now()), self.clock.monotonic()
        )  # fmt: skip

    def begin(self) -> None:
        while chunk := self.session.take():
            assert chunk.begin(self.clock.monotonic())
            self.chunks.append(chunk)

    def end(self, chunk) -> None:
        self.chunks.remove(chunk)
        self.clock.advance(SECOND)  # no job is short
        begun = chunk.running()
        self.ran.append(begun[0].grant.job)
        chunk.end(begun, self.clock.monotonic(), b"1")
        self.session.finish(chunk)

    def idle(self) -> tuple[int, dict[str, int]]:
        slots, room = SLOTS, dict(RESOURCES)
        for chunk in self.chunks:
            slots, room = slots - chunk.backlog.cost.slots, chunk.backlog.cost.left_of(room, 1)
        return slots, room


@given(st.lists(st.sampled_from(list(JOBS)), max_size=12), st.integers(0, 1 << 30))
@settings(max_examples=60)
def test_no_more_runs_or_is_requested_than_the_worker_has_room_for(queue, seed):
    worker, rng = Worker(), Random(seed)
    worker.queue = list(queue)
    for _ in range(3 * len(queue) + 1):
        while (exchange := worker.session.next_exchange()) and not exchange.wait:
            worker.answer(exchange)
        for exchange in worker.session.unanswered():
            worker.answer(exchange)
        while (exchange := worker.session.next_exchange()) and not exchange.wait:
            worker.answer(exchange)
        worker.begin()
        slots, room = worker.idle()
        assert slots >= 0
        assert min(room.values()) >= 0
        asked = worker.session.unanswered()
        assert sum(exchange.free for exchange in asked) <= slots
        assert all(sum(exchange.room.get(name, 0) for exchange in asked) <= room[name] for name in room)
        if worker.chunks:
            worker.end(rng.choice(worker.chunks))

    assert sorted(worker.ran) == sorted(queue), "everything has run"


def test_executions_that_wait_for_room_are_not_overtaken():
    worker = Worker()
    worker.queue = [UUID(int=1)] * 3
    worker.answer(worker.session.next_exchange())
    worker.begin()
    held = list(worker.chunks)
    exchange = worker.session.next_exchange()
    worker.queue = [UUID(int=2), UUID(int=1)]
    worker.answer(msgspec.structs.replace(exchange, free=6))  # more than it reported
    worker.begin()
    assert len(worker.chunks) == 3, "nothing takes what the wide one waits for"
    worker.end(held[0])
    worker.begin()

    assert [chunk.backlog.spec.name for chunk in worker.chunks] == ["plain", "plain", "wide"]


def test_executions_with_costs_or_spread_are_not_fetched_ahead():
    pace = DurationEstimates()
    pace.note(UUID(int=2), 10, 0.0001)
    session = Worker().session

    assert all(not _backlog_of(session, spec).may_fetch_ahead for spec in (JOBS[UUID(int=2)], JOBS[UUID(int=3)]))
    assert not _backlog_of(session, msgspec.structs.replace(JOBS[UUID(int=1)], spread=True)).may_fetch_ahead
    assert _backlog_of(session, JOBS[UUID(int=1)]).may_fetch_ahead
    assert JOBS[UUID(int=4)].cost == Cost(2, (("gpu", 1), ("memory", 2)))


def _backlog_of(session, spec):
    from horae.worker.holding import JobBacklog

    return JobBacklog(UUID(int=1), 1, spec)
