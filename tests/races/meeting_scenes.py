"""Scenes of deduplication: a key stands for one execution, and a window takes each submission once."""

from typing import Any
from uuid import UUID

import msgspec

from horae.errors import OverQuota
from horae.model.admission.quota import QuotaBounds
from horae.model.base.ids import index_of, parcel_of
from horae.model.executions import submission
from horae.model.executions.deduplication import Batch, Debounce, DeduplicationKey, Unique
from horae.model.executions.submission import NewExecution, Receipt
from horae.store.executions.deduplication import key_expiry
from horae.store.executions.entering import submit
from tests.races.scenes import MINUTE, Cast, cast, scene
from tests.races.stage import Move, Scene
from tests.store_contract.world import World, success

WINDOW = Debounce(wait=MINUTE)


def asked(c: Cast, rule: Any, key: str = "k", item: bytes = b"{}") -> NewExecution:
    (one,) = c.world.wanted(c.job)
    return msgspec.structs.replace(one, deduplication=(DeduplicationKey(rule, key),), item=item)


async def begin(c: Cast, *executions: NewExecution) -> Receipt:
    """Submit before the scene begins, and return the first receipt."""
    done = await c.world.store.submit([submission.Submission(executions=list(executions))])
    return done.answers[0][0]


def receipt(results: list[Any]) -> Receipt:
    """Return the answer to the first submission of a side."""
    return results[0].answers[0][0]


async def params(world: World, id: UUID) -> Any:
    (parcel,) = await world.store.parcels([parcel_of(id)])
    return msgspec.json.decode(parcel.items.one(index_of(id)))


async def one_stands_for_both(world: World, left: list[Any], right: list[Any]) -> None:
    ids = {receipt(left).execution_id, receipt(right).execution_id}
    assert len(ids) == 1, "one key stands for two executions"
    assert [receipt(side).deduplicated for side in (left, right)].count(False) == 1
    assert len(await on_shelves(world)) == 1, "two executions of one key are live"


async def on_shelves(world: World) -> list[UUID]:
    found: list[UUID] = []
    for shelf in ("waiting", "queued", "running"):
        found += [slice.parcel for slice in await world.on(shelf) for _ in range(slice.lo, slice.hi)]
    return found


@scene("submit / submit, one key of a job while live")
async def _(world: World) -> Scene:
    c = await cast(world)
    return Scene(left=[c.submit(asked(c, Unique()))], right=[c.submit(asked(c, Unique()))], check=one_stands_for_both)


@scene("submit / submit, a key of a job whose execution has ended")
async def _(world: World) -> Scene:
    c = await cast(world)
    await begin(c, asked(c, Unique()))
    w = await world.worker()
    (slice,) = await w.claim(1)
    await w.report(success(slice))
    return Scene(left=[c.submit(asked(c, Unique()))], right=[c.submit(asked(c, Unique()))], check=one_stands_for_both)


@scene("submit / report, a key of a job while live")
async def _(world: World) -> Scene:
    c = await cast(world)
    first = await begin(c, asked(c, Unique()))
    w = await world.worker()
    (slice,) = await w.claim(1)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        answer = receipt(left)
        assert answer.deduplicated == (answer.execution_id == first.execution_id)
        assert len(await on_shelves(world)) == (0 if answer.deduplicated else 1)

    return Scene(left=[c.submit(asked(c, Unique()))], right=[c.report(w, success(slice))], check=check)


@scene("submit, the latest of a key / claim")
async def _(world: World) -> Scene:
    c = await cast(world)
    first = await begin(c, asked(c, Unique(keep="latest")))
    w = await world.worker()

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        answer = receipt(left)
        assert await on_shelves(world) == [parcel_of(answer.execution_id)], "two executions of one key are live"
        assert answer.deduplicated == (answer.execution_id == first.execution_id)

    return Scene(left=[c.submit(asked(c, Unique(keep="latest")))], right=[c.claim(w)], check=check)


@scene("debounce / promote")
async def _(world: World) -> Scene:
    c = await cast(world)
    first = await begin(c, asked(c, Debounce(wait=1), item=b'{"n":1}'))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        answer = receipt(left)
        assert await params(world, answer.execution_id) == {"n": 2}, "a submission is lost"
        queued = {slice.parcel for slice in await world.on("queued")}
        if answer.execution_id == first.execution_id:
            assert not queued, "a window was changed after it had closed"
        else:
            assert queued == {first.execution_id}
            assert await params(world, first.execution_id) == {"n": 1}, "params changed while a worker held them"

    return Scene(left=[c.submit(asked(c, WINDOW, item=b'{"n":2}'))], right=[c.promote()], check=check, patient="L")


@scene("batch / batch")
async def _(world: World) -> Scene:
    c = await cast(world)
    rule = Batch(size=3, wait=MINUTE)
    await begin(c, asked(c, rule, item=b"0"))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        for side, item in ((left, 1), (right, 2)):
            answer = receipt(side)
            assert (await params(world, answer.execution_id))["items"][answer.index] == item, "an item is lost"
        assert len(await on_shelves(world)) == 1

    return Scene(left=[c.submit(asked(c, rule, item=b"1"))], right=[c.submit(asked(c, rule, item=b"2"))], check=check)


@scene("submit / sweep, a key of a job whose execution has ended")
async def _(world: World) -> Scene:
    c = await cast(world)
    first = await begin(c, asked(c, Unique()))
    await world.store.cancel(parcel_of(first.execution_id), 0, "")
    sweep = Move("forget", lambda: key_expiry.forget(key_expiry.START, 100, c.now))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        rows = await world.rows("SELECT execution FROM meetings")
        assert rows == [(receipt(left).execution_id,)], "a key is deleted while its execution is live"

    return Scene(left=[c.submit(asked(c, Unique()))], right=[sweep], check=check, patient="L")


@scene("submit / submit, room for one")
async def _(world: World) -> Scene:
    c = await cast(world)
    bounds = QuotaBounds(queues={c.job.queue: ("default", 1)})

    def bounded() -> Move:
        wanted = [submission.Submission(executions=c.world.wanted(c.job))]
        return Move("submit", lambda: submit.submit(wanted, c.new_id, c.now, bounds), refusals=(OverQuota,))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert sum(isinstance(result, OverQuota) for result in left + right) == 1
        assert len(await on_shelves(world)) == 1, "a queue holds more than its bound"

    return Scene(left=[bounded()], right=[bounded()], check=check)
