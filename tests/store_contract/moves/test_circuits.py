"""Circuits in the store: claims check them, counts open and close them, and waiting executions are released."""

from typing import Any
from uuid import UUID

from msgspec import structs

from horae.env import SECOND
from horae.model.admission.circuit import Circuit, CircuitChange, ParcelAttempts
from horae.model.admission.keys import EnvelopeKeys, encode_keys
from horae.model.admission.limits import KeyLimit, key_name
from horae.model.base.ids import execution_id
from horae.model.executions.submission import Submission
from horae.store.admission import circuit_gates, circuit_reads, circuits
from tests.store_contract.world import TestJob, World, failed, rank, success

CIRCUIT = Circuit(failures=50, minimum=4, open_for=30 * SECOND)
SERVER = UUID(int=7)


async def submitted(world: World, job: TestJob, n: int = 1, key: str = "") -> UUID:
    """Submit executions of one parcel that belong to a circuit."""
    wanted = [
        structs.replace(one, envelope=structs.replace(one.envelope, keys=encode_keys(EnvelopeKeys(circuit=key))))
        for one in world.wanted(job, n)
    ]
    done = await world.store.submit([Submission(executions=wanted)])
    return done.parcels[0].id


async def force(world: World, job: TestJob, change: CircuitChange | None, key: str = "") -> Any:
    return await world.store.change(lambda now: circuits.force((job.id, key), change, "key:1", now))


async def feed(world: World, job: TestJob, ok: int, failed: int, parcel: UUID | None = None) -> list[str]:
    told = [ParcelAttempts(parcel or world.env.new_id(), job.id, ok, failed)]
    return [s.state for s in await world.store.change(lambda now: circuits.count_attempts(SERVER, told, now))]


async def turn(world: World) -> list[str]:
    return [standing.state for standing in await world.store.change(circuits.advance)]


async def let_go(world: World, job: TestJob, key: str = "", limit: int = 100) -> int:
    count: int = await world.store.change(lambda now: circuit_gates.release_waiting((job.id, key), limit, now))
    if count:
        await world.store.promote_due(0, 100, rank)
    return count


async def standing(world: World, job: TestJob, key: str = "") -> Any:
    return await world.store.read(lambda: circuit_reads.status_of((job.id, key)))


async def test_an_open_circuit_stops_starts_until_it_is_reset(world: World):
    job, other = await world.job(circuit=CIRCUIT), await world.job("other")
    parcel, beside = await submitted(world, job, 3), await world.parcel(other)
    worker = await world.worker()
    await force(world, job, CircuitChange("open", "deploy"))

    assert [slice.parcel for slice in await worker.claim(10)] == [beside]
    (waiting,) = await world.on("waiting")
    assert (waiting.parcel, waiting.lo, waiting.hi, waiting.reason) == (parcel, 0, 3, "circuit")
    assert await world.store.read(circuit_gates.gates) == [(job.id, "")]
    assert await let_go(world, job) == 0

    await force(world, job, None)
    assert await let_go(world, job) == 3
    assert [slice.parcel for slice in await worker.claim(10)] == [parcel]
    assert await world.store.read(circuit_gates.gates) == []


async def test_a_key_has_a_circuit_of_its_own(world: World):
    job = await world.job(circuit=structs.replace(CIRCUIT, key="${params.host}"))
    one, two = await submitted(world, job, key="one"), await submitted(world, job, key="two")
    worker = await world.worker()
    assert await feed(world, job, 0, 4, parcel=one) == ["open"]

    assert [slice.parcel for slice in await worker.claim(10)] == [two]
    assert (await standing(world, job, "one")).state == "open"
    assert (await standing(world, job, "two")).state == "closed"


async def test_a_circuit_opens_by_the_counts_of_all_servers_in_its_window(world: World):
    job = await world.job(circuit=CIRCUIT)
    assert await feed(world, job, 2, 1) == []
    world.clock.advance(20 * SECOND)
    assert await feed(world, job, 0, 1) == ["open"]
    found = await standing(world, job)
    assert (found.cause, found.until) == ("2 of 4 attempts failed within 1m.", world.now() + 30 * SECOND)
    assert found.by == ""


async def test_attempts_before_the_window_do_not_count(world: World):
    job = await world.job(circuit=CIRCUIT)
    assert await feed(world, job, 0, 3) == []
    world.clock.advance(70 * SECOND)
    assert await feed(world, job, 0, 3) == []
    assert await feed(world, job, 0, 1) == ["open"]


async def test_only_probes_run_in_a_half_open_circuit_and_they_close_it(world: World):
    job = await world.job(circuit=structs.replace(CIRCUIT, probes=2))
    parcel = await submitted(world, job, 5)
    worker = await world.worker()
    assert await feed(world, job, 0, 4) == ["open"]
    assert await worker.claim(10) == []
    assert await turn(world) == []
    world.clock.advance(30 * SECOND)
    assert await turn(world) == ["half-open"]

    assert await let_go(world, job) == 2
    assert await let_go(world, job) == 0, "two are under way"
    later = await submitted(world, job)
    probes = await worker.claim(10)
    assert [(slice.parcel, slice.lo, slice.hi) for slice in probes] == [(parcel, 0, 2)]
    assert {slice.parcel for slice in await world.on("waiting")} == {parcel, later}
    await worker.report(*map(success, probes))
    assert await feed(world, job, 1, 0) == []
    assert await feed(world, job, 1, 0) == ["closed"]

    assert await let_go(world, job) == 4
    assert sum(slice.hi - slice.lo for slice in await worker.claim(10)) == 4


async def test_a_failed_probe_opens_the_circuit_again(world: World):
    job = await world.job(circuit=CIRCUIT)
    await submitted(world, job, 2)
    worker = await world.worker()
    await feed(world, job, 0, 4)
    await worker.claim(10)
    world.clock.advance(30 * SECOND)
    await turn(world)
    await let_go(world, job)
    (probe,) = await worker.claim(10)
    await worker.report(failed(probe), policies=job.policy)

    assert [(one.ok, one.failed) for one in worker.effects.attempted] == [(0, 1)]
    assert await feed(world, job, 0, 1) == ["open"]
    assert (await standing(world, job)).until == world.now() + 30 * SECOND
    assert (await standing(world, job)).probes == ()


async def test_a_deleted_probe_is_replaced(world: World):
    job = await world.job(circuit=CIRCUIT)
    parcel = await submitted(world, job, 3)
    worker = await world.worker()
    await feed(world, job, 0, 4)
    await worker.claim(10)
    world.clock.advance(30 * SECOND)
    await turn(world)
    assert await let_go(world, job) == 1
    await world.store.cancel(parcel, 0, "")
    assert await let_go(world, job) == 1
    assert (await standing(world, job)).probes == (execution_id(parcel, 1),)


async def test_reports_count_attempts_only_for_jobs_with_a_circuit(world: World):
    job, other = await world.job(circuit=CIRCUIT), await world.job("other")
    parcel = await submitted(world, job, 3)
    await world.parcel(other, 3)
    worker = await world.worker()
    held = await worker.claim(10)
    await worker.report(*(success(slice) for slice in held))
    assert worker.effects.attempted == [ParcelAttempts(parcel, job.id, 3, 0)]


async def test_a_lost_worker_does_not_count_as_a_failure(world: World):
    job = await world.job(circuit=CIRCUIT, delivery="at-most-once")
    await submitted(world, job)
    worker = await world.worker()
    await worker.claim(1)
    await worker.lose()
    effects = await world.store.rescue(worker.session, 10)
    assert effects is not None
    assert effects.attempted == []


async def test_a_manually_closed_circuit_does_not_open_until_it_is_reset(world: World):
    job = await world.job(circuit=CIRCUIT)
    await force(world, job, CircuitChange("closed", "expected"))
    assert await feed(world, job, 0, 100) == []
    await force(world, job, None)
    assert await feed(world, job, 0, 3) == [], "counted anew"
    assert await feed(world, job, 0, 1) == ["open"]
    changes = await world.store.read(lambda: circuit_reads.changes_of(job.id, 10))
    assert [(one.state, one.forced, one.by) for one in changes] == [
        ("open", False, ""), ("closed", False, "key:1"), ("closed", True, "key:1"),
    ]  # fmt: skip


async def test_a_manually_opened_circuit_stays_open(world: World):
    job = await world.job(circuit=CIRCUIT)
    await force(world, job, CircuitChange("open", "deploy"))
    world.clock.advance(3600 * SECOND)
    assert await turn(world) == []
    await force(world, job, CircuitChange("open", "deploy", world.now() + SECOND))
    world.clock.advance(SECOND)
    assert await turn(world) == ["half-open"]


async def test_a_circuit_that_the_job_no_longer_has_is_closed(world: World):
    job = await world.job(circuit=CIRCUIT)
    await force(world, job, CircuitChange("open", "deploy"))
    await world.do("UPDATE jobs SET state = 'deleted' WHERE id = $1", job.id)
    assert await turn(world) == ["closed"]
    await world.do("UPDATE jobs SET state = 'active' WHERE id = $1", job.id)


async def test_nothing_is_handed_over_past_a_circuit(world: World):
    job = await world.job(circuit=CIRCUIT)
    worker = await world.worker()
    keys = encode_keys(EnvelopeKeys(circuit=""))
    wanted = [structs.replace(one, envelope=structs.replace(one.envelope, keys=keys)) for one in world.wanted(job)]
    taker = worker.parked(5, frozenset({job.lane}))
    done = await world.store.submit([Submission(executions=wanted)], [taker])
    assert done.running == []
    assert len(await world.on("queued")) == 1


async def test_old_counts_and_changes_are_forgotten(world: World):
    job = await world.job(circuit=CIRCUIT)
    await feed(world, job, 0, 4)
    await force(world, job, None)
    later = world.now() + 1
    await world.store.write(lambda: circuit_reads.forget(later, later))
    assert await world.rows("SELECT 1 FROM circuit_counts UNION ALL SELECT 1 FROM circuit_changes") == []
    assert await world.rows("SELECT 1 FROM circuits") == []


async def test_executions_that_wait_for_a_circuit_release_their_key(world: World):
    job = await world.job(circuit=CIRCUIT, limits=(KeyLimit(key="k", concurrency=1),))
    key = key_name(job.id, "k", "k")

    async def submit(circuit: str | None) -> UUID:
        keys = encode_keys(EnvelopeKeys(circuit=circuit, limits=(key,)))
        wanted = [structs.replace(one, envelope=structs.replace(one.envelope, keys=keys)) for one in world.wanted(job)]
        return (await world.store.submit([Submission(executions=wanted)])).parcels[0].id

    held, other = await submit(""), await submit(None)
    assert [slice.parcel for slice in await world.on("queued")] == [held]
    await force(world, job, CircuitChange("open", "deploy"))
    worker = await world.worker()
    await worker.claim(10)
    assert [slice.parcel for slice in await world.on("queued")] == [other]
    (running,) = await worker.claim(10)
    await force(world, job, None)
    assert await let_go(world, job) == 1
    assert [slice.reason for slice in await world.on("waiting")] == ["limit"]
    await worker.report(success(running))
    assert [slice.parcel for slice in await world.on("queued")] == [held]
