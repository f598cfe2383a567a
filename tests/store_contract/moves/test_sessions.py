"""Sessions: the presence of a worker in the store."""

from horae.model.fleet.protocol import Register
from horae.store import epochs
from horae.store.fleet import sessions
from tests.store_contract.world import NAMESPACE, World, success


async def test_a_worker_presents_itself(world: World):
    presence = Register(
        protocol=1, worker="w-1", host="box", labels={"gpu": "a100"}, queues=("a", "b"), concurrency=7, kinds=("http",)
    )
    session = await world.store.register(NAMESPACE, presence)

    assert await world.store.session(session.id) == session
    assert (session.state, session.epoch, session.concurrency) == ("live", (await world.store.identity()).epoch, 7)
    assert {"gpu", "gpu=a100", "kind:http", "worker=w-1", "host=box"} <= session.capabilities
    assert session.last_seen == session.created_at == world.now()
    assert await world.store.session(world.env.new_id()) is None


async def test_live_sessions_are_counted_by_key_up_to_a_bound(world: World):
    async def count(key: str, most: int = 10) -> int:
        return await world.store.read(lambda: sessions.count_of_key(key, most))

    presence = Register(protocol=1, worker="w")
    made = [await world.store.register(NAMESPACE, presence, key) for key in ("a", "a", "a", "b", "")]
    assert [await count("a"), await count("a", 2), await count("b"), await count("c")] == [3, 2, 1, 0]
    await world.store.close_session(made[0].id)
    assert await count("a") == 2


async def test_a_session_has_a_count_of_its_running_executions(world: World):
    await world.parcel(await world.job(), 5)
    w = await world.worker()
    (slice,) = await w.claim(4)
    await w.report(success(slice, 0, 1))

    assert (await world.store.session(w.session)).running == 3


async def test_live_and_recently_ended_sessions_are_listed_newest_first(world: World):
    made = []
    for n in range(3):
        made.append(await world.worker(f"w{n}"))
        world.clock.advance(10)
    await world.store.close_session(made[0].session)
    ended = world.now()
    world.clock.advance(10)
    await world.store.close_session(made[1].session)

    def listed(sessions):
        return [s.worker for s in sessions]

    assert listed(await world.store.sessions(NAMESPACE, ended)) == ["w2", "w1"]
    assert listed(await world.store.sessions(NAMESPACE, 0)) == ["w2", "w1", "w0"]
    assert listed(await world.store.sessions(0, 0, limit=1)) == ["w2"]
    assert await world.store.sessions(99, 0) == []


async def test_a_closed_session_is_not_live(world: World):
    w = await world.worker()
    assert await world.store.close_session(w.session)

    assert (await w.exchange(free=1)).decision == "ended"
    assert not await world.store.ask_drain(w.session)
    assert not await world.store.close_session(world.env.new_id())


async def test_a_session_belongs_to_the_present_epoch(world: World):
    presence = Register(protocol=1, worker="w")
    before = await world.store.register(NAMESPACE, presence)
    begun = await world.store.write(lambda: epochs.begin_epoch(world.now()))
    after = await world.store.register(NAMESPACE, presence)

    assert before.epoch < begun == (await world.store.identity()).epoch == after.epoch
    assert (await world.store.session(before.id)).state == "closed"
    assert await world.store.session(after.id) == after
