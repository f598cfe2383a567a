"""The session's promises, in spite of the network."""

from collections.abc import Callable
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from horae.env import SECOND, VirtualClock, virtual_env
from horae.model.definitions.job import Spec
from horae.model.definitions.tasks import PythonTask
from horae.model.definitions.timeouts import Timeouts
from horae.model.fleet.protocol import (
    CHANNELS,
    MAX_EXCHANGE,
    Answer,
    Exchange,
    Failure,
    Grant,
    LogLines,
    Outcome,
    Range,
    Reattached,
    Request,
)
from horae.worker.code.refusal import REFUSED, halve_outcomes, split_load
from horae.worker.exchange.outbox import ExchangeLoad
from horae.worker.holding import RELEASED, Chunk, ItemOutcome
from horae.worker.logs.log_queue import MAX_LOG_BYTES
from horae.worker.pace import DurationEstimates
from horae.worker.session import WorkerSession
from horae.worker.stock import OVERDUE
from tests.worker.gateway import Gateway, parameters
from tests.worker.network import Network

JOB = Spec(name="j", task=PythonTask(function="f"))


class Bench:
    """A session and its server on a perfect network."""

    def __init__(self, slots: int = 4, timeout: float = 15.0) -> None:
        self.clock = VirtualClock()
        self.gateway = Gateway(virtual_env(1, self.clock), timeout=timeout, heartbeat=timeout / 3)
        self.session = WorkerSession(self.clock, self.gateway.register(), slots, DurationEstimates())

    def up(self) -> Exchange:
        exchange = self.session.next_exchange()
        assert exchange is not None
        return exchange

    def trade(self, exchange: Exchange, patient: bool = False) -> Answer | None:
        answer = self.gateway.exchange(self.session.id, exchange, patient)
        if answer is not None:
            self.interrupts = self.session.answered(exchange, answer, self.clock.monotonic())
        return answer

    def talk(self) -> list[Exchange]:
        """Exchange until every remaining exchange waits at the server."""
        spoken = []
        for exchange in self.session.unanswered():
            self.trade(exchange, patient=True)
        while exchange := self.session.next_exchange():
            spoken.append(exchange)
            self.trade(exchange, patient=True)
        return spoken

    def run(self, chunk: Chunk, seconds: float = 0.01, outcome: bytes | ItemOutcome = b"1") -> None:
        while begun := chunk.begin(self.clock.monotonic()):
            self.clock.advance(int(seconds * SECOND))
            chunk.end(begun, self.clock.monotonic(), outcome)
        self.session.finish(chunk)

    def run_all(self, seconds: float = 0.01) -> int:
        count = 0
        while chunk := self.session.take():
            self.run(chunk, seconds)
            count += 1
        return count


@given(seed=st.integers(0, 2**32), slots=st.integers(1, 5), lost=st.booleans())
def test_every_item_is_reported_and_none_started_twice(seed, slots, lost):
    network = Network(seed, slots)
    network.submit()
    for i in range(250):
        network.step()
        if lost and i == 150:
            network.gateway.lose()

    network.settle()

    assert len(network.gateway.finished) == network.submitted


def test_an_unanswered_exchange_is_repeated_as_it_was():
    bench = Bench()
    first = bench.up()

    assert bench.session.unanswered() == [first]
    assert bench.session.unanswered()[0] is first
    assert (first.channel, first.n, first.free) == (0, 1, 4)


def test_a_slice_granted_twice_is_started_once():
    bench = Bench()
    bench.gateway.submit(JOB, parameters(3))
    exchange = bench.up()
    answer = bench.trade(exchange)
    bench.session.answered(exchange, answer, bench.clock.monotonic())

    again = Exchange(channel=1, n=1)
    bench.session._channels[1].exchange, bench.session._channels[1].n = again, 1
    bench.session.answered(again, answer, bench.clock.monotonic())

    assert sum(len(backlog.ready) for backlog in bench.session.stock.backlogs.values()) == 3


def test_outcomes_are_sent_at_once_while_a_poll_waits():
    bench = Bench(slots=2)
    parcel = bench.gateway.submit(JOB, parameters(1))
    bench.trade(bench.up())
    poll = bench.up()
    assert poll.wait == bench.session.patience

    bench.run_all()
    carrier = bench.up()

    assert carrier.wait == 0
    assert carrier.channel != poll.channel
    assert [(o.parcel, o.lo, o.hi, o.outcome) for o in carrier.outcomes] == [(parcel, 0, 1, "success")]


def test_a_full_worker_still_polls_and_requests_work_when_a_slot_is_free():
    bench = Bench(slots=1)
    bench.gateway.submit(JOB, parameters(2))
    bench.trade(bench.up())
    chunk = bench.session.take()
    listening = bench.up()
    assert (listening.free, listening.wait) == (0, bench.session.patience)
    assert bench.session.next_exchange() is None

    bench.run(chunk)
    carrier = bench.up()

    assert (carrier.free, carrier.wait) == (1, 0)
    assert len(bench.trade(carrier).slices) == 1


def test_no_item_is_started_when_the_session_may_have_expired():
    bench = Bench(timeout=15)
    bench.gateway.submit(JOB, parameters(2))
    bench.trade(bench.up())
    chunk = bench.session.take()

    bench.clock.advance(12 * SECOND)

    assert chunk.begin(bench.clock.monotonic()) is None
    assert bench.session.take() is None

    bench.session.finish(chunk)
    bench.trade(bench.up())
    assert bench.session.take() is not None


def test_a_late_answer_does_not_extend_the_fence():
    bench = Bench(timeout=15)
    bench.gateway.submit(JOB, parameters(2))
    exchange = bench.up()
    sent_at = bench.clock.monotonic()
    answer = bench.gateway.exchange(bench.session.id, exchange, False)

    bench.clock.advance(60 * SECOND)  # the worker was frozen
    bench.session.answered(exchange, answer, sent_at)

    assert bench.session.take() is None


def test_unknown_and_long_and_once_only_jobs_are_not_fetched_ahead():
    specs = [
        JOB,
        Spec(name="slow", task=PythonTask(function="f"), timeout=11 * SECOND),
        Spec(name="once", task=PythonTask(function="f"), delivery="at-most-once"),
    ]
    for spec, expected in zip(specs, (True, False, False), strict=True):
        bench = Bench(slots=2)
        bench.gateway.submit(spec, parameters(100))
        first = bench.up()
        assert first.prefetch == {}
        bench.trade(first)
        bench.run_all(0.001)
        assert bool(bench.up().prefetch) is expected


def test_fetching_ahead_holds_about_a_tenth_of_a_second_of_work_on_every_slot():
    bench = Bench(slots=4)
    bench.gateway.submit(JOB, parameters(1000))
    bench.trade(bench.up())
    bench.run_all(0.01)

    asked = bench.up()

    assert sum(asked.prefetch.values()) in (39, 40)
    assert bench.session.next_exchange() is None, "what is asked for is not asked for again"


def test_a_worker_busy_with_short_jobs_gives_others_a_turn():
    bench = Bench(slots=1)
    bench.gateway.submit(JOB, parameters(1000))
    bench.trade(bench.up())
    freely = 0
    for _ in range(100):
        chunk = bench.session.take()
        freely += any(exchange.free for exchange in bench.talk())
        if chunk:
            bench.run(chunk, 0.05)

    assert freely >= 5


def test_an_idle_slot_asks_for_anything_while_more_of_a_short_job_is_waited_for():
    bench = Bench(slots=1)
    bench.gateway.submit(JOB, parameters(1))
    bench.trade(bench.up())
    bench.run_all(0.001)
    bench.gateway.submit(JOB, parameters(1))
    bench.talk()
    busy = bench.session.take()
    bench.talk()
    assert [(exchange.free, bool(exchange.prefetch)) for exchange in bench.session.unanswered()] == [(0, True)]

    bench.run(busy, 0.001)
    bench.talk()
    bench.gateway.submit(Spec(name="other", task=PythonTask(function="g")), parameters(1))
    bench.talk()

    assert bench.session.take() is not None


def test_a_long_item_does_not_block_its_neighbours():
    bench = Bench(slots=2)
    bench.gateway.submit(JOB, parameters(2))
    bench.trade(bench.up())
    bench.run_all(0.0005)
    parcel = bench.gateway.submit(JOB, parameters(10))
    bench.trade(bench.up())
    bench.trade(bench.up())
    slow = bench.session.take()
    first = slow.begin(bench.clock.monotonic())
    slow.end(first, bench.clock.monotonic(), b"1")
    slow.begin(bench.clock.monotonic())
    assert slow.left

    bench.clock.advance(SECOND // 10)
    bench.session.tick()

    assert not slow.left
    bench.run(bench.session.take())
    bench.trade(bench.up())
    assert {index for p, index in bench.gateway.finished if p == parcel} >= {0, 2, 3}


def test_items_behind_an_unexpectedly_long_item_on_a_full_worker_are_handed_back():
    bench = Bench(slots=1)
    bench.gateway.submit(JOB, parameters(1))
    bench.trade(bench.up())
    bench.run_all(0.001)
    bench.gateway.submit(JOB, parameters(20))
    bench.trade(bench.up())
    slow = bench.session.take()
    slow.begin(bench.clock.monotonic())

    bench.clock.advance(2 * SECOND)
    bench.session.tick()
    bench.session.tick()
    assert not any(exchange.prefetch for exchange in bench.talk())

    assert len(bench.gateway.queue) == 19
    assert len(bench.gateway.running) == 1


def test_prefetched_items_behind_long_items_of_another_job_are_handed_back():
    bench = Bench(slots=2)
    bench.gateway.submit(JOB, parameters(2))
    bench.trade(bench.up())
    bench.run_all(0.01)
    long = bench.gateway.submit(Spec(name="long", task=PythonTask(function="f")), parameters(2))
    bench.gateway.submit(JOB, parameters(8))
    bench.talk()
    while chunk := bench.session.take():
        if chunk.left[0][0].grant.parcel == long:
            chunk.begin(bench.clock.monotonic())
        else:
            bench.run(chunk, 0.01)
    assert len(bench.gateway.running) > 2
    assert bench.session.wake_at() <= bench.clock.monotonic() + OVERDUE

    bench.clock.advance(SECOND)
    bench.session.tick()
    told = bench.talk()

    assert len(bench.gateway.running) == 2
    assert not any(exchange.prefetch for exchange in told)


def test_items_of_a_chunk_that_takes_too_long_are_handed_back():
    """Each item is too short to block the next, but all of them together take far too long."""
    bench = Bench(slots=1)
    bench.gateway.submit(JOB, parameters(1))
    bench.trade(bench.up())
    bench.run_all(0.00002)
    bench.gateway.submit(JOB, parameters(300))
    bench.trade(bench.up())
    chunk = bench.session.take()
    assert chunk.size > 200
    ended = 0
    while begun := chunk.begin(bench.clock.monotonic()):
        bench.clock.advance(SECOND // 100)
        bench.session.tick()
        chunk.end(begun, bench.clock.monotonic(), b"1")
        ended += 1
    bench.session.finish(chunk)
    told = [outcome for exchange in bench.talk() for outcome in exchange.outcomes]

    assert ended * 0.01 <= 2 * OVERDUE
    assert sum(o.hi - o.lo for o in told if o.outcome == "released") == 300 - ended


@pytest.mark.parametrize(("kind", "outcome"), [("cancel", "cancelled"), ("preempt", "released"), ("timeout", "failed")])
def test_a_request_ends_an_unstarted_item(kind, outcome):
    bench = Bench(slots=2)
    parcel = bench.gateway.submit(JOB, parameters(2))
    bench.trade(bench.up())
    chunk = bench.session.take()
    bench.gateway.ask(parcel, 0, kind)

    bench.trade(bench.up())

    assert bench.interrupts == []
    assert chunk.begin(bench.clock.monotonic()) is None
    assert [(o.lo, o.outcome) for o in bench.up().outcomes] == [(0, outcome)]


def test_a_request_reaches_a_running_item_once():
    bench = Bench(slots=1)
    parcel = bench.gateway.submit(JOB, parameters(1))
    bench.trade(bench.up())
    chunk = bench.session.take()
    begun = chunk.begin(bench.clock.monotonic())
    bench.gateway.ask(parcel, 0, "cancel")

    bench.trade(bench.up())
    assert [(i.chunk, i.begun, i.kind) for i in bench.interrupts] == [(chunk, begun, "cancel")]

    bench.trade(bench.up())
    assert bench.interrupts == []


def test_draining_hands_back_unstarted_items_and_finishes_the_rest():
    bench = Bench(slots=2)
    bench.gateway.submit(JOB, parameters(2))
    bench.trade(bench.up())
    running = bench.session.take()
    begun = running.begin(bench.clock.monotonic())
    waiting = bench.session.take()
    polling = bench.up()

    bench.session.drain()
    carrier = bench.up()
    assert (carrier.draining, carrier.free, [o.outcome for o in carrier.outcomes]) == (True, 0, ["released"])
    bench.trade(carrier)
    bench.session.finish(waiting)
    assert not bench.session.is_drained

    running.end(begun, bench.clock.monotonic(), b"1")
    bench.session.finish(running)
    bench.trade(bench.up())
    bench.gateway.submit(JOB, parameters(1))
    bench.trade(polling)
    bench.talk()

    assert bench.session.is_drained
    assert len(bench.gateway.queue) >= 1
    assert not bench.gateway.running


def test_an_ended_session_forgets_everything():
    bench = Bench(slots=2)
    bench.gateway.submit(JOB, parameters(2))
    bench.trade(bench.up())
    chunk = bench.session.take()
    begun = chunk.begin(bench.clock.monotonic())

    interrupts = bench.session.end()
    chunk.end(begun, bench.clock.monotonic(), b"1")
    bench.session.finish(chunk)

    assert [(i.begun, i.kind) for i in interrupts] == [(begun, "lost")]
    assert bench.session.unanswered() == []
    assert bench.session.next_exchange() is None
    assert bench.session.take() is None
    assert bench.session.end() == []


def test_the_start_of_items_that_run_for_a_second_is_reported_once():
    bench = Bench(slots=1)
    parcel = bench.gateway.submit(JOB, parameters(1))
    bench.trade(bench.up())
    bench.session.take().begin(bench.clock.monotonic())
    bench.clock.advance(SECOND // 2)
    bench.talk()
    assert bench.gateway.started == []
    for _ in range(6):
        bench.clock.advance(SECOND // 2)
        bench.talk()

    assert [(s.parcel, s.lo, s.hi) for s in bench.gateway.started] == [(parcel, 0, 1)]


def test_log_lines_and_progress_wait_a_moment_to_be_sent_together():
    bench = Bench(slots=1)
    bench.gateway.submit(JOB, parameters(1))
    bench.trade(bench.up())
    item = bench.session.take().begin(bench.clock.monotonic())[:2]
    bench.up()
    bench.session.log(item, 0, [(1, "log", "a")])
    bench.session.progress(item, 10)
    bench.trade(bench.up())
    bench.session.log(item, 1, [(1, "log", "b")])
    bench.session.progress(item, 20)
    bench.session.progress(item, 30, "half")
    assert bench.session.next_exchange() is None

    bench.clock.advance(int((bench.session.wake_at() - bench.clock.monotonic()) * SECOND) + 1)
    carrier = bench.up()

    assert [(p.percent, p.message) for p in carrier.progress] == [(30, "half")]
    assert [(lines.seq, [text for _, _, text in lines.lines]) for lines in carrier.logs] == [(1, ["b"])]


def test_lines_of_an_attempt_and_its_outcome_do_not_overtake_each_other():
    bench = Bench(slots=2)
    bench.gateway.submit(JOB, parameters(2))
    bench.trade(bench.up())
    noisy, other = bench.session.take(), bench.session.take()
    item, _ = (begun[:2] for begun in (noisy.begin(0.0), other.begin(0.0)))
    bench.up()  # waits for work
    bench.session.log(item, 0, [(1, "log", "a" * MAX_LOG_BYTES)])
    bench.session.log(item, 1, [(1, "log", "b")])
    first = bench.up()
    noisy.end(noisy.running(), 0.0, b"1")
    bench.session.finish(noisy)
    other.end(other.running(), 0.0, b"2")
    bench.session.finish(other)
    bench.clock.advance(SECOND)
    beside = bench.up()
    assert ([o.lo for o in beside.outcomes], beside.logs) == ([1], [])
    bench.trade(beside)
    bench.clock.advance(SECOND)
    while exchange := bench.session.next_exchange():
        assert (exchange.outcomes, exchange.logs) == ([], [])

    bench.trade(first)
    second = bench.up()
    assert [(lines.seq, len(lines.lines)) for lines in (*first.logs, *second.logs)] == [(0, 1), (1, 1)]
    assert [o.lo for o in second.outcomes] == [0]


def test_many_log_lines_are_sent_at_once():
    bench = Bench(slots=1)
    bench.gateway.submit(JOB, parameters(1))
    bench.trade(bench.up())
    item = bench.session.take().begin(bench.clock.monotonic())[:2]
    bench.up()
    for seq in range(40):
        bench.session.log(item, seq, [(1, "log", "a" * 30_000)])
    told = []
    while carrier := bench.session.next_exchange():
        told += [line for lines in carrier.logs for line in lines.lines]
        bench.trade(carrier)
        if len(told) >= 26:
            break
    assert len(told) >= 26
    assert bench.session.outbox.logs.bytes < MAX_LOG_BYTES + 60_000


def test_an_exchange_is_cut_at_its_limit_and_nothing_is_lost():
    bench = Bench(slots=8)
    parcel = bench.gateway.submit(JOB, parameters(8))
    bench.trade(bench.up())
    while chunk := bench.session.take():
        bench.run(chunk, 1.0, b'"' + b"x" * 200_000 + b'"')

    sizes = []
    while (exchange := bench.up()).outcomes:
        sizes.append(len(msgspec.json.encode(exchange)))
        bench.trade(exchange)

    assert len(sizes) == 4
    assert max(sizes) <= MAX_EXCHANGE
    assert len([place for place in bench.gateway.finished if place[0] == parcel]) == 8


RESULTS = {
    "small ones of one parcel": (1, 3000, b"null"),
    "small ones of many parcels": (3000, 1, b"null"),
    "failures": (
        1,
        300,
        ItemOutcome(outcome="failed", error=Failure(type="E", message="m" * 900, traceback="t" * 4000)),
    ),
    "large ones": (1, 5, b'"' + b"x" * 1_000_000 + b'"'),
}


@pytest.mark.parametrize("kind", RESULTS)
def test_no_exchange_outgrows_its_limit_unless_by_a_single_item(kind):
    parcels, items, result = RESULTS[kind]
    bench = Bench(slots=parcels * items)
    for _ in range(parcels):
        bench.gateway.submit(JOB, parameters(items))
    bench.trade(bench.up())
    while chunk := bench.session.take():
        while begun := chunk.begin(bench.clock.monotonic()):
            bench.session.log((begun[0], begun[1]), 0, [(0, "stdout", "y" * 200)])
            chunk.end(begun, bench.clock.monotonic(), result)
        bench.session.finish(chunk)

    while (exchange := bench.up()).outcomes or exchange.logs:
        count = sum(outcome.hi - outcome.lo for outcome in exchange.outcomes)
        assert len(msgspec.json.encode(exchange)) <= MAX_EXCHANGE or count == 1
        bench.trade(exchange)

    assert len(bench.gateway.finished) == parcels * items


def test_a_refused_exchange_is_halved_until_the_faulty_outcome_is_alone():
    bench = Bench(slots=1)
    bench.gateway.submit(JOB, parameters(1))
    bench.trade(bench.up())
    bench.run_all(0.0001)
    bench.gateway.submit(JOB, parameters(9))
    bench.trade(bench.up())
    chunk = bench.session.take()
    for number in range(9):
        begun = chunk.begin(bench.clock.monotonic())
        chunk.end(begun, bench.clock.monotonic(), b'"bad"' if number == 5 else b"1")
    bench.session.finish(chunk)

    outcomes: list[Outcome] = []
    for _ in range(40):
        exchange = bench.session.next_exchange()
        while exchange is not None and any(b"bad" in bytes(raw) for o in exchange.outcomes for raw in o.results):
            exchange = bench.session.refused(exchange, "too deep")
        if exchange is None:
            break
        outcomes += exchange.outcomes
        bench.trade(exchange)

    fates = {i: o.outcome for o in outcomes for i in range(o.lo, o.hi)}
    assert [fates[i] for i in range(9)] == ["success"] * 5 + ["failed"] + ["success"] * 3
    assert not bench.gateway.running


def told_to(bench: Bench, refuses: Callable[[Exchange], bool]) -> list[Exchange]:
    """Return the exchanges read by a server that refuses some, until no reports are left."""
    read: list[Exchange] = []
    for _ in range(60):
        bench.clock.advance(SECOND)
        exchange = bench.session.next_exchange()
        while exchange is not None and refuses(exchange):
            exchange = bench.session.refused(exchange, "cannot read it")
        if exchange is not None:
            read.append(exchange)
            bench.trade(exchange)
    return read


def test_no_outcome_fails_because_of_other_entries():
    bench = Bench()
    bench.gateway.submit(JOB, parameters(1))
    bench.trade(bench.up())
    chunk = bench.session.take()
    begun = chunk.begin(bench.clock.monotonic())
    bench.session.progress(begun[:2], 500.0)
    chunk.end(begun, bench.clock.monotonic(), b"1")
    bench.session.finish(chunk)

    read = told_to(bench, lambda up: any(one.percent == 500.0 for one in up.progress))

    assert [one.outcome for up in read for one in up.outcomes] == ["success"]
    assert not any(up.progress for up in read)


def test_a_refused_line_does_not_affect_its_neighbours():
    bench = Bench(slots=4)
    parcel = bench.gateway.submit(JOB, parameters(4))
    bench.talk()
    chunks = [bench.session.take() for _ in range(4)]
    for number, chunk in enumerate(chunks):
        begun = chunk.begin(bench.clock.monotonic())
        texts = [f"{number}:{i}" for i in range(9)]
        texts[4:5] = ["bad line"] if number == 2 else texts[4:5]
        bench.session.log(begun[:2], 0, [(0, "stdout", text) for text in texts])
        bench.session.progress(begun[:2], 10.0 * number)
        chunk.end(begun, bench.clock.monotonic(), b'"bad"' if number == 1 else b"1")
        bench.session.finish(chunk)

    told_to(bench, lambda up: b"bad" in msgspec.json.encode(up))

    assert [bench.gateway.finished[parcel, i].outcome for i in range(4)] == ["success", "failed", "success", "success"]
    for number in range(4):
        lines = bench.gateway.lines(parcel, number)
        if number == 2:
            assert lines.pop(4) == f"{REFUSED} of 8 characters: cannot read it"
            lines.insert(4, "2:4")
        assert lines == [f"{number}:{i}" for i in range(9)]
    assert sorted(one.percent for one in bench.gateway.progress) == [0.0, 10.0, 20.0, 30.0]
    assert (bench.session.outbox.logs.bytes, bench.session.outbox.logs.has_news) == (0, False)


def test_the_outcome_that_a_server_names_is_replaced_and_no_other_waits():
    parcel = virtual_env(3).new_id()
    outcomes = [
        Outcome(parcel=parcel, lo=i, hi=i + 1, attempt=1, outcome="success", results=[Raw(b"1")]) for i in range(3)
    ]
    log = LogLines(parcel=parcel, item=0, attempt=1, seq=0, lines=[(0, "log", "a")])

    keep, back = split_load(ExchangeLoad(outcomes=outcomes, logs=[log]), "too deep", 1)

    assert [(o.lo, o.outcome) for o in keep.outcomes] == [(0, "success"), (1, "failed"), (2, "success")]
    assert (keep.logs, back.outcomes, back.logs) == ([log], [], [])


def test_an_empty_exchange_that_is_refused_means_the_end():
    bench = Bench()

    assert bench.session.refused(bench.up(), "a gap") is None


@given(st.lists(st.integers(1, 6), min_size=1, max_size=5))
def test_halving_loses_no_item(sizes):
    parcel = virtual_env(3).new_id()
    outcomes = [
        Outcome(parcel=parcel, lo=10 * i, hi=10 * i + size, attempt=1, outcome="success", results=[Raw(b"1")] * size)
        for i, size in enumerate(sizes)
    ]
    keep, back = halve_outcomes(outcomes, "why")

    def items(some):
        return [index for o in some for index in range(o.lo, o.hi)]

    assert items(keep) + items(back) == items(outcomes)
    assert all(len(o.results) in (0, o.hi - o.lo) for o in keep + back)


def test_times_are_the_servers():
    bench = Bench(slots=1)
    bench.gateway.submit(JOB, parameters(1))
    bench.trade(bench.up())
    before = bench.clock.now()
    bench.run_all(2.0)

    outcome = bench.up().outcomes[0]

    assert outcome.started_at == [before]
    assert outcome.ended_at == [before + 2 * SECOND]


def test_a_definition_it_does_not_understand_is_a_problem_of_its_items_alone():
    bench = Bench()
    bench.gateway.submit(JOB, parameters(1))
    exchange = bench.up()
    answer = bench.gateway.exchange(bench.session.id, exchange, False)
    broken = msgspec.structs.replace(answer, jobs={key: Raw(b'{"task":{"kind":"magic"}}') for key in answer.jobs})
    bench.session.answered(exchange, broken, bench.clock.monotonic())

    backlog = bench.session.take().backlog

    assert backlog.spec is None
    assert "definition" in backlog.problem


def test_a_request_for_something_unknown_is_left_for_later():
    bench = Bench()
    unknown = Request(parcel=bench.gateway.env.new_id(), item=0, attempt=1, kind="cancel")
    exchange = bench.up()
    answer = bench.gateway.exchange(bench.session.id, exchange, False)

    assert bench.session.answered(exchange, msgspec.structs.replace(answer, requests=[unknown]), 0.0) == []


def test_failures_keep_their_error_and_break_the_range():
    bench = Bench(slots=1)
    bench.gateway.submit(JOB, parameters(1))
    bench.trade(bench.up())
    bench.run_all(0.0001)
    bench.gateway.submit(JOB, parameters(3))
    bench.trade(bench.up())
    chunk = bench.session.take()
    oops = ItemOutcome(outcome="failed", error=Failure(type="Oops"), exit_code=3)
    for outcome in (b"null", oops, b"null"):
        chunk.end(chunk.begin(bench.clock.monotonic()), bench.clock.monotonic(), outcome)
    bench.session.finish(chunk)

    told = [(o.lo, o.hi, o.outcome, o.exit_code, o.results) for o in bench.up().outcomes]

    assert told == [(0, 1, "success", None, []), (1, 2, "failed", 3, []), (2, 3, "success", None, [])]


def test_items_granted_before_the_drain_but_received_after_it_are_handed_back():
    bench = Bench()
    parcel = bench.gateway.submit(JOB, parameters(2))
    exchange = bench.up()
    answer = bench.gateway.exchange(bench.session.id, exchange, False)

    bench.session.drain()
    bench.session.answered(exchange, answer, bench.clock.monotonic())

    assert bench.session.take() is None
    assert [(o.parcel, o.lo, o.hi, o.outcome) for o in bench.up().outcomes] == [(parcel, 0, 2, "released")]


def test_started_and_unstarted_items_are_handed_back_separately():
    """Otherwise the start of one would be reported for all, or for none."""
    bench = Bench(slots=2)
    bench.gateway.submit(JOB, parameters(2))
    bench.trade(bench.up())
    running, waiting = bench.session.take(), bench.session.take()
    begun = running.begin(bench.clock.monotonic())
    bench.up()

    bench.session.drain()
    running.end(begun, bench.clock.monotonic(), RELEASED)
    bench.session.finish(running)
    bench.session.finish(waiting)

    told = [(o.lo, o.hi, o.outcome, len(o.started_at)) for o in bench.up().outcomes]
    assert told == [(0, 1, "released", 1), (1, 2, "released", 0)]


def test_a_server_may_ask_for_the_drain():
    bench = Bench()
    bench.gateway.drain = True
    bench.trade(bench.up())

    assert bench.session.draining
    assert bench.up().draining


def test_an_exchange_that_waits_carries_no_reports():
    bench = Bench(slots=6)
    bench.gateway.submit(JOB, parameters(4))
    bench.trade(bench.up())
    chunks = [bench.session.take() for _ in range(4)]
    for chunk in chunks[:2]:
        bench.run(chunk)
        assert bench.up().wait == 0
    bench.run(chunks[2])

    poll = bench.session.next_exchange()

    assert poll is None or (poll.wait > 0 and poll.outcomes == [])
    assert bench.session.outbox.has_outcomes


def test_an_outcome_that_was_decided_is_not_decided_again():
    bench = Bench(slots=1)
    bench.gateway.submit(JOB, parameters(2))
    bench.trade(bench.up())
    chunk = bench.session.take()
    begun = chunk.begin(bench.clock.monotonic())

    assert bench.session.decide(chunk, begun, ItemOutcome(outcome="failed", error=Failure(type="RunTimeout")))
    assert not bench.session.decide(chunk, begun, ItemOutcome(outcome="cancelled"))
    assert not chunk.end(begun, bench.clock.monotonic(), b"1")
    bench.session.finish(chunk)

    assert [o.outcome for o in bench.up().outcomes] == ["failed"]


def test_an_item_with_a_start_timeout_fails_unstarted():
    bench = Bench(slots=1)
    hasty = Spec(name="h", task=PythonTask(function="f"), timeouts=Timeouts(start=SECOND // 2))
    bench.gateway.submit(hasty, parameters(3))
    exchange = bench.up()
    bench.gateway.exchange(bench.session.id, exchange, False)
    grants = [
        Grant(parcel=UUID(int=1 << 16), lo=0, hi=3, job=UUID(int=7), version=1, attempt=1, token=1, due_at=0,
              items=[Raw(b"{}")] * 3)
    ]  # fmt: skip
    answer = Answer(slices=grants, jobs={f"{UUID(int=7)}:1": Raw(msgspec.json.encode(hasty))}, now=0)
    bench.session.answered(exchange, answer, bench.clock.monotonic())
    chunk = bench.session.take()
    assert chunk.begin(bench.clock.monotonic()) is not None
    assert bench.session.wake_at() is not None

    bench.clock.advance(SECOND // 2 - 1)
    bench.session.tick()
    assert not bench.session.outbox.has_outcomes
    bench.clock.advance(1)
    bench.session.tick()

    (outcome,) = bench.up().outcomes
    assert (outcome.lo, outcome.hi, outcome.error.type, outcome.started_at) == (1, 3, "StartTimeout", [])
    assert bench.session.stock.late_from() is None


@pytest.mark.parametrize(
    ("kind", "begun", "unstarted"),
    [
        ("timeout", "timeout", "StartTimeout"),
        ("startTimeout", None, "StartTimeout"),
        ("heartbeatTimeout", "heartbeat", "StartTimeout"),
        ("totalTimeout", "total", "TotalTimeout"),
    ],
)
def test_each_timeout_requested_by_a_server_ends_its_item(kind, begun, unstarted):
    bench = Bench(slots=2)
    parcel = bench.gateway.submit(JOB, parameters(2))
    bench.trade(bench.up())
    chunk = bench.session.take()
    item = chunk.begin(bench.clock.monotonic())
    both = [Request(parcel=parcel, item=i, attempt=1, kind=kind) for i in range(2)]
    exchange = bench.up()
    interrupts = bench.session.answered(exchange, Answer(requests=both, now=0), bench.clock.monotonic())

    assert [(i.begun, i.kind) for i in interrupts] == ([(item, begun)] if begun else [])
    (outcome,) = bench.up().outcomes
    assert (outcome.lo, outcome.hi, outcome.error.type) == (1, 2, unstarted)


def test_items_handed_back_for_urgent_ones_pause_fetching_until_a_slot_is_idle():
    bench = Bench(slots=1)
    bench.gateway.submit(JOB, parameters(1))
    bench.trade(bench.up())
    bench.run_all(0.02)
    parcel = bench.gateway.submit(JOB, parameters(20))
    bench.talk()
    bench.talk()
    runs = bench.session.take()
    begun = runs.begin(bench.clock.monotonic())
    held = [place for place in bench.gateway.running if place[0] == parcel]
    assert len(held) > 2

    attempt = bench.gateway.running[held[0]].item.attempt
    (first, *_) = bench.session.unanswered()
    ranges = [Range(parcel=parcel, lo=0, hi=len(held) - 1, attempt=attempt)]
    answer = msgspec.structs.replace(bench.gateway.exchange(bench.session.id, first, False), hand_back=ranges)
    bench.session.answered(first, answer, bench.clock.monotonic())
    told = bench.talk()

    released = [i for up in told for o in up.outcomes if o.outcome == "released" for i in range(o.lo, o.hi)]
    assert released == list(range(1, len(held) - 1))
    assert not any(up.prefetch for up in told)
    assert bench.session.holds(parcel, 0, attempt)
    assert bench.session.holds(parcel, len(held) - 1, attempt)

    bench.clock.advance(SECOND // 50)
    runs.end(begun, bench.clock.monotonic(), b"1")
    bench.session.finish(runs)
    bench.run_all(0.02)
    assert any(up.free for up in bench.talk())


def test_a_detached_session_exchanges_nothing_and_begins_nothing():
    bench = Bench(slots=1)
    bench.gateway.submit(JOB, parameters(2))
    bench.talk()

    assert bench.session.detach()
    assert not bench.session.detach()

    assert bench.session.next_exchange() is None
    assert bench.session.take() is None


def test_a_re_attachment_names_every_held_item_and_the_answered_exchanges():
    """Held are items that have not begun, that run, or that have ended without an answer to their report."""
    bench = Bench(slots=4)
    parcel = bench.gateway.submit(JOB, parameters(4))
    bench.talk()
    bench.run(bench.session.take())
    reporting = bench.up()
    assert [(o.lo, o.hi) for o in reporting.outcomes] == [(0, 1)]
    before = {c.number: c.n for c in bench.session._channels}

    bench.session.detach()
    told = bench.session.reattachment()

    assert [(r.parcel, r.lo, r.hi, r.attempt) for r in told.held] == [(parcel, 0, 4, 1)]
    assert told.answered[reporting.channel] == before[reporting.channel] - 1
    assert len(told.answered) == CHANNELS


def test_reported_items_are_not_held_any_more():
    bench = Bench(slots=4)
    parcel = bench.gateway.submit(JOB, parameters(4))
    bench.talk()
    bench.run(bench.session.take())
    bench.talk()

    held = bench.session.reattachment().held

    confirmed = {item for o in bench.gateway.outcomes for item in range(o.lo, o.hi)}
    assert confirmed
    assert {item for r in held for item in range(r.lo, r.hi)} == set(range(4)) - confirmed
    assert {(r.parcel, r.attempt) for r in held} == {(parcel, 1)}


def test_a_re_attached_session_stops_what_it_lost_and_goes_on():
    bench = Bench(slots=2)
    parcel = bench.gateway.submit(JOB, parameters(3))
    bench.talk()
    chunk = bench.session.take()
    begun = chunk.begin(bench.clock.monotonic())
    bench.session.detach()
    stop = [Range(parcel=parcel, lo=0, hi=2, attempt=1)]

    interrupts = bench.session.reattached(Reattached(epoch=2, stop=stop, now=0), bench.clock.monotonic())

    assert [(one.begun, one.kind) for one in interrupts] == [(begun, "preempt")]
    assert bench.session.unanswered()
    released = [o for exchange in bench.talk() for o in exchange.outcomes]
    assert [(o.lo, o.hi, o.outcome) for o in released] == [(1, 2, "released")]
