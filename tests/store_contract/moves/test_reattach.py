"""Re-attachment: after a failover of the store, a session goes on with what its worker and the store agree on."""

from horae.model.fleet.protocol import CHANNELS, Range, Reattach, Register
from horae.store import epochs
from horae.store.fleet.reattach import Reattachment, reattach
from tests.store_contract.world import NAMESPACE, Worker, World, success


async def fail_over(world: World) -> int:
    return await world.store.write(lambda: epochs.begin_epoch(world.now(), detaches=True))


async def attachable(world: World, name: str = "w", *, concurrency: int = 100) -> Worker:
    presence = Register(protocol=1, worker=name, concurrency=concurrency, reattaches=True)
    return Worker(world, (await world.store.register(NAMESPACE, presence)).id)


async def attach(world: World, w: Worker, *held: Range) -> Reattachment | None:
    """Re-attach a session whose worker has got the answers that `w` counted, and holds these ranges."""
    body = Reattach(answered=[w.numbers[channel] for channel in range(CHANNELS)], held=list(held))
    return await world.store.write(lambda: reattach(w.session, body, {}, world.now(), world.rng, world.env.new_id))


def range_of(slice, lo=None, hi=None, attempt=None) -> Range:
    return Range(
        parcel=slice.parcel, lo=slice.lo if lo is None else lo, hi=slice.hi if hi is None else hi,
        attempt=slice.attempt if attempt is None else attempt,
    )  # fmt: skip


async def test_a_failover_detaches_sessions_that_can_re_attach_and_ends_the_others(world: World):
    old, drained = await world.worker("old"), await attachable(world, "drained")
    new = await attachable(world, "new")
    await world.store.ask_drain(drained.session)

    await fail_over(world)

    states = [(await world.store.session(w.session)).state for w in (old, drained, new)]
    assert states == ["closed", "detached-draining", "detached"]


async def test_a_label_does_not_stand_for_the_capability_to_re_attach(world: World):
    labelled = Register(protocol=1, worker="w", labels={"reattaches": "yes"})
    session = await world.store.register(NAMESPACE, labelled)

    await fail_over(world)

    assert (await world.store.session(session.id)).state == "closed"


async def test_a_detached_session_gets_no_work_and_reports_nothing(world: World):
    parcel = await world.parcel(await world.job(), 2)
    w = await attachable(world)
    (slice,) = await w.claim(1)
    await fail_over(world)

    assert (await w.report(success(slice), free=1)).decision == "detached"
    assert await world.store.answer_empty([(w.session, 0, 2)]) == {(w.session, 0): ("detached", False)}
    claimed = await world.store.claim_for_parked([w.parked(1, frozenset(await world.all_lanes()))], [], frozenset())
    assert claimed.running == []
    assert await world.states(parcel) == ["running", "queued"]


async def test_running_items_go_on_at_their_attempt_in_the_new_epoch(world: World):
    parcel = await world.parcel(await world.job(), 3)
    w = await attachable(world)
    (slice,) = await w.claim(3)
    epoch = await fail_over(world)

    done = await attach(world, w, range_of(slice))

    assert (done.epoch, done.stop) == (epoch, [])
    session = await world.store.session(w.session)
    assert (session.state, session.epoch) == ("live", epoch)
    assert await w.holds() == [slice]
    await w.report(success(slice))
    assert await world.history(parcel) == [(0, 3, "success", "")]


async def test_a_draining_session_goes_on_draining(world: World):
    w = await attachable(world)
    await fail_over(world)
    assert await world.store.ask_drain(w.session)

    await attach(world, w)

    assert (await world.store.session(w.session)).state == "draining"


async def test_items_that_the_worker_does_not_hold_go_back_without_a_charge(world: World):
    parcel = await world.parcel(await world.job(), 4)
    w = await attachable(world)
    (slice,) = await w.claim(4)
    await fail_over(world)
    other = await world.worker("other")

    await attach(world, w, range_of(slice, 1, 2), range_of(slice, 3, 4))

    assert await world.states(parcel) == ["queued", "running", "queued", "running"]
    assert {(s.attempt, s.failures, s.losses) for s in await world.on("queued")} == {(1, 0, 0)}
    assert [(s.lo, s.attempt) for s in await other.claim(4)] == [(0, 2), (2, 2)]


async def test_items_of_an_answer_that_did_not_arrive_are_granted_anew(world: World):
    await world.parcel(await world.job(delivery="at-most-once"), 1)
    w = await attachable(world)
    await w.claim(1)
    w.numbers[0] = 0  # the answer was lost
    await fail_over(world)

    await attach(world, w)

    (again,) = await w.claim(1, n=1)
    assert again.attempt == 2


async def test_an_item_that_may_run_once_and_whose_outcome_is_lost_fails(world: World):
    parcel = await world.parcel(await world.job(delivery="at-most-once"), 1)
    w = await attachable(world)
    await w.claim(1)
    await fail_over(world)

    await attach(world, w)

    assert await world.history(parcel) == [(0, 1, "failed", "delivery")]


async def test_held_items_that_are_not_the_sessions_are_to_be_stopped(world: World):
    """The claim of attempt 2 was lost with the old primary, and so was a whole parcel."""
    await world.parcel(await world.job(), 2)
    w = await attachable(world)
    (slice,) = await w.claim(2)
    await fail_over(world)
    unknown = Range(parcel=world.env.new_id(), lo=0, hi=1, attempt=1)

    done = await attach(world, w, range_of(slice, 0, 1), range_of(slice, 1, 2, attempt=2), unknown)

    assert done.stop == [range_of(slice, 1, 2, attempt=2), unknown]
    assert [(s.lo, s.hi) for s in await w.holds()] == [(0, 1)]


async def test_exchanges_go_on_with_the_numbers_that_the_worker_knows(world: World):
    await world.parcel(await world.job(), 2)
    w = await attachable(world)
    await w.claim(1)
    (slice,) = await w.claim(1)
    w.numbers[0] = 7  # the store has lost later exchanges
    await fail_over(world)

    await attach(world, w, *(range_of(held) for held in await w.holds()))

    assert (await w.exchange(n=9)).decision == "gap"
    assert (await w.report(success(slice), n=8)).decision == "answer"


async def test_a_repeated_re_attachment_changes_nothing(world: World):
    await world.parcel(await world.job(), 2)
    w = await attachable(world)
    (slice,) = await w.claim(1)
    await fail_over(world)
    await attach(world, w, range_of(slice))
    await w.claim(1, channel=1)
    late = Worker(world, w.session)

    done = await attach(world, late, range_of(slice))

    assert done.stop == []
    assert len(await w.holds()) == 2
    assert (await w.exchange(channel=1)).decision == "answer"


async def test_an_ended_session_cannot_re_attach(world: World):
    w, unknown = await attachable(world), Worker(world, world.env.new_id())
    await fail_over(world)
    await w.lose()

    assert await attach(world, w) is None
    assert await attach(world, unknown) is None


async def test_a_detached_session_whose_worker_is_gone_is_charged_nothing(world: World):
    parcel = await world.parcel(await world.job(), 2)
    w = await attachable(world)
    await w.claim(2)
    await fail_over(world)
    assert await world.store.rescue(w.session, 10) is None

    await w.lose()

    assert (await world.store.session(w.session)).state == "closed"
    await world.store.rescue(w.session, 10, charge=False)
    assert [s.losses for s in await world.on("queued", parcel)] == [0]


async def test_a_restore_ends_detached_sessions(world: World):
    w = await attachable(world)
    await fail_over(world)

    await world.store.write(lambda: epochs.begin_epoch(world.now()))

    assert (await world.store.session(w.session)).state == "closed"
    assert await attach(world, w) is None
