"""The daily statements of durable executions that wait."""

from uuid import UUID

from horae.env import SECOND
from horae.model.admission.claim_plan import LaneState
from horae.model.executions.signal_waits import Signal
from horae.model.fleet.protocol import Await, Outcome
from horae.store.executions.durable import awaits, signals
from tests.store_contract.world import World


async def be_told(world: World) -> None:
    """Let an execution wait, get its signal, and wait again for a signal that was sent before."""
    job = await world.job("waits", queue="waits")
    parcel = await world.parcel(job)
    worker = await world.worker("waits")
    (slice,) = await worker.claim(1, views=[LaneState(lane=job.lane)])

    async def wait(step: str) -> None:
        body = Await(parcel=parcel, item=0, attempt=slice.attempt, step=step, signal="go", timeout=SECOND)
        await world.store.change(lambda now: signals.wait(worker.session, body, now))

    async def send(id: int) -> None:
        signal = Signal(id=UUID(int=id), name="go")
        await world.store.change(lambda now: signals.send(parcel, 0, signal, now))

    await send(1)
    await send(1)
    await wait("@wait:go")
    await wait("@wait:go#2")
    waits = ["@wait:go#2"]
    await worker.report(Outcome(parcel=parcel, lo=0, hi=1, attempt=slice.attempt, outcome="suspended", waits=waits))
    await world.store.read(lambda: awaits.of_item(parcel, 0))
    await send(2)
    await world.store.cancel(parcel, 0, "")
    await worker.lose()
