"""Holds: after the acknowledgement nothing starts on any server, and everything starts again after the end."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from msgspec import json

from horae.engine.admission.holds import HoldRequest
from horae.engine.server_node import ServerNode
from horae.env import SECOND, Instant
from horae.errors import BadInput, Conflict, NotFound
from horae.model.base.event import ChangeEvent
from horae.model.base.ids import execution_id
from horae.model.base.instant import format_instant
from horae.model.fleet.protocol import Answer, Exchange, Register
from horae.model.fleet.submit import Submit
from horae.store.contract import Store
from tests.store_contract.world import World

DEPLOY = HoldRequest(length="30m", reason="deploy-123")


@pytest.fixture
async def nodes(world: World, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[ServerNode]]:
    """Make two servers on one store without hints between them. The test controls the store's clock."""

    async def server_time() -> Instant:
        return world.now()

    monkeypatch.setattr(world.driver, "server_time", server_time)
    made = [ServerNode(world.env, Store(world.driver, world.env)) for _ in range(2)]
    for node in made:
        await node.start({"gateway"})
    yield made
    for node in made:
        await node.gateway.stop()
        await node.submitter.close()
        await node._runner.stop()


@pytest.fixture
async def node(nodes: list[ServerNode]) -> ServerNode:
    return nodes[0]


async def pass_time(world: World, seconds: float) -> None:
    """Advance time by steps of half a second and run due work."""
    for _ in range(max(1, round(seconds * 2))):
        world.clock.advance(SECOND // 2)
        await settle(world)


async def settle(world: World) -> None:
    """Wait until all tasks are idle. A store on disk or on the network answers from another thread."""
    for _ in range(10):
        await asyncio.sleep(0)
        await world.rows("SELECT 1")


async def until(world: World, done) -> None:
    """Advance time until a condition holds."""
    for _ in range(400):
        if done():
            return
        await pass_time(world, 0.5)
    raise AssertionError("it did not happen")


async def job(node: ServerNode, name: str = "job", **more: object) -> None:
    await node.definitions.jobs.create(1, {"name": name, "command": "true", **more})
    await node.base.directory.load()


async def register(node: ServerNode, *queues: str) -> object:
    presence = Register(protocol=1, worker="w", concurrency=4, queues=queues or ("default",))
    return (await node.gateway.register(1, presence)).session_id


def send(node: ServerNode, session: object, n: int, free: int = 1, wait: int = 5 * SECOND) -> "asyncio.Future[bytes]":
    up = Exchange(channel=0, n=n, free=free, wait=wait)
    return asyncio.ensure_future(node.gateway.exchange(1, session, up))  # type: ignore[arg-type]


def slices(answer: "asyncio.Future[bytes]") -> int:
    return sum(s.hi - s.lo for s in json.decode(answer.result(), type=Answer).slices)


async def gets(world: World, node: ServerNode, session: object, n: int, most: int = 5) -> int:
    """Send exchanges from this number on until something is granted; return the next number."""
    for number in range(n, n + most):
        poll = send(node, session, number)
        await until(world, poll.done)
        if slices(poll):
            return number + 1
    raise AssertionError("nothing was granted")


async def submit(node: ServerNode, name: str = "job") -> str:
    (receipt,) = await node.submitter.submit(1, [Submit(job=name)], origin="submit")
    return str(receipt.execution_id)  # type: ignore[union-attr]


async def test_a_waiting_exchange_gets_nothing_until_the_hold_ends_by_itself(world: World, node: ServerNode):
    await job(node)
    session = await register(node)
    view = await node.admission.holds.open(1, "default", DEPLOY, "key:1")
    assert (view.state, view.queue, view.running, view.created_by) == ("active", "default", 0, "key:1")
    id = await submit(node)

    for n in range(1, 5):
        poll = send(node, session, n)
        await until(world, poll.done)
        assert slices(poll) == 0
    hint = (await node.work.executions.get(1, id)).hint
    assert hint == (
        f'The queue "default" is held until {view.until} (deploy-123); `horae queues release default` ends it now.'
    )
    assert (await node.definitions.jobs.get(1, "job")).notes == [hint]

    world.clock.advance(30 * 60 * SECOND)
    await gets(world, node, session, 5)
    assert (await node.work.executions.get(1, id)).hint is None
    (ended,) = await node.admission.holds.list(1, ended=True)
    assert (ended.state, ended.ended_at, ended.ended_by) == ("ended", view.until, None)
    assert await node.admission.holds.list(1) == []


async def test_a_hold_stops_servers_that_do_not_know_it_yet(world: World, nodes: list[ServerNode]):
    first, second = nodes
    await job(first)
    await second.base.directory.load()
    session = await register(second)
    poll = send(second, session, 1)
    await settle(world)
    for node in nodes:
        await node._runner.stop()  # no service runs any longer

    await first.admission.holds.open(1, "default", DEPLOY, "key:1")
    assert second.admission.hold_watch.not_ended == []
    await submit(second)
    await settle(world)

    assert not poll.done()
    assert await world.on("running") == []
    await second.admission.hold_watch.step()
    assert second.base.directory.held


async def test_a_release_starts_waiting_executions_on_all_servers(world: World, nodes: list[ServerNode]):
    first, second = nodes
    await job(first)
    await second.base.directory.load()
    session = await register(second)
    await first.admission.holds.open(1, None, DEPLOY, "key:1")
    await pass_time(world, 1)
    await submit(second)
    poll = send(second, session, 1)
    await until(world, poll.done)
    assert slices(poll) == 0

    released = await first.admission.holds.release(1, None, None, "key:2")
    await gets(world, second, session, 2)
    assert [one.ended_by for one in released.released] == ["key:2"]
    assert released.note == "1 hold released."


async def test_a_release_names_remaining_holds_and_is_idempotent(world: World, node: ServerNode):
    await job(node)
    await node.admission.holds.open(1, "default", DEPLOY, "key:1")
    await node.admission.holds.open(1, None, HoldRequest(length=60, reason="network"), "key:1")

    assert (await node.admission.holds.release(1, "default", "other", "key:1")).note == (
        'Queue "default" was not held by hand. Queue "default" is still held by "deploy-123" and'
        ' "network" of the whole namespace.'
    )
    first = await node.admission.holds.release(1, "default", "deploy-123", "key:1")
    assert first.note == '1 hold released. Queue "default" is still held by "network" of the whole namespace.'
    assert (await node.admission.holds.release(1, None, None, "key:1")).note == "1 hold released."
    assert (await node.admission.holds.release(1, None, None, "key:1")).note == "The namespace was not held by hand."


async def test_other_queues_are_not_held(world: World, node: ServerNode):
    await job(node)
    await job(node, "other", queue="reports")
    session = await register(node, "default", "reports")
    await node.admission.holds.open(1, "default", DEPLOY, "key:1")
    await submit(node)
    poll = send(node, session, 1)
    await settle(world)
    assert not poll.done()

    await submit(node, "other")
    await until(world, poll.done)

    assert slices(poll) == 1
    assert [slice.queue for slice in await world.on("running")] != [slice.queue for slice in await world.on("queued")]


async def test_a_planned_hold_begins_and_ends_in_time(world: World, node: ServerNode):
    await job(node)
    session = await register(node)
    now = world.now()
    asked = HoldRequest(since=format_instant(now + 60 * SECOND), until=format_instant(now + 120 * SECOND))
    assert (await node.admission.holds.open(1, "default", asked, "key:1")).state == "planned"
    await submit(node)
    poll = send(node, session, 1)
    await until(world, poll.done)
    assert slices(poll) == 1

    await pass_time(world, 60)
    await submit(node)
    poll = send(node, session, 2)
    await until(world, poll.done)
    assert slices(poll) == 0
    await until(world, lambda: world.now() > now + 120 * SECOND)
    await gets(world, node, session, 3)


async def test_a_window_holds_while_its_calendar_is_open(world: World, node: ServerNode):
    await job(node)
    session = await register(node)
    now = world.now() // SECOND * SECOND
    span = f"{format_instant(now + 60 * SECOND)}/{format_instant(now + 120 * SECOND)}"
    await node.definitions.calendars.put(1, "upgrade", {"windows": [span]})
    view = await node.admission.holds.put_window(1, "default", "upgrade", drain=True, reason="kernel", by="key:1")
    assert (view.state, view.since, view.until) == ("planned", *span.split("/"))

    await until(world, lambda: node.base.directory.held)
    assert now + 60 * SECOND <= world.now() < now + 70 * SECOND  # the clock goes on while PostgreSQL answers
    id = await submit(node)
    assert (await node.work.executions.get(1, id)).hint == (
        f'The queue "default" is held until {view.until} by the maintenance window "upgrade" (kernel);'
        " `horae queues window default --calendar upgrade --remove` ends it."
    )
    with pytest.raises(Conflict, match='the window of queue "default"'):
        await node.definitions.calendars.delete(1, "upgrade")
    assert (await node.definitions.calendars.get(1, "upgrade")).used_by[0].queue == "default"

    poll = send(node, session, 1)
    await until(world, poll.done)
    assert slices(poll) == 0
    await until(world, lambda: world.now() > now + 120 * SECOND)
    await gets(world, node, session, 2)
    (left,) = await node.admission.holds.list(1)
    assert (left.state, left.since, left.until) == ("planned", None, None)
    await node.admission.holds.remove_window(1, "default", "upgrade", "key:2")
    await node.definitions.calendars.delete(1, "upgrade")


async def test_a_window_follows_its_calendar(world: World, node: ServerNode):
    await job(node)
    now = world.now() // SECOND * SECOND
    later = f"{format_instant(now + 3600 * SECOND)}/{format_instant(now + 7200 * SECOND)}"
    sooner = f"{format_instant(now)}/{format_instant(now + 7200 * SECOND)}"
    await node.definitions.calendars.put(1, "base", {"windows": [later]})
    await node.definitions.calendars.put(1, "nights", {"calendar": "base"})
    await node.admission.holds.put_window(1, None, "nights", drain=False, reason="", by="key:1")
    assert not node.base.directory.held

    await node.definitions.calendars.put(1, "base", {"windows": [sooner]})
    assert await world.rows("SELECT count(*) FROM holds WHERE from_at <= $1", world.now()) == [(1,)]
    await node.admission.hold_watch.step()
    assert node.base.directory.held

    await node.definitions.calendars.put(1, "base", {"windows": [later]})
    await node.admission.hold_watch.step()
    assert not node.base.directory.held


async def test_a_restarted_server_reads_holds_and_ends_expired_ones(world: World, nodes: list[ServerNode]):
    for each in nodes:
        await each._runner.stop()
    node = nodes[0]
    await job(node)
    await node.admission.holds.open(1, "default", HoldRequest(length=60), "key:1")
    later = ServerNode(world.env, Store(world.driver, world.env))
    await later.prepare()
    assert later.base.directory.held
    world.clock.advance(90 * SECOND)

    restarted = ServerNode(world.env, Store(world.driver, world.env))
    await restarted.prepare()

    assert not restarted.base.directory.held
    assert await restarted.admission.holds.list(1) == []


async def test_a_hold_that_another_server_ended_does_not_hold_here(
    world: World, nodes: list[ServerNode], monkeypatch: pytest.MonkeyPatch
):
    for each in nodes:
        await each._runner.stop()
    node, other = nodes[0], ServerNode(world.env, Store(world.driver, world.env))
    await job(node)
    await node.admission.holds.open(1, "default", HoldRequest(length=60), "key:1")
    await other.prepare()
    world.clock.advance(90 * SECOND)
    end_due = node.admission.hold_watch._end_due

    async def too_late(now: int) -> None:
        await other.admission.hold_watch.step()
        await end_due(now)

    monkeypatch.setattr(node.admission.hold_watch, "_end_due", too_late)
    await node.admission.hold_watch.step()
    assert not node.base.directory.held


async def test_an_untrusted_clock_ends_no_hold(world: World, nodes: list[ServerNode]):
    for each in nodes:
        await each._runner.stop()
    node = nodes[0]
    await job(node)
    await node.admission.holds.open(1, "default", HoldRequest(length=60), "key:1")
    node.base.clock.trusted = False
    world.clock.advance(90 * SECOND)

    await node.admission.hold_watch.step()
    assert node.base.directory.held
    node.base.clock.trusted = True
    await node.admission.hold_watch.step()
    assert not node.base.directory.held


async def test_events_report_the_begin_and_the_end_of_a_hold(world: World, node: ServerNode):
    await job(node)
    heard: list[ChangeEvent | None] = []
    with node.base.events.listening(1, heard.append):
        view = await node.admission.holds.open(1, "default", DEPLOY, "key:1")
        await node.admission.holds.release(1, "default", None, "key:1")

    told = [(event.kind, event.id, event.state) for event in heard if event is not None]
    assert told == [("hold", view.hold_id, "active"), ("hold", view.hold_id, "ended")]


async def test_invalid_holds_are_refused_with_a_remedy(world: World, node: ServerNode):
    await job(node)
    with pytest.raises(NotFound, match='Did you mean "default"'):
        await node.admission.holds.open(1, "defualt", DEPLOY, "key:1")
    with pytest.raises(NotFound, match="List queues"):
        await node.admission.holds.release(1, "nothing-like-it", None, "key:1")
    with pytest.raises(NotFound, match="no maintenance window"):
        await node.admission.holds.remove_window(1, "default", "nights", "key:1")
    with pytest.raises(NotFound, match='no calendar named "night"'):
        await node.admission.holds.put_window(1, "default", "night", drain=False, reason="", by="")
    with pytest.raises(BadInput, match="reason"):
        await node.admission.holds.open(1, "default", HoldRequest(length=60, reason="x" * 300), "key:1")
    now = world.now()
    past = f"{format_instant(now - 7200 * SECOND)}/{format_instant(now - 3600 * SECOND)}"
    await node.definitions.calendars.put(1, "over", {"windows": [past]})
    with pytest.raises(BadInput, match="never opens again"):
        await node.admission.holds.put_window(1, "default", "over", drain=False, reason="", by="")
    await node.definitions.calendars.put(1, "always", {"hours": "MON-SUN 00:00-24:00"})
    with pytest.raises(BadInput, match="never closes"):
        await node.admission.holds.put_window(1, "default", "always", drain=False, reason="", by="")
    assert await node.admission.holds.list(1) == []


async def test_a_fire_during_a_hold_is_queued_and_the_ledger_says_why(world: World, node: ServerNode):
    await job(node, schedule={"every": "1m", "anchor": format_instant(world.now() // SECOND * SECOND)})
    view = await node.admission.holds.open(1, "default", DEPLOY, "key:1")
    world.clock.advance(61 * SECOND)
    await node.firing.scheduler.step()
    await node.admission.holds.release(1, "default", None, "key:1")
    (queued,) = await world.on("queued")
    id = execution_id(queued.parcel, queued.lo)
    assert await world.rows("SELECT disposition, cause, execution FROM fires") == [
        ("fired", f"held until {view.until}", id)
    ]
    world.clock.advance(60 * SECOND)
    await node.firing.scheduler.step()

    rows = await world.rows("SELECT disposition, cause FROM fires ORDER BY first")
    assert [row[0] for row in rows] == ["fired", "skipped-overlap"]
