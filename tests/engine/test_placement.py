"""Placement: a worker gets executions that it has room for. Executions wait for a preferred worker, but not forever."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import msgspec
import pytest
from msgspec import Struct

from horae.engine.server_node import ServerNode
from horae.env import SECOND, Env
from horae.errors import BadInput
from horae.model.base.ids import parcel_of
from horae.model.fleet.protocol import Answer, Exchange, Grant, Outcome, Register
from horae.model.fleet.submit import Submit
from horae.store.contract import Store
from horae.store.driver import Driver


class Hand(Struct):
    """A worker that asks for work only when the test says so."""

    node: ServerNode
    session: UUID
    n: int = 0

    async def ask(self, free: int = 1, room: Mapping[str, int] | None = None, **more: Any) -> list[Grant]:
        await self.node.base.directory.step()
        self.n += 1
        up = Exchange(channel=0, n=self.n, free=free, room=dict(room or {}), **more)
        return msgspec.json.decode(await self.node.gateway.exchange(1, self.session, up), type=Answer).slices

    async def finish(self, *grants: Grant) -> None:
        outcomes = [Outcome(parcel=g.parcel, lo=g.lo, hi=g.hi, attempt=g.attempt, outcome="success") for g in grants]
        await self.ask(0, outcomes=outcomes)


class Place:
    """A server with services that the test steps."""

    def __init__(self, node: ServerNode) -> None:
        self.node = node

    async def job(self, name: str = "job", **fields: Any) -> None:
        await self.node.definitions.jobs.create(1, {"name": name, "command": "true", **fields})

    async def submit(self, name: str = "job", **params: Any) -> UUID:
        wish = Submit(job=name, params=msgspec.Raw(msgspec.json.encode(params)))
        (receipt,) = await self.node.submitter.submit(1, [wish], origin="submit")
        return parcel_of(receipt.execution_id)

    async def worker(self, name: str, slots: int = 4, protocol: int = 2, **presence: Any) -> Hand:
        register = Register(protocol=protocol, worker=name, host="h", concurrency=slots, **presence)
        return Hand(self.node, (await self.node.gateway.register(1, register)).session_id)

    async def pass_time(self, seconds: float) -> None:
        self.node.env.clock.advance(int(seconds * SECOND))
        await self.look()

    async def look(self) -> None:
        await self.node.base.directory.step()
        while await self.node.admission.placer.step() == 0.0:
            await self.node.base.directory.step()


@pytest.fixture
async def place(driver: Driver, env: Env, world: object) -> Place:
    node = ServerNode(env, Store(driver, env))
    await node.prepare()
    return Place(node)


def parcels(grants: list[Grant]) -> list[UUID]:
    return [grant.parcel for grant in grants]


async def test_an_execution_without_room_lets_others_pass(place: Place):
    await place.job("wide", slots=3, resources={"memory": "2GiB"})
    await place.job("slim")
    wide, slim = await place.submit("wide"), await place.submit("slim")
    worker = await place.worker("w1", resources={"memory": 4 << 30})

    assert parcels(await worker.ask(2, {"memory": 4 << 30})) == [slim]
    assert parcels(await worker.ask(3, {"memory": 1 << 30})) == []
    assert parcels(await worker.ask(3, {"memory": 2 << 30})) == [wide]


async def test_a_worker_that_is_too_small_or_too_old_never_gets_it(place: Place):
    await place.job(slots=3, resources={"gpu": 1})
    parcel = await place.submit()
    small = await place.worker("small", 2, resources={"gpu": 1})
    bare = await place.worker("bare", 4)
    old = await place.worker("old", 4, protocol=1)
    fit = await place.worker("fit", 4, resources={"gpu": 1})

    for worker in (small, bare, old):
        assert await worker.ask(4, {"gpu": 9}) == [], "even if it reports enough room"
    assert parcels(await fit.ask(4, {"gpu": 1})) == [parcel]


async def test_a_job_is_pinned_by_the_labels_that_every_worker_has(place: Place):
    await place.job("here", needs=["worker=w2"])
    await place.job("there", needs=["host=h"])
    here, there = await place.submit("here"), await place.submit("there")
    first, second = await place.worker("w1"), await place.worker("w2")

    assert parcels(await first.ask(4)) == [there]
    assert parcels(await second.ask(4)) == [here]


async def test_a_preferred_worker_is_waited_for_until_patience_ends(place: Place):
    await place.job(prefers=[{"label": "zone=eu", "patience": "5s"}])
    far, near = await place.worker("far"), await place.worker("near", labels={"zone": "eu"})
    first, second = sorted([await place.submit(), await place.submit()])  # submitted at one instant: their ids decide
    await place.look()

    assert parcels(await near.ask(1)) == [first]
    assert await far.ask() == []
    await place.pass_time(4.9)
    assert await far.ask() == []
    await place.pass_time(0.2)
    assert parcels(await far.ask()) == [second]


async def test_lanes_that_take_long_to_check_are_checked_less_often(place: Place, monkeypatch):
    await place.job(prefers=[{"label": "zone=eu", "patience": "1h"}])
    await place.worker("near", labels={"zone": "eu"})
    await place.submit()
    await place.look()
    placer, clock = place.node.admission.placer, place.node.env.clock
    assert await placer.step() == 1

    async def slow(_: object) -> float:
        clock.advance(3 * SECOND)
        return 0.5

    monkeypatch.setattr(placer, "_check", slow)
    assert await placer.step() == 12


async def test_a_preference_that_no_worker_meets_is_not_waited_for(place: Place):
    await place.job(prefers=[{"label": "zone=eu", "patience": "1h"}])
    far = await place.worker("far")
    parcel = await place.submit()
    assert await far.ask() == []
    await place.look()

    assert parcels(await far.ask()) == [parcel]


async def test_a_preferred_worker_that_left_is_not_waited_for(place: Place):
    await place.job(prefers=[{"label": "zone=eu", "patience": "1h"}])
    far, near = await place.worker("far"), await place.worker("near", labels={"zone": "eu"})
    parcel = await place.submit()
    await place.look()
    assert await far.ask() == []
    await place.node.gateway.close(1, near.session)
    await place.look()

    assert parcels(await far.ask()) == [parcel]


async def test_the_heavier_of_two_conflicting_preferences_is_waited_for(place: Place):
    await place.job(prefers=[
        {"label": "gpu", "weight": 5, "patience": "1m"}, {"label": "zone=eu", "weight": 1, "patience": "1m"},
    ])  # fmt: skip
    east, fast = await place.worker("east", labels={"zone": "eu"}), await place.worker("fast", labels={"gpu": ""})
    parcel = await place.submit()
    await place.look()

    assert await east.ask() == []
    assert parcels(await fast.ask()) == [parcel]


async def test_a_hand_back_does_not_extend_patience(place: Place):
    await place.job(prefers=[{"label": "zone=eu", "patience": "5s"}])
    far, near = await place.worker("far"), await place.worker("near", labels={"zone": "eu"})
    parcel = await place.submit()
    await place.look()
    (grant,) = await near.ask()
    back = Outcome(parcel=parcel, lo=0, hi=1, attempt=grant.attempt, outcome="released")
    await near.ask(0, outcomes=[back])
    await place.pass_time(4.9)
    assert await far.ask() == []
    await place.pass_time(0.2)

    assert parcels(await far.ask()) == [parcel]


def count(grants: list[Grant]) -> int:
    return sum(grant.hi - grant.lo for grant in grants)


async def test_spread_executions_are_shared_evenly_between_workers(place: Place):
    await place.job(spread=True)
    first, second, third = [await place.worker(f"w{n}", 50) for n in range(3)]
    for _ in range(9):
        await place.submit()
    await place.look()

    assert [count(await worker.ask(50)) for worker in (first, first, second, third)] == [3, 0, 3, 3]
    for _ in range(3):
        await place.submit()
    assert [count(await worker.ask(50)) for worker in (second, third, first)] == [1, 1, 1]


async def test_spread_executions_do_not_wait_long_for_absent_workers(place: Place):
    await place.job(spread=True)
    first, _ = await place.worker("w1", 50), await place.worker("w2", 50)
    for _ in range(4):
        await place.submit()
    await place.look()
    assert count(await first.ask(50)) == 2
    await place.pass_time(4.9)
    assert count(await first.ask(50)) == 0
    await place.pass_time(0.2)

    assert count(await first.ask(50)) == 2


async def test_full_workers_get_no_spread_executions(place: Place):
    await place.job("other")
    await place.job(spread=True)
    first, full = await place.worker("w1", 8), await place.worker("w2", 1)
    await place.submit("other")
    assert count(await full.ask()) == 1
    for _ in range(4):
        await place.submit()
    await place.look()

    assert count(await first.ask(8)) == 4


async def test_a_worker_is_reserved_for_an_execution_that_was_passed_over_too_long(place: Place):
    await place.job("wide", slots=4)
    await place.job("slim")
    busy, idle = await place.worker("w1"), await place.worker("w2")
    for _ in range(5):
        await place.submit("slim")
    held = await busy.ask(3)
    (other,) = await idle.ask(1)
    wide = await place.submit("wide")
    await place.pass_time(29)
    await place.node.admission.reserver.step()
    assert count(await idle.ask(1)) == 1
    await place.submit("slim")
    await place.pass_time(1.1)
    await place.node.admission.reserver.step()

    assert await idle.ask(2) == [], "the least loaded worker keeps its room"
    assert count(await busy.ask(1)) == 1, "others do not"
    await idle.finish(other)
    assert parcels(await idle.ask(4)) == [wide]
    await place.pass_time(1)
    await place.node.admission.reserver.step()
    await place.submit("slim")
    assert count(await idle.ask(1)) == 1, "the reservation ends when the execution is granted"
    assert held


async def test_a_reservation_in_vain_ends(place: Place):
    await place.job("wide", slots=4)
    await place.job("slim")
    worker = await place.worker("w1")
    await place.submit("slim")
    await worker.ask(1)
    await place.submit("wide")
    await place.pass_time(31)
    await place.node.admission.reserver.step()
    await place.submit("slim")
    assert await worker.ask(3) == []
    await place.pass_time(301)
    await place.node.admission.reserver.step()
    assert count(await worker.ask(3)) == 1
    await place.pass_time(61)
    await place.node.admission.reserver.step()
    await place.submit("slim")

    assert await worker.ask(2) == []


async def test_needs_that_no_worker_ever_had_are_accepted_and_warned_about(place: Place):
    view = await place.node.definitions.jobs.create(
        1, {"name": "job", "command": "true", "needs": ["gpu=h100"], "slots": 9, "resources": {"memory": 7}}
    )
    said = "No worker has ever had gpu=h100 and 9 slots and 7 memory: executions stay queued until one does."
    assert view.notes[0] == said
    await place.submit()
    assert await place.node.warning(1, "job") == said

    worker = await place.worker("w1", 9, labels={"gpu": "h100"}, resources={"memory": 8})
    await place.node.gateway.close(1, worker.session)
    await place.pass_time(6)

    assert await place.node.warning(1, "job") is None, "a worker had them and has left"
    assert (await place.node.definitions.jobs.get(1, "job")).notes == []
    await place.job("plain")
    await place.submit("plain")
    assert await place.node.warning(1, "plain") is None


async def test_an_affinity_key_returns_to_its_last_worker_if_it_has_a_slot_in_time(place: Place):
    await place.job(affinity={"key": "${params.model}", "patience": "5s"})
    first, second = await place.worker("w1"), await place.worker("w2")
    await place.submit(model="a")
    await place.look()
    (grant,) = await first.ask()
    again, new = await place.submit(model="a"), await place.submit(model="b")
    await place.look()

    assert parcels(await second.ask(4)) == [new]
    assert parcels(await first.ask(4)) == [again]
    late = await place.submit(model="a")
    await place.look()
    await place.pass_time(4.9)
    assert await second.ask(4) == []
    await place.pass_time(0.2)
    assert parcels(await second.ask(4)) == [late]
    await place.submit(model="a")
    await place.look()
    assert await first.ask(4) == [], "the other worker had its key last"
    await place.node.gateway.close(1, second.session)
    await place.look()
    assert count(await first.ask(4)) == 1
    await first.finish(grant)


async def test_an_affinity_that_cannot_be_made_refuses_the_submission_and_no_fire(place: Place):
    await place.job(affinity="${params.model}", schedule={"every": "10s"})
    with pytest.raises(BadInput, match="affinity"):
        await place.submit(other=1)
    worker = await place.worker("w1")
    await place.pass_time(10)
    await place.node.firing.scheduler.step()
    await place.look()

    assert count(await worker.ask()) == 1
