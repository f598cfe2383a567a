"""The gateway: every waiting exchange is answered in time, and repeated requests have no second effect."""

import asyncio

import pytest
from msgspec import Raw, json

from horae.engine.base.hints import Hint
from horae.engine.fleet.gateway import CROWD
from horae.engine.fleet.protocol_checks import MOST_PIECES
from horae.engine.server_node import ServerNode
from horae.env import SECOND, virtual_env
from horae.errors import BadInput, Busy, StoreUnavailable
from horae.features.statistics.part import StatisticsPart
from horae.model.fleet.protocol import MAX_EXCHANGE, Answer, Exchange, LogLines, Outcome, Register
from horae.model.fleet.submit import ChildSubmit, Submit
from horae.store.contract import Store
from horae.store.executions.leaving.effects import Effects, FinishedItems
from horae.store.fleet.claim import ClaimResult
from horae.store.sqlite.memory import MemoryDriver
from tests.store_contract.world import World

HEARTBEAT = 5 * SECOND


@pytest.fixture
async def node():
    env = virtual_env()
    driver = MemoryDriver(env)
    await driver.migrate()
    node = ServerNode(env, Store(driver, env))
    await node.start({"gateway"})
    yield node
    await node.stop()


async def pass_time(node, seconds):
    """Advance time by steps of ten milliseconds and run due work."""
    for _ in range(round(seconds * 100)):
        node.env.clock.advance(SECOND // 100)
        for _ in range(10):
            await asyncio.sleep(0)


async def register(node, slots=1):
    presence = Register(protocol=1, worker="w", concurrency=slots)
    return (await node.gateway.register(1, presence)).session_id


def send(node, session, **up):
    return asyncio.ensure_future(node.gateway.exchange(1, session, Exchange(**up)))


async def test_a_busy_worker_beside_a_full_queue_has_its_heartbeat_answered(node):
    world = World(node.store.driver, node.env)
    await world.submit(await world.job(), 2)
    await node.base.directory.step()
    session = await register(node)
    granted = json.decode(await send(node, session, channel=0, n=1, free=1), type=Answer)
    assert sum(s.hi - s.lo for s in granted.slices) == 1
    await pass_time(node, 1)

    poll = send(node, session, channel=0, n=2, wait=HEARTBEAT)
    await pass_time(node, 5.1)

    assert poll.done()


async def test_an_exchange_serves_the_parked_exchanges_of_its_session(node, monkeypatch):
    """A session that its own reports lock all the time would otherwise never be claimed for."""

    async def in_vain(*claim):
        return ClaimResult([], {})

    monkeypatch.setattr(node.store, "claim_for_parked", in_vain)
    world = World(node.store.driver, node.env)
    session = await register(node, 3)
    poll = send(node, session, channel=0, n=1, free=2, wait=HEARTBEAT)
    await pass_time(node, 0.1)
    await world.submit(await world.job(), 3)
    await node.base.directory.step()
    assert not poll.done()

    told = json.decode(await send(node, session, channel=1, n=1, free=1), type=Answer)

    assert sum(s.hi - s.lo for s in told.slices) == 1
    assert sum(s.hi - s.lo for s in json.decode(await poll, type=Answer).slices) == 2


async def test_the_waits_of_a_crowd_end_together(node, monkeypatch):
    crowd = [await register(node) for _ in range(CROWD + 40)]
    ended: list[int] = []
    answer_empty = node.store.answer_empty

    async def counted(numbers):
        ended.append(len(numbers))
        return await answer_empty(numbers)

    monkeypatch.setattr(node.store, "answer_empty", counted)
    polls = []
    for session in crowd:
        polls.append(send(node, session, channel=0, n=1, wait=HEARTBEAT))
        await pass_time(node, 0.01)
    assert len(node.fleet.parking_lot) == len(crowd)
    await pass_time(node, 5.1)

    assert all(poll.done() for poll in polls)
    assert sum(ended) == len(crowd)
    assert len(ended) < CROWD + 40 / 5


async def test_silent_sessions_are_dropped_from_memory_and_read_again(node):
    silent = await register(node)
    node.base.hints.send_locally(Hint(sessions=[silent]))
    node.env.clock.advance(3600 * SECOND)

    node.fleet.hand_backs._ready[silent] = {1: 2}
    other = await register(node)
    assert set(node.fleet.sessions._known) == {other}
    assert not node.gateway._asked
    assert not node.fleet.hand_backs._ready

    assert json.decode(await send(node, silent, channel=0, n=1), type=Answer).slices == []
    assert set(node.fleet.sessions._known) == {other, silent}


async def test_exchanges_that_wait_while_the_server_stops_without_its_store_are_busy(node, monkeypatch):
    async def unreachable(*given):
        raise StoreUnavailable("The store went away.")

    poll = send(node, await register(node), channel=0, n=1, wait=HEARTBEAT)
    await pass_time(node, 0.1)
    with monkeypatch.context() as patch:
        patch.setattr(node.store, "answer_empty", unreachable)
        await node.gateway.stop()

    with pytest.raises(Busy, match="The server is stopping"):
        await poll


async def test_a_request_that_is_made_during_a_commit_is_delivered_at_once(node, monkeypatch):
    session, exchange = await register(node), node.store.exchange

    async def committed(*given, **more):
        done = await exchange(*given, **more)
        node.base.hints.send_locally(Hint(sessions=[session]))
        return done

    monkeypatch.setattr(node.store, "exchange", committed)
    late = Outcome(parcel=node.env.new_id(), lo=0, hi=1, attempt=1, outcome="success")
    poll = send(node, session, channel=0, n=1, wait=HEARTBEAT, outcomes=[late])
    await pass_time(node, 0.1)

    assert poll.done()


async def test_a_claim_that_skipped_a_locked_session_is_repeated(node, monkeypatch):
    world = World(node.store.driver, node.env)
    job = await world.job()
    session = await register(node)
    await node.base.directory.load()
    poll = send(node, session, channel=0, n=1, free=1, wait=HEARTBEAT)
    await pass_time(node, 0.1)

    async def passed_over(*_):
        return ClaimResult([], {})

    with monkeypatch.context() as patch:
        patch.setattr(node.store, "claim_for_parked", passed_over)
        await world.submit(job)
        node.base.hints.send_locally(Hint(lanes={job.lane: 0}))
        await pass_time(node, 0.01)
    assert not poll.done()

    await send(node, session, channel=1, n=1)
    await pass_time(node, 0.01)

    assert json.decode(await poll, type=Answer).slices


async def test_no_more_sessions_are_locked_than_there_are_executions_to_give(node, monkeypatch):
    world = World(node.store.driver, node.env)
    job = await world.job()
    await node.base.directory.load()
    polls = [send(node, await register(node), channel=0, n=1, free=1, wait=HEARTBEAT) for _ in range(20)]
    await pass_time(node, 0.1)
    locked, busy = [], []
    claim_for_parked = node.store.claim_for_parked

    async def counted(parked, *rest):
        locked.append(len(parked))
        return ClaimResult([], {}) if len(locked) in busy else await claim_for_parked(parked, *rest)

    monkeypatch.setattr(node.store, "claim_for_parked", counted)
    # Act as if another server had accepted the submission.
    monkeypatch.setattr(node.fleet.parking_lot, "takers", lambda amounts: [])
    for count, rounds in ((1, [1]), (3, [3])):
        locked.clear()
        await node.submitter.submit(1, [Submit(job=str(job.id))] * count, origin="submit")
        await pass_time(node, 0.05)
        assert locked == rounds
    assert sum(poll.done() for poll in polls) == 4

    locked.clear()
    busy.append(1)  # another transaction holds the chosen session
    await node.submitter.submit(1, [Submit(job=str(job.id))], origin="submit")
    await pass_time(node, 0.05)
    assert locked == [1, 16]
    assert sum(poll.done() for poll in polls) == 5


async def test_a_submission_is_handed_over_to_a_waiting_exchange(node, monkeypatch):
    world = World(node.store.driver, node.env)
    job = await world.job()
    await node.base.directory.load()
    polls = [send(node, await register(node), channel=0, n=1, free=1, wait=HEARTBEAT) for _ in range(3)]
    await pass_time(node, 0.1)

    async def unneeded(*_):
        raise AssertionError("claimed")

    with monkeypatch.context() as patch:
        patch.setattr(node.store, "claim_for_parked", unneeded)
        await node.submitter.submit(1, [Submit(job=str(job.id))] * 2, origin="submit")
        await pass_time(node, 0.05)

    answers = [json.decode(await poll, type=Answer) for poll in polls if poll.done()]
    assert [len(answer.slices) for answer in answers] == [1, 1]


async def test_unwritten_counts_are_written_with_the_next_ones(node, monkeypatch):
    ended = FinishedItems(node.env.new_id(), 0, 2, node.env.new_id(), 1, "success", 5)
    node.base.topics.settled(Effects(ended=[ended]))

    async def down(*_):
        raise StoreUnavailable("gone")

    with monkeypatch.context() as patch:
        patch.setattr(node.store, "write", down)
        with pytest.raises(StoreUnavailable):
            await node.part(StatisticsPart).statistics.step()
    node.base.topics.settled(Effects(ended=[ended]))
    await node.part(StatisticsPart).statistics.step()

    world = World(node.store.driver, node.env)
    assert await world.rows("SELECT success, busy_micros FROM job_minutes") == [(4, 10)]


async def test_executions_cancelled_before_their_start_are_counted(node):
    world = World(node.store.driver, node.env)
    one, two = await world.job("one"), await world.job("two")
    (first, *_) = await world.submit(one, 3)
    await world.submit(two, 4)
    await world.submit(two, due_at=world.now() + 3600 * SECOND)

    await node.work.executions.cancel(1, first.execution_id)
    await node.definitions.jobs.delete(1, "two")
    await node.part(StatisticsPart).statistics.step()

    rows = await world.rows("SELECT job, cancelled FROM job_minutes ORDER BY cancelled")
    assert rows == [(one.id, 1), (two.id, 5)]
    assert node.base.counters.totals["cancelled"] == 6
    assert (await node.part(StatisticsPart).job_statistics.counts(1)).cancelled == 6


async def test_a_repeated_call_finds_its_child_after_the_span_of_the_job_s_keys(node):
    world = World(node.store.driver, node.env)
    await world.submit(await world.job())
    await world.job("child", key_for=SECOND)
    await node.base.directory.step()
    session = await register(node)
    (grant,) = json.decode(await send(node, session, channel=0, n=1, free=1), type=Answer).slices
    call = ChildSubmit(parcel=grant.parcel, item=0, attempt=grant.attempt, call="0", submissions=[Submit(job="child")])

    (first,) = await node.gateway.submit_children(1, session, call)
    node.env.clock.advance(3600 * SECOND)
    (again,) = await node.gateway.submit_children(1, session, call)

    assert (again.execution_id, again.deduplicated) == (first.execution_id, True)


async def test_a_child_with_a_span_for_no_key_is_refused(node):
    world = World(node.store.driver, node.env)
    await world.submit(await world.job())
    await node.base.directory.step()
    session = await register(node)
    (grant,) = json.decode(await send(node, session, channel=0, n=1, free=1), type=Answer).slices
    child = Submit(job="job", key_for=SECOND)
    call = ChildSubmit(parcel=grant.parcel, item=0, attempt=grant.attempt, call="0", submissions=[child])

    with pytest.raises(BadInput, match="`keyFor` is given without `key`"):
        await node.gateway.submit_children(1, session, call)


def succeeded(grant):
    return Outcome(parcel=grant.parcel, lo=grant.lo, hi=grant.hi, attempt=grant.attempt, outcome="success")


@pytest.mark.parametrize(("size", "count", "most"), [(1_048_000, 64, 1), (100_000, 64, 5), (20, 2000, 64)])
async def test_answers_are_cut_by_bytes_and_everything_gets_through(node, size, count, most):
    """Run a worker with 64 slots that asks for work and reports its executions."""
    world = World(node.store.driver, node.env)
    await world.job()
    params = Raw(json.encode({"a": "x" * size}))
    await node.submitter.submit(1, [Submit(job="job", params=params) for _ in range(count)], origin="submit")
    await node.base.directory.step()
    session = await register(node, slots=64)

    done: list[Outcome] = []
    granted = n = 0
    while granted < count:
        n += 1
        body = await send(node, session, channel=0, n=n, free=64, outcomes=done)
        slices = json.decode(body, type=Answer).slices
        items = sum(grant.hi - grant.lo for grant in slices)
        assert 1 <= items <= most
        assert len(body) <= MAX_EXCHANGE or items == 1
        granted += items
        done = [succeeded(grant) for grant in slices]
    await send(node, session, channel=0, n=n + 1, outcomes=done)

    assert n == -(-count // most)
    assert {state for _, _, state, _ in await world.history()} == {"success"}


async def test_an_exchange_that_waits_gets_the_next_suspect_when_its_session_has_ended_one(node):
    world = World(node.store.driver, node.env)
    await world.submit(await world.job(), 2)
    await world.do("UPDATE queued SET losses = 2")
    await node.base.directory.step()
    session = await register(node, slots=2)
    (first,) = json.decode(await send(node, session, channel=0, n=1, free=2), type=Answer).slices
    poll = send(node, session, channel=0, n=2, free=1, wait=HEARTBEAT)
    await pass_time(node, 0.5)
    assert not poll.done()

    await send(node, session, channel=1, n=1, outcomes=[succeeded(first)])
    await pass_time(node, 0.01)

    (second,) = json.decode(await poll, type=Answer).slices
    assert (first.lo, second.lo) == (0, 1)


async def test_a_prefetch_claims_only_lanes_with_known_jobs(node, monkeypatch):
    world = World(node.store.driver, node.env)
    short, other = await world.job("short", queue="default"), await world.job("other", queue="elsewhere")
    await world.submit(short, 3)
    await world.submit(other, 3)
    await node.base.directory.step()
    presence = Register(protocol=1, worker="w", queues=("default", "elsewhere"))
    session = (await node.gateway.register(1, presence)).session_id
    (grant,) = json.decode(await send(node, session, channel=0, n=1, free=1), type=Answer).slices
    assert grant.job == short.id
    seen: list[list[int]] = []
    exchange = node.store.exchange

    async def watched(*args, **more):
        done = await exchange(*args, **more)
        seen.append(list(done.claimed.lanes))
        return done

    monkeypatch.setattr(node.store, "exchange", watched)
    ahead = json.decode(await send(node, session, channel=0, n=2, prefetch={short.id: 9}), type=Answer)
    again = send(node, session, channel=0, n=3, prefetch={short.id: 9}, wait=HEARTBEAT)
    await pass_time(node, 0.5)

    assert [(s.job, s.hi - s.lo) for s in ahead.slices] == [(short.id, 2)]
    assert seen == [[short.lane]]  # the second exchange only reads its session
    assert not again.done()
    again.cancel()


async def test_nothing_is_claimed_for_an_exchange_without_matching_wants(node, monkeypatch):
    world = World(node.store.driver, node.env)
    job = await world.job()
    await world.submit(job, 2)
    await node.base.directory.step()
    session = await register(node)
    await send(node, session, channel=0, n=1, free=1)
    claims: list[object] = []

    async def watched(*args):
        claims.append(args)
        return ClaimResult([], {})

    monkeypatch.setattr(node.store, "claim_for_parked", watched)
    poll = send(node, session, channel=0, n=2, prefetch={job.id: 0}, wait=HEARTBEAT)
    await pass_time(node, 0.1)
    await send(node, session, channel=1, n=1)
    await pass_time(node, 0.1)

    assert claims == []
    poll.cancel()


async def test_an_exchange_that_only_waits_locks_and_writes_nothing(node):
    session = await register(node)
    counted = node.store.driver.statements
    counted.clear()
    poll = send(node, session, channel=0, n=1, free=1, wait=HEARTBEAT)
    await pass_time(node, 0.5)

    assert (counted["look_at_sessions"], counted["lock_sessions"]) == (1, 0)
    assert not poll.done()
    poll.cancel()


async def test_sessions_from_another_server_are_read_together_and_answered_early_at_spread_times(node):
    sessions = [await register(node) for _ in range(50)]
    for session in sessions:
        node.fleet.sessions.forget(session)
    statements, answered = node.store.driver.statements, []
    before = statements["some_sessions"]
    polls = [send(node, session, channel=0, n=1, free=1, wait=HEARTBEAT) for session in sessions]
    for _ in range(26):
        await pass_time(node, 0.1)
        answered.append(sum(poll.done() for poll in polls))

    assert 1 <= statements["some_sessions"] - before <= 2
    assert answered[-1] == 50
    assert max(b - a for a, b in zip([0, *answered], answered, strict=False)) < 25

    poll = send(node, sessions[0], channel=0, n=2, free=1, wait=HEARTBEAT)
    await pass_time(node, 4.8)
    assert not poll.done()
    poll.cancel()


async def test_requests_to_many_sessions_are_read_together(node):
    sessions = [await register(node) for _ in range(CROWD + 40)]
    statements = node.store.driver.statements
    before = statements["requests_of"]
    polls = [send(node, session, channel=0, n=1, wait=HEARTBEAT) for session in sessions]
    await pass_time(node, 5.2)

    assert all(poll.done() for poll in polls)
    assert 1 <= statements["requests_of"] - before <= 8


async def test_room_that_grows_stepwise_is_reported_by_one_exchange(node):
    """An execution that needs the room of two exchanges is granted when one exchange reports all of it."""
    await node.definitions.jobs.create(1, {"name": "wide", "command": "true", "slots": 4})
    session = (
        await node.gateway.register(1, Register(protocol=2, worker="w", concurrency=4, kinds=("command",)))
    ).session_id
    waits = send(node, session, channel=0, n=1, free=1, wait=HEARTBEAT)
    await pass_time(node, 0.1)
    await node.submitter.submit(1, [Submit(job="wide")], origin="submit")
    await pass_time(node, 0.1)
    assert not waits.done()

    assert json.decode(await send(node, session, channel=1, n=1, free=3), type=Answer).slices == []
    await pass_time(node, 0.1)
    assert json.decode(await waits, type=Answer).slices == [], "an empty answer makes the worker ask again"
    granted = json.decode(await send(node, session, channel=0, n=2, free=4, wait=HEARTBEAT), type=Answer)
    assert len(granted.slices) == 1


@pytest.mark.parametrize(("seq", "step", "pieces"), [(100_000_000, 1, 1), (0, 2, MOST_PIECES + 1)])
async def test_an_inconsistent_log_is_refused(node, seq, step, pieces):
    session, parcel = await register(node), node.env.new_id()
    logs = [
        LogLines(parcel=parcel, item=0, attempt=1, seq=seq + step * i, lines=[(0, "stdout", "x")])
        for i in range(pieces)
    ]
    with pytest.raises(BadInput, match=r"[Ll]og"):
        await node.gateway.exchange(1, session, Exchange(channel=0, n=1, logs=logs))
