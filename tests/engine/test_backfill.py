"""The backfiller: it processes unfinished backfills, wakes when an execution ends, and continues those of others."""

import pytest

from horae.engine.base.hints import Hint, Hints
from horae.engine.definitions.directory import LocalDirectory
from horae.env import SECOND
from horae.features.backfills.engine import backfiller
from horae.features.backfills.engine.backfiller import BUSY, IDLE, Backfiller
from horae.features.backfills.model.values import Backfill
from horae.features.backfills.store import backfills
from horae.model.base.event import ChangeEvent
from horae.model.triggers.decisions.rules import Misfire, Rules
from horae.model.triggers.decisions.values import Interval
from tests.store_contract.world import NAMESPACE, World, add_trigger, lead, success

MINUTE = 60 * SECOND


class Server:
    """A backfiller with the parts of a server that it needs."""

    def __init__(self, world: World) -> None:
        self.hints = Hints(world.env, world.store, world.env.new_id())
        self.told: list[Hint] = []
        self.hints.listen(self.told.append)
        self.directory = LocalDirectory(world.env, world.store, self.hints)
        self.backfiller = Backfiller(world.env, world.store, self.directory, self.hints)


async def server(world: World) -> Server:
    made = Server(world)
    await made.directory.load()
    return made


async def missed(world: World, fires: int = 6, name: str = "job", **more: object) -> Backfill:
    """Create a backfill of missed fires."""
    start, job = world.now(), await world.job(name)
    rules = Rules(overlap="allow", misfire=Misfire(policy="skip"), grace=0)
    await add_trigger(world, job, Interval(every=MINUTE, anchor=start), rules)
    world.clock.advance(fires * MINUTE + SECOND)
    await world.store.fire(100, lead)
    backfill = Backfill(
        id=world.env.new_id(), namespace=NAMESPACE, job=job.id, since=start + 1, until=world.now(),
        created_at=world.now(), **more,
    )  # fmt: skip
    await world.store.write(lambda: backfills.put(backfill))
    return backfill


async def test_without_a_backfill_the_service_checks_now_and_then(world: World):
    assert await (await server(world)).backfiller.step() == IDLE


async def test_it_starts_the_fires_with_room_and_sends_hints_for_their_lanes(world: World):
    backfill, one = await missed(world, max_concurrent=2), await server(world)

    assert await one.backfiller.step() == BUSY
    assert one.backfiller.started == 2
    (hint,) = one.told
    assert list(hint.lanes) == [slice.lane for slice in await world.on("queued")]
    assert [(event.kind, event.job, event.count) for event in hint.events] == [("execution", backfill.job, 2)]
    assert await one.backfiller.step() == BUSY
    assert one.backfiller.started == 2


@pytest.mark.parametrize(("state", "rings"), [("success", True), ("failed", True), ("running", False)])
async def test_it_wakes_when_an_execution_of_its_job_has_ended(world: World, state, rings):
    backfill, one = await missed(world), await server(world)
    await one.backfiller.step()
    one.hints.send_locally(
        Hint(events=[ChangeEvent("execution", world.env.new_id(), state, NAMESPACE, 0, backfill.job)])
    )

    assert one.backfiller.alarm._event.is_set() is rings


async def test_a_server_continues_the_backfill_of_another(world: World):
    backfill, worker = await missed(world, max_concurrent=2), await world.worker()
    for _ in range(20):
        await (await server(world)).backfiller.step()
        for slice in await worker.claim(10):
            await worker.report(success(slice))

    done = await world.store.read(lambda: backfills.get(backfill.id, NAMESPACE))
    assert (done.state, done.counts.started, done.counts.succeeded) == ("done", 6, 6)
    assert await (await server(world)).backfiller.step() == IDLE


@pytest.mark.parametrize("fails", [False, True])
async def test_backfills_that_wait_or_fail_do_not_stop_later_ones(world: World, monkeypatch, fails: bool):
    monkeypatch.setattr(backfiller, "TOGETHER", 2)
    old, one = [await missed(world, name=name, max_concurrent=1) for name in "ab"], await server(world)
    await one.backfiller.step()
    new, real = await missed(world), backfiller.process
    if fails:
        monkeypatch.setattr(backfiller, "process", lambda id, *a, **k: real(id, *a, **k) if id == new.id else 1 / 0)

    await one.backfiller.step()

    assert (await world.store.read(lambda: backfills.get(new.id, NAMESPACE))).counts.started == 6
    assert one.backfiller._jobs == {backfill.job for backfill in (*old, new)}


async def test_many_fires_with_room_for_all_are_started_at_once_in_batches(world: World):
    await missed(world, fires=300, max_concurrent=1000)
    one = await server(world)
    started = []
    while await one.backfiller.step() == 0.0:
        started.append(one.backfiller.started)

    assert started == [128, 256, 300]
