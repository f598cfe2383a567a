"""The daily statements of jobs with circuits."""

from uuid import UUID

from msgspec import structs

from horae.env import SECOND
from horae.model.admission.circuit import Circuit, CircuitChange, ParcelAttempts
from horae.model.admission.claim_plan import LaneState
from horae.model.admission.keys import EnvelopeKeys, encode_keys
from horae.model.executions.submission import Submission
from horae.store.admission import circuit_gates, circuit_reads, circuits
from tests.store_contract.world import World

SERVER = UUID(int=9)


async def fail_often(world: World) -> None:
    """Open the circuit of a key, probe it, force it, and close it."""
    circuit = Circuit(minimum=1, key="${params.host}", open_for=SECOND)
    job = await world.job("breaks", queue="breaks", circuit=circuit)
    which, keys = (job.id, "a"), encode_keys(EnvelopeKeys(circuit="a"))
    wanted = [structs.replace(one, envelope=structs.replace(one.envelope, keys=keys)) for one in world.wanted(job, 2)]
    (parcel,) = (await world.store.submit([Submission(executions=wanted)])).parcels
    failed, ended = [ParcelAttempts(parcel.id, job.id, 0, 1)], [ParcelAttempts(parcel.id, job.id, 1, 0)]
    await world.store.change(lambda now: circuits.count_attempts(SERVER, failed, now))
    worker = await world.worker("breaks")
    assert await worker.claim(5, views=[LaneState(lane=job.lane)]) == []
    world.clock.advance(SECOND)
    await world.store.change(circuits.advance)
    await world.store.read(circuit_gates.gates)
    for _ in range(2):
        await world.store.change(lambda now: circuit_gates.release_waiting(which, 5, now))
    await world.store.change(lambda now: circuits.count_attempts(SERVER, ended, now))
    await world.store.read(circuit_reads.shut)
    await world.store.change(lambda now: circuits.force(which, CircuitChange("open", ""), "", now))
    await world.store.change(lambda now: circuits.force(which, None, "", now))
    await world.store.change(lambda now: circuit_gates.release_waiting(which, 5, now))
    await world.store.cancel(parcel.id, 0, "")
    await world.store.cancel(parcel.id, 1, "")
    await worker.lose()
