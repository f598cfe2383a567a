"""Signals: delivered once, before the wait, while the execution is suspended, or after."""

from uuid import UUID

import pytest
from msgspec import Raw

from horae.env import SECOND
from horae.model.definitions.retry import RetryPolicy
from horae.model.executions.signal_waits import MOST_KEPT, Signal
from horae.model.fleet.protocol import Await, Awaited, Outcome, Step
from horae.store.executions import promote
from horae.store.executions.durable import signals, steps
from tests.store_contract.world import NAMESPACE, Worker, World, failed, rank, released, success

MINUTE = 60 * SECOND


class Case:
    """A worker that runs one execution, which waits for signals."""

    def __init__(self, world: World, parcel: UUID, worker: Worker, slice) -> None:
        self.world, self.parcel, self.worker, self.slice = world, parcel, worker, slice

    async def wait(self, step: str = "@wait:go", signal: str = "go", **more) -> Awaited | None:
        attempt = more.pop("attempt", self.slice.attempt)
        body = Await(parcel=self.parcel, item=0, attempt=attempt, step=step, signal=signal, **more)
        now = self.world.now()
        return await self.world.store.write(lambda: signals.wait(self.worker.session, body, now))

    async def send(self, name: str = "go", payload: bytes = b"1", id: int | None = None) -> signals.SignalResult:
        signal = Signal(id=self.world.env.new_id() if id is None else UUID(int=id), name=name, payload=payload)
        now = self.world.now()
        return await self.world.store.write(lambda: signals.send(self.parcel, 0, signal, now))

    async def suspend(self, *waits: str, wake_at: int | None = None) -> None:
        s = self.slice
        outcome = Outcome(
            parcel=s.parcel, lo=0, hi=1, attempt=s.attempt, outcome="suspended", wake_at=wake_at, waits=list(waits)
        )
        await self.worker.report(outcome)

    async def resume(self) -> None:
        """Queue due executions and claim them again."""
        now = self.world.now()
        await self.world.store.write(lambda: promote.promote_due(promote.LONG_AGO, now, 10, rank))
        (self.slice,) = await self.worker.claim(1)

    async def known(self) -> dict[str, bytes]:
        found = await self.world.store.read(lambda: steps.known_steps(self.parcel, 0, NAMESPACE))
        return {name: bytes(result) for name, result in found.steps.items()}


@pytest.fixture
async def case(world: World) -> Case:
    parcel = await world.parcel(await world.job())
    w = await world.worker()
    (slice,) = await w.claim(1)
    return Case(world, parcel, w, slice)


async def test_an_execution_that_waits_holds_no_worker_reads_as_running_and_is_woken_by_its_signal(case, world):
    assert await case.wait() == Awaited(deadline=None)
    await case.suspend("@wait:go")

    (waits,) = await world.on("waiting")
    assert (waits.reason, waits.wake_at, waits.failures, await case.worker.holds()) == ("signal", None, 0, [])
    assert await world.states(case.parcel) == ["running"]
    assert await case.send("other") == signals.SignalResult("kept")
    assert (await world.on("waiting"))[0].wake_at is None

    assert await case.send(payload=b'{"by":"ada"}') == signals.SignalResult("delivered", world.now())
    await case.resume()
    assert (await case.known())["@wait:go"] == b'{"payload":{"by":"ada"}}'
    assert bytes((await case.wait()).result) == b'{"payload":{"by":"ada"}}'
    await case.worker.report(success(case.slice))


async def test_a_signal_before_the_wait_is_stored_and_delivered_once_in_order(case):
    for payload in (b"1", b"2"):
        assert await case.send(payload=payload) == signals.SignalResult("kept")

    assert bytes((await case.wait("@wait:go")).result) == b'{"payload":1}'
    assert bytes((await case.wait("@wait:go")).result) == b'{"payload":1}', "a repeated call gets the same answer"
    assert bytes((await case.wait("@wait:go#2")).result) == b'{"payload":2}'
    assert not (await case.wait("@wait:go#3")).result


async def test_a_signal_during_the_suspension_wakes_the_execution(case, world):
    await case.wait()
    assert await case.send() == signals.SignalResult("delivered", None)
    await case.suspend("@wait:go")

    assert (await world.on("waiting"))[0].wake_at == world.now()
    await case.resume()
    assert bytes((await case.wait()).result) == b'{"payload":1}'


async def test_a_wait_that_was_never_begun_wakes_at_once(case, world):
    """An execution is never stranded, whatever wait its worker reports."""
    await case.suspend("@wait:never")

    assert (await world.on("waiting"))[0].wake_at == world.now()


async def test_the_first_signal_wakes_an_execution_with_several_waits(case, world):
    await case.wait("@wait:a", "a")
    await case.wait("@wait:b", "b")
    await case.suspend("@wait:a", "@wait:b", wake_at=world.now() + MINUTE)
    assert (await world.on("waiting"))[0].wake_at == world.now() + MINUTE

    await case.send("b", b"2")
    await case.resume()
    assert not (await case.wait("@wait:a", "a")).result
    assert bytes((await case.wait("@wait:b", "b")).result) == b'{"payload":2}'


async def test_a_wait_ends_at_its_deadline_which_the_first_call_decides(case, world):
    deadline = world.now() + MINUTE
    assert await case.wait(timeout=MINUTE) == Awaited(deadline=deadline)
    await case.suspend("@wait:go", wake_at=deadline)
    world.clock.advance(MINUTE // 2)
    assert await case.send("other") == signals.SignalResult("kept")

    world.clock.advance(MINUTE // 2)
    await case.resume()
    assert bytes((await case.wait(timeout=MINUTE)).result) == b'{"timedOut":true}'
    assert await case.send() == signals.SignalResult("kept"), "nothing waits for it any more"
    assert bytes((await case.wait()).result) == b'{"timedOut":true}'


async def test_a_filter_skips_other_signals(case):
    more = {"filter": "${signal.payload.amount > 10}"}
    await case.send(payload=b'{"amount":5}')
    await case.send(payload=b'"of another shape"')
    assert not (await case.wait(**more)).result

    assert (await case.send(payload=b'{"amount":6}')).verdict == "kept"
    assert (await case.send(payload=b'{"amount":11}')).verdict == "delivered"
    assert bytes((await case.wait(**more)).result) == b'{"payload":{"amount":11}}'
    assert bytes((await case.wait("@wait:go#2")).result) == b'{"payload":{"amount":5}}'


async def test_the_same_signal_is_delivered_once(case):
    assert (await case.send(id=7)).verdict == "kept"
    assert (await case.send(id=7)).verdict == "kept"
    assert (await case.wait()).result
    assert (await case.send(id=7)).verdict == "delivered"
    assert not (await case.wait("@wait:go#2")).result


async def test_ended_and_unknown_executions_take_no_signals(case, world):
    await case.worker.report(success(case.slice))

    assert await case.send() == signals.SignalResult("final")
    signal = Signal(id=world.env.new_id(), name="go")
    assert await world.store.write(lambda: signals.send(world.env.new_id(), 0, signal, 0)) == signals.SignalResult(
        "unknown"
    )


async def test_signals_are_stored_for_queued_and_retried_executions(world):
    job = await world.job(retry=RetryPolicy(retries=1, delay=MINUTE))
    parcel = await world.parcel(job)
    w = await world.worker()
    case = Case(world, parcel, w, None)
    assert (await case.send(payload=b"1")).verdict == "kept"
    (case.slice,) = await w.claim(1)
    await w.report(failed(case.slice), policies=job.policy)
    assert (await case.send(payload=b"2")).verdict == "kept"
    (waits,) = await world.on("waiting")
    assert (waits.reason, waits.wake_at > world.now()) == ("retry", True)

    world.clock.advance(10 * MINUTE)
    await case.resume()
    assert bytes((await case.wait()).result) == b'{"payload":1}'
    assert bytes((await case.wait("@wait:go#2")).result) == b'{"payload":2}'


async def test_a_wait_of_an_attempt_that_was_handed_back_goes_on_in_the_next(case, world):
    await case.wait(timeout=MINUTE)
    await case.worker.report(released(case.slice))
    assert (await case.send()).verdict == "delivered"

    await case.resume()
    assert bytes((await case.wait()).result) == b'{"payload":1}'


async def test_only_the_session_that_holds_an_execution_can_begin_a_wait(case, world):
    assert await case.wait(attempt=2) is None
    await case.worker.lose()
    assert await case.wait() is None


async def test_undelivered_signals_of_an_execution_are_limited(case, world):
    row = (case.parcel, world.now())
    for at in range(MOST_KEPT):
        await world.do(
            "INSERT INTO signals (parcel, item, id, name, payload, seq, at) VALUES ($1, 0, $3, 'go', $4, $5, $2)",
            *row, UUID(int=at), b"1", at,
        )  # fmt: skip
    assert (await case.send("more")).verdict == "full"


async def test_steps_of_many_executions_are_stored_together(world):
    job = await world.job()
    for _ in range(3):
        await world.parcel(job)
    a, b = await world.worker("a"), await world.worker("b")
    parcels = [slice.parcel for slice in (*await a.claim(2), *await b.claim(1))]
    gone = await world.worker("gone")

    def step(parcel: UUID, name: str, result: bytes) -> Step:
        return Step(parcel=parcel, item=0, attempt=1, name=name, result=Raw(result))

    told = [
        (a.session, step(parcels[0], "x", b"1")),
        (a.session, step(parcels[0], "x", b"2")),
        (b.session, step(parcels[2], "x", b"3")),
        (b.session, step(parcels[1], "x", b"4")),
        (gone.session, step(parcels[2], "y", b"5")),
    ]
    answers = await world.store.write(lambda: steps.remember(told, world.now()))

    assert [(bool(s.refused), s.known, bytes(s.result)) for s in answers] == [
        (False, False, b""), (False, True, b"1"), (False, False, b""), (True, False, b""), (True, False, b""),
    ]  # fmt: skip
    rows = await world.rows("SELECT parcel, name, result FROM steps ORDER BY result")
    assert [(row[0], row[1], bytes(row[2])) for row in rows] == [(parcels[0], "x", b"1"), (parcels[2], "x", b"3")]


async def test_the_last_checkpoint_counts(case, world):
    for state in (b"1", b"2"):
        told = Step(parcel=case.parcel, item=0, attempt=1, name=steps.CHECKPOINT, result=Raw(state))
        (answer,) = await world.store.write(lambda told=told: steps.remember([(case.worker.session, told)], 5))
        assert not answer.known
    assert await case.known() == {steps.CHECKPOINT: b"2"}


async def test_steps_are_recalled_only_for_the_session_that_holds_the_item(case, world):
    told = Step(parcel=case.parcel, item=0, attempt=1, name="charge", result=Raw(b"1"))
    await world.store.write(lambda: steps.remember([(case.worker.session, told)], 5))
    other = await world.worker()

    async def recalled(worker: Worker, item: int = 0):
        return await world.store.read(lambda: steps.recall(worker.session, case.parcel, item, NAMESPACE))

    assert (await recalled(case.worker)).steps == {"charge": Raw(b"1")}
    assert await recalled(other) is None
    assert await recalled(case.worker, item=1) is None
    await case.worker.report(success(case.slice))
    assert await recalled(case.worker) is None


async def test_many_known_steps_are_sent_in_parts(case, world, monkeypatch):
    monkeypatch.setattr(steps, "MOST_BYTES", 25)
    results = {f"s{at}": b'"%s"' % (b"x" * 8) for at in range(7)}
    told = [
        (case.worker.session, Step(parcel=case.parcel, item=0, attempt=1, name=name, result=Raw(result)))
        for name, result in results.items()
    ]
    await world.store.write(lambda: steps.remember(told, world.now()))

    found: dict[str, bytes] = {}
    after: str | None = ""
    parts = 0
    while after is not None:
        page = await world.store.read(lambda after=after: steps.known_steps(case.parcel, 0, NAMESPACE, after or ""))
        found |= {name: bytes(result) for name, result in page.steps.items()}
        after, parts = page.next, parts + 1
    assert found == results
    assert parts == 3
