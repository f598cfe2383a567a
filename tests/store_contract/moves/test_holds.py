"""Holds: while a hold lasts, nothing of its queue or namespace is granted; each hold ends once."""

import msgspec
import pytest

from horae.env import SECOND
from horae.errors import Conflict
from horae.model.admission.hold import NEVER, Hold
from horae.model.base.instant import format_instant
from horae.model.triggers.calendars.read import parse_times
from horae.model.triggers.calendars.resolve import current_calendar
from horae.store.admission import holds
from horae.store.base import locks
from horae.store.script import Script
from horae.store.triggers import calendars
from tests.store_contract.world import NAMESPACE, TestJob, World, spans, success

MINUTE = 60 * SECOND


def hold(world: World, job: TestJob | None = None, **more: object) -> Hold:
    """Create a hold of a job's queue, or of the whole namespace, for a minute."""
    now = world.now()
    fields = {"until_at": now + MINUTE, "created_at": now, "created_by": "key:1", "reason": "deploy", **more}
    return Hold(id=world.env.new_id(), namespace=NAMESPACE, queue=job and job.queue, **fields)  # type: ignore[arg-type]


async def opened(world: World, job: TestJob | None = None, **more: object) -> Hold:
    made = hold(world, job, **more)
    return await world.store.write(lambda: holds.open_hold(made))


async def turn(world: World) -> holds.AdvancedHolds:
    now = world.now()
    return await world.store.write(lambda: holds.advance(now))


async def put_calendar(world: World, name: str, definition: dict[str, object]) -> None:
    now = world.now()
    text = msgspec.json.encode(definition).decode()

    def script() -> Script[None]:
        yield from locks.take(locks.of_calendars(NAMESPACE))
        yield from calendars.put(NAMESPACE, name, text, "", now)

    await world.store.write(script)


def hours(first: int, last: int, at: int) -> dict[str, object]:
    """Create a calendar that is open between two minutes after an instant."""
    start, end = at + first * MINUTE, at + last * MINUTE
    return {"windows": [f"{format_instant(start)}/{format_instant(end)}"]}


@pytest.mark.parametrize("whole", [False, True], ids=["queue", "namespace"])
async def test_held_queues_are_not_claimed_from(world: World, whole: bool):
    job = await world.job()
    await world.parcel(job, 3)
    w = await world.worker()
    await opened(world, None if whole else job)

    assert await w.claim(5) == []
    assert w.marks == {job.lane: None}
    parked = await world.store.claim_for_parked([w.parked(5, frozenset({job.lane}))], await world.views(), frozenset())

    assert parked.running == []
    assert spans(await world.on("queued")) == [(0, 3)]


@pytest.mark.parametrize("whole", [False, True], ids=["queue", "namespace"])
async def test_executions_of_held_queues_are_not_handed_over(world: World, whole: bool):
    job = await world.job()
    waiting = (await world.worker()).parked(5, frozenset({job.lane}))
    await opened(world, None if whole else job)

    done = await world.hand_over(job, 2, waiting)

    assert (done.running, done.lanes.keys()) == ([], {job.lane})
    assert spans(await world.on("queued")) == [(0, 2)]


async def test_lost_executions_do_not_begin_again_during_a_hold(world: World):
    job = await world.job()
    await world.parcel(job, 1)
    lost, w = await world.worker("lost"), await world.worker()
    await lost.claim(1)
    await opened(world, job)
    await lost.lose()
    await world.store.rescue(lost.session, 10)

    assert await w.claim(1) == []
    await world.store.write(lambda: holds.release(NAMESPACE, job.queue, None, "key:2", world.now()))

    assert spans(await w.claim(1)) == [(0, 1)]


async def test_a_hold_does_not_affect_another_queue(world: World):
    job, other = await world.job(), await world.job("other", queue="other")
    await world.parcel(job, 1)
    await world.parcel(other, 1)
    w = await world.worker()
    await opened(world, job)

    assert [slice.job for slice in await w.claim(5)] == [other.id]
    waiting = w.parked(5, frozenset({job.lane, other.lane}), n=2)

    assert [slice.job for slice in (await world.hand_over(other, 1, waiting)).running] == [other.id]


async def test_a_hold_does_not_affect_another_namespace(world: World):
    job = await world.job()
    await world.parcel(job, 1)
    elsewhere = hold(world, None)
    await world.store.write(lambda: holds.open_hold(msgspec.structs.replace(elsewhere, namespace=2)))

    assert spans(await (await world.worker()).claim(1)) == [(0, 1)]


async def test_running_executions_go_on_during_a_hold(world: World):
    job = await world.job()
    await world.parcel(job, 2)
    w = await world.worker()
    (slice,) = await w.claim(2)
    await opened(world, job, drain=True)

    assert await world.store.read(lambda: holds.running_by_queue(NAMESPACE)) == {job.queue: 2}
    await w.report(success(slice))

    assert await world.store.read(lambda: holds.running_by_queue(NAMESPACE)) == {}


async def test_a_planned_hold_holds_from_its_time_on(world: World):
    job = await world.job()
    await world.parcel(job, 2)
    w = await world.worker()
    await opened(world, job, from_at=world.now() + 10 * SECOND)

    assert spans(await w.claim(1)) == [(0, 1)]
    world.clock.advance(10 * SECOND)

    assert await w.claim(1) == []


async def test_a_hold_lasts_until_it_is_ended_and_ends_once(world: World):
    job = await world.job()
    await world.parcel(job, 1)
    w = await world.worker()
    made = await opened(world, job)
    world.clock.advance(60 * SECOND)

    assert await w.claim(1) == []  # a server whose clock is ahead does not end the hold
    turned = await turn(world)

    assert [one.id for one in turned.ended] == [made.id]
    assert not await turn(world)
    assert spans(await w.claim(1)) == [(0, 1)]
    (ended,) = await world.store.read(lambda: holds.of_namespace(NAMESPACE, 0))
    assert (ended.ended_at, ended.ended_by) == (made.until_at, None)


async def test_a_release_ends_holds_with_its_reason_and_records_the_user(world: World):
    job = await world.job()
    first, second = await opened(world, job), await opened(world, job, reason="backup")
    whole = await opened(world)
    now = world.now()

    released = await world.store.write(lambda: holds.release(NAMESPACE, job.queue, "deploy", "key:2", now))

    assert [(one.id, one.ended_at, one.ended_by) for one in released] == [(first.id, now, "key:2")]
    assert {one.id for one in await world.store.read(holds.all_open)} == {second.id, whole.id}
    released = await world.store.write(lambda: holds.release(NAMESPACE, None, None, "key:2", now))
    assert [one.id for one in released] == [whole.id]
    assert await world.store.write(lambda: holds.release(NAMESPACE, None, None, "key:2", now)) == []


async def test_the_same_reason_again_moves_the_end(world: World):
    job = await world.job()
    first = await opened(world, job)
    again = await opened(world, job, until_at=world.now() + 5 * MINUTE, drain=True)

    assert (again.id, again.until_at, again.drain) == (first.id, world.now() + 5 * MINUTE, True)
    assert await world.store.read(holds.all_open) == [again]


async def test_the_number_of_holds_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(holds, "MAX_HOLDS", 2)
    job = await world.job()
    for reason in ("a", "b"):
        await opened(world, job, reason=reason)

    with pytest.raises(Conflict):
        await opened(world, job, reason="c")
    await opened(world, job, reason="b")


async def test_ended_holds_are_deleted_after_a_month(world: World):
    job = await world.job()
    await opened(world, job)
    world.clock.advance(60 * SECOND)
    await turn(world)
    world.clock.advance(31 * 86_400 * SECOND)
    last = await opened(world, job)

    assert await world.store.read(lambda: holds.of_namespace(NAMESPACE, 0)) == [last]


async def test_a_window_goes_from_opening_to_opening(world: World):
    job = await world.job()
    begin = world.now() // SECOND * SECOND
    openings = [*hours(1, 2, begin)["windows"], *hours(5, 6, begin)["windows"]]  # type: ignore[misc]
    await put_calendar(world, "nights", {"windows": openings})
    made = await opened(world, job, calendar="nights", from_at=begin + MINUTE, until_at=begin + 2 * MINUTE, reason="")
    await world.parcel(job, 3)
    w = await world.worker()

    assert spans(await w.claim(1)) == [(0, 1)]
    world.clock.advance(60 * SECOND)
    assert await w.claim(1) == []
    world.clock.advance(60 * SECOND)
    assert [one.id for one in (await turn(world)).ended] == [made.id]
    assert spans(await w.claim(1)) == [(1, 2)]
    (window,) = await world.store.read(holds.all_open)
    assert (window.from_at, window.until_at) == (begin + 5 * MINUTE, begin + 6 * MINUTE)
    world.clock.advance(180 * SECOND)
    assert await w.claim(1) == []
    world.clock.advance(60 * SECOND)
    await turn(world)
    assert spans(await w.claim(1)) == [(2, 3)]
    (window,) = await world.store.read(holds.all_open)
    assert (window.from_at, window.until_at) == (NEVER, None)


async def test_a_window_with_an_unusable_calendar_holds_nothing_and_is_tried_again(world: World):
    job = await world.job()
    await world.parcel(job, 1)
    made = await opened(world, job, calendar="gone", until_at=world.now() + MINUTE)
    world.clock.advance(60 * SECOND)

    assert [one.id for one in (await turn(world)).troubled] == [made.id]
    assert spans(await (await world.worker()).claim(1)) == [(0, 1)]
    world.clock.advance(60 * SECOND)
    assert [one.id for one in (await turn(world)).troubled] == [made.id]


async def test_windows_follow_a_calendar_that_changes(world: World):
    job = await world.job()
    begin = world.now() // SECOND * SECOND
    await put_calendar(world, "nights", hours(1, 2, begin))
    await opened(world, job, calendar="nights", from_at=begin + MINUTE, until_at=begin + 2 * MINUTE)
    await put_calendar(world, "nights", hours(0, 9, begin))
    now, times = world.now(), parse_times(hours(0, 9, begin))

    await world.store.write(
        lambda: holds.follow(NAMESPACE, {"nights": current_calendar("nights", {"nights": times})}, now)
    )
    await world.parcel(job, 1)

    assert await (await world.worker()).claim(1) == []
    assert [queue for _, queue in await world.store.read(lambda: holds.windows_of(NAMESPACE, ["nights"]))] == [
        "default"
    ]
    assert await world.store.read(lambda: holds.windows_of(NAMESPACE, ["days"])) == []
