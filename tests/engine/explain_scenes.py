"""Scenes, one for every gate of executions: each closes its gate, then opens it by the blocker's remedy.

`SCENES` has one for each gate of executions in `model/executions/gates.py`;
tests/engine/test_explain.py plays them.
"""

from collections.abc import Awaitable, Callable, Mapping

from msgspec import Raw

from horae.engine.admission.holds import HoldRequest
from horae.env import SECOND
from horae.model.executions.explain_view import BlockerView
from horae.model.fleet.protocol import Function, Outcome
from horae.store.base import sealing
from horae.store.script import Fetch, Script, Statement
from tests.engine.explain_stage import Played, Stage
from tests.store_contract.world import NAMESPACE

Scene = Callable[[Stage], Awaitable[Played]]


async def nothing(blocker: BlockerView) -> None:
    """Do nothing: the gate opens by itself."""


async def delay(stage: Stage) -> Played:
    await stage.job()
    await stage.worker()
    return Played(await stage.submit(delay=60 * SECOND), nothing)


async def retry(stage: Stage) -> Played:
    await stage.job(retries=3)
    worker = await stage.worker()
    id = await stage.submit()
    assert await stage.starts(id)
    await worker.end("failed")
    return Played(id, nothing)


async def sleep(stage: Stage) -> Played:
    await stage.job(command=None, python="f", durable=True)
    worker = await stage.worker(functions=(Function(name="f"),))
    id = await stage.submit()
    assert await stage.starts(id)
    (held,) = worker.holds
    worker.holds = []
    wake_at = stage.world.now() + 30 * SECOND
    asleep = Outcome(parcel=held.parcel, lo=0, hi=1, attempt=held.attempt, outcome="suspended", wake_at=wake_at)
    await worker.ask(asleep, free=0)
    worker.free = 1
    return Played(id, nothing)


async def dependency(stage: Stage) -> Played:
    await stage.job("extract")
    await stage.job(dependencies=["extract"])
    worker = await stage.worker()
    id = await stage.submit(wait_for_dependencies=True)

    async def run(blocker: BlockerView) -> None:
        upstream = await stage.submit(blocker.details["job"])
        assert await stage.starts(upstream)
        await worker.end()

    return Played(id, run)


async def window(stage: Stage) -> Played:
    await stage.job(debounce={"wait": "10s"})
    await stage.worker()
    return Played(await stage.submit(), nothing)


async def overlap(stage: Stage) -> Played:
    await stage.job(schedule={"every": "10s", "overlap": "queueAll"})
    worker = await stage.worker()
    await stage.pass_time(10)
    (first,) = await stage.fire()
    assert await stage.starts(first)
    await stage.pass_time(10)
    second = (await stage.fire())[0]

    async def end(blocker: BlockerView) -> None:
        assert blocker.details["execution"] == str(first)
        await worker.end()

    return Played(second, end)


async def _one_holds(stage: Stage, **said: object) -> Played:
    """A second execution waits for the first one. The blocker names the first one, which then ends."""
    await stage.job(**said)
    worker = await stage.worker(slots=2)
    first, second = await stage.submit(), await stage.submit()
    assert await stage.starts(first)

    async def end(blocker: BlockerView) -> None:
        assert blocker.details["holders"] == [str(first)]
        await worker.end()

    return Played(second, end)


async def limit(stage: Stage) -> Played:
    limits = [{"key": "${params.customer}", "concurrency": 1}]
    return await _one_holds(stage, params={"customer": "acme"}, limits=limits)


async def sequence(stage: Stage) -> Played:
    return await _one_holds(stage, params={"account": 7}, sequence="${params.account}")


async def rate(stage: Stage) -> Played:
    await stage.job(rate="1/1m")
    await stage.worker(slots=2)
    assert await stage.starts(await stage.submit())
    second = await stage.submit()
    await stage.workers[0].ask()
    return Played(second, nothing)


async def queue_limit(stage: Stage) -> Played:
    await stage.node.admission.queues.put(NAMESPACE, "default", {"concurrency": 1})
    await stage.job()
    worker = await stage.worker(slots=2)
    assert await stage.starts(await stage.submit())
    second = await stage.submit()

    async def end(blocker: BlockerView) -> None:
        await worker.end()

    return Played(second, end)


async def namespace_limit(stage: Stage) -> Played:
    await stage.node.admission.quotas.put(NAMESPACE, "default", {"startsPerSecond": 0.1})
    await stage.job()
    await stage.worker(slots=2)
    assert await stage.starts(await stage.submit())
    second = await stage.submit()
    await stage.workers[0].ask()
    return Played(second, nothing)


async def paused(stage: Stage) -> Played:
    await stage.job()
    await stage.worker()
    await stage.node.definitions.jobs.pause(NAMESPACE, "job")
    await stage.look()
    id = await stage.submit()

    async def resume(blocker: BlockerView) -> None:
        await stage.node.definitions.jobs.resume(NAMESPACE, blocker.details["job"])

    return Played(id, resume)


async def circuit(stage: Stage) -> Played:
    await stage.job(circuit={"minimum": 1, "openFor": "1h"})
    worker = await stage.worker()
    assert await stage.starts(await stage.submit())
    await worker.end("failed")
    await stage.look()
    id = await stage.submit()
    await worker.ask()

    async def reset(blocker: BlockerView) -> None:
        assert blocker.details["cause"] == "1 of 1 attempts failed within 1m."
        await stage.node.admission.circuit_breakers.reset(NAMESPACE, blocker.details["job"], by="key:1")

    return Played(id, reset)


async def queue_paused(stage: Stage) -> Played:
    await stage.job()
    await stage.worker()
    await stage.node.admission.holds.pause(NAMESPACE, "default", "broken", False, "key:1")
    id = await stage.submit()

    async def resume(blocker: BlockerView) -> None:
        assert blocker.message == 'The queue "default" is paused (broken).'
        await stage.node.admission.holds.resume(NAMESPACE, blocker.details["queue"], "key:1")

    return Played(id, resume)


async def held(stage: Stage) -> Played:
    await stage.job()
    await stage.worker()
    await stage.node.admission.holds.open(NAMESPACE, "default", HoldRequest(length="30m", reason="deploy"), "key:1")
    id = await stage.submit()

    async def release(blocker: BlockerView) -> None:
        await stage.node.admission.holds.release(
            NAMESPACE, blocker.details["queue"], blocker.details["reason"], "key:1"
        )

    return Played(id, release)


async def no_worker(stage: Stage) -> Played:
    await stage.job(needs=["gpu=a100"])
    await stage.worker()
    id = await stage.submit()

    async def start(blocker: BlockerView) -> None:
        assert blocker.details["lacking"] == ["gpu=a100"]
        await stage.worker(labels=dict(need.split("=") for need in blocker.details["lacking"]))

    return Played(id, start)


async def queue_of_nobody(stage: Stage) -> Played:
    """No worker serves the queue."""
    await stage.job("far", queue="far")
    await stage.worker()
    id = await stage.submit("far")

    async def start(blocker: BlockerView) -> None:
        await stage.worker(queues=("far",))

    return Played(id, start)


async def no_key(stage: Stage) -> Played:
    """A master key that this server lacks has sealed a value in the store."""
    await stage.node.store.write(lambda: sealing.record_key("another", stage.world.now()))
    await stage.job(env={"TOKEN": "secret://env/TOKEN"})
    await stage.worker(secrets=True)
    await stage.look()
    id = await stage.submit()

    async def give(blocker: BlockerView) -> None:
        assert blocker.details["servers"]
        await stage.node.store.write(forget)
        await stage.look()

    return Played(id, give)


def forget() -> Script[None]:
    yield Fetch(Statement("forget_master_keys", "DELETE FROM store WHERE key = 'master_key:another'"))


async def suspect(stage: Stage) -> Played:
    """Two executions were lost with their workers. One of them runs elsewhere, and the other waits for its end."""
    await stage.job()
    first, second = await stage.submit(), await stage.submit()
    await stage.world.do("UPDATE queued SET losses = 9")
    worker = await stage.worker(2)
    await stage.look()
    assert len(await worker.ask()) == 1

    async def end(blocker: BlockerView) -> None:
        assert blocker.details["losses"] == 9
        await worker.end()

    return Played(second if await stage.runs(first) else first, end)


async def busy(stage: Stage) -> Played:
    await stage.job()
    worker = await stage.worker()
    assert await stage.starts(await stage.submit())
    id = await stage.submit()

    async def end(blocker: BlockerView) -> None:
        assert blocker.details["workers"] == [{"worker": "w0", "running": 1, "slots": 1}]
        await worker.end()

    return Played(id, end)


async def busy_with_others(stage: Stage) -> Played:
    """The only slot is granted to an execution of another lane in the same claim."""
    await stage.job("other", needs=["zone=eu"])
    await stage.job("late")
    first = await stage.submit("other")
    stage.world.clock.advance(SECOND)
    second = await stage.submit("late")
    await stage.look()
    worker = await stage.worker(labels={"zone": "eu"})
    await worker.ask()
    assert await stage.runs(first)

    async def end(blocker: BlockerView) -> None:
        await worker.end()

    return Played(second, end)


async def preferred(stage: Stage) -> Played:
    await stage.job("other", needs=["zone=eu"])
    await stage.job(prefers=[{"label": "zone=eu", "patience": "5s"}])
    await stage.worker()
    await stage.worker(labels={"zone": "eu"})
    assert await stage.starts(await stage.submit("other"))
    return Played(await stage.submit(), nothing)


async def spread(stage: Stage) -> Played:
    await stage.job(spread=True)
    await stage.worker(slots=4)
    assert await stage.starts(await stage.submit())
    await stage.worker()
    stage.workers.pop()  # it asks for nothing
    await stage.look()
    return Played(await stage.submit(), nothing)


async def room(stage: Stage) -> Played:
    await stage.job("slim")
    await stage.job(slots=2)
    worker = await stage.worker(slots=2)
    worker.free = 1
    assert await stage.starts(await stage.submit("slim"))
    worker.free = 1
    id = await stage.submit()

    async def end(blocker: BlockerView) -> None:
        (told,) = blocker.details["workers"]
        assert (told["worker"], told["used"], told["has"]) == ("w0", {"slots": 1}, {"slots": 2})
        await worker.end()
        worker.free = 2

    return Played(id, end)


async def ahead(stage: Stage) -> Played:
    await stage.job()
    worker = await stage.worker()
    first = await stage.submit()
    stage.world.clock.advance(SECOND)
    second = await stage.submit()

    async def run(blocker: BlockerView) -> None:
        assert blocker.details["ahead"] == 1
        assert await stage.starts(first)
        assert not await stage.runs(second)
        await worker.end()

    return Played(second, run)


async def share(stage: Stage) -> Played:
    """There is one slot and two customers. The customer that was just served comes second."""
    await stage.node.admission.queues.put(NAMESPACE, "fair", {"policy": {"kind": "fair", "by": "${params.c}"}})
    await stage.job(queue="fair")
    worker = await stage.worker(queues=("fair",))
    ids = []
    for customer in "aab":
        ids.append(await stage.submit(params=Raw(f'{{"c":"{customer}"}}'.encode())))
        await stage.pass_time()
    first, late, other = ids
    assert await stage.starts(first)
    await worker.end()
    await stage.look()

    async def serve(blocker: BlockerView) -> None:
        assert blocker.details["before"] == ["b"]
        assert await stage.starts(other)
        await worker.end()

    return Played(late, serve)


async def other_queues(stage: Stage) -> Played:
    await stage.job("now", queue="urgent")
    await stage.job()
    worker = await stage.worker(queues=("urgent", "default"), strict=True)
    id, urgent = await stage.submit(), await stage.submit("now")
    await stage.look()

    async def serve(blocker: BlockerView) -> None:
        assert blocker.details["queues"] == ["urgent"]
        assert await stage.starts(urgent)
        await worker.end()

    return Played(id, serve)


async def reserved(stage: Stage) -> Played:
    """An execution that needs both slots was passed over for long, so the worker keeps its free slot for it."""
    await stage.job("big", slots=2)
    await stage.job()
    worker = await stage.worker(2)
    assert await stage.starts(await stage.submit())
    big = await stage.submit("big")
    for _ in range(35):
        await stage.pass_time()
        await worker.ask()
        await stage.node.admission.reserver.step()
    id = await stage.submit()

    async def serve(blocker: BlockerView) -> None:
        assert blocker.details["workers"] == ["w0"]
        await worker.end()
        assert await stage.starts(big)
        await stage.node.admission.reserver.step()
        await worker.end()

    return Played(id, serve)


async def workflow_paused(stage: Stage) -> Played:
    await stage.job()
    await stage.worker()
    steps = [{"name": "a", "job": "job"}]
    await stage.node.definitions.jobs.create(NAMESPACE, {"name": "flow", "workflow": {"steps": steps}})
    await stage.look()
    flow = await stage.submit("flow")
    await stage.look()
    ((id,),) = await stage.world.rows("SELECT execution FROM flow_steps")
    await stage.node.workflows.graphs.pause(NAMESPACE, flow)

    async def resume(blocker: BlockerView) -> None:
        await stage.node.workflows.graphs.resume(NAMESPACE, blocker.details["execution"])

    return Played(id, resume)


SCENES: Mapping[str, Scene] = {
    "delay": delay,
    "retry": retry,
    "sleep": sleep,
    "dependency": dependency,
    "window": window,
    "limit": limit,
    "sequence": sequence,
    "rate": rate,
    "queue-limit": queue_limit,
    "namespace-limit": namespace_limit,
    "overlap": overlap,
    "paused": paused,
    "workflow-paused": workflow_paused,
    "circuit": circuit,
    "queue-paused": queue_paused,
    "held": held,
    "no-worker": no_worker,
    "no-key": no_key,
    "suspect": suspect,
    "preferred": preferred,
    "spread": spread,
    "busy": busy,
    "room": room,
    "reserved": reserved,
    "other-queues": other_queues,
    "share": share,
    "ahead": ahead,
}
