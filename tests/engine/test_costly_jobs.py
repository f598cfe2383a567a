"""A stored job with a too costly expression is paused with the reason, and delays no other job."""

import time

import msgspec
import pytest

from horae.engine.server_node import ServerNode
from horae.env import SECOND
from horae.errors import Costly
from horae.features.events.model.read import read_event
from horae.features.events.part import EventsPart
from horae.store.script import Fetch, Statement
from horae.store.tenancy import namespaces
from tests.model.expression_attacks import LITERAL, nested
from tests.store_contract.world import NAMESPACE, World

HOUR = 3600 * SECOND
BY_LITERALS = "${" + nested(LITERAL, 7, "true") + "}"
BY_DATA = "${" + nested("params.rows", 4, "true") + "}"
SPEC = Statement("test_spec", "SELECT spec FROM job_versions WHERE job = $1")
PUT_SPEC = Statement("test_put_spec", "UPDATE job_versions SET spec = $2 WHERE job = $1")
PUT_PARAMS = Statement("test_put_params", "UPDATE triggers SET params = $2 WHERE job = $1")


@pytest.fixture
async def node(world: World) -> ServerNode:
    made = ServerNode(world.env, world.store)
    await made.prepare()
    return made


async def hostile(node: ServerNode, change, trigger_params: dict | None = None) -> None:
    """Store a job as an earlier version of the program did, without a limit on its work."""
    for name in ("hostile", "harmless"):
        body = {"name": name, "command": "true", "sequence": "${job.name}", "schedule": {"every": "1h"}}
        await node.definitions.jobs.create(NAMESPACE, body)
    await rewritten(node, change, trigger_params)


async def rewritten(node: ServerNode, change, trigger_params: dict | None = None) -> None:
    stored = await node.store.job_named(NAMESPACE, "hostile")
    assert stored is not None

    def script():
        rows = yield Fetch(SPEC, (stored.job.id,))
        spec = msgspec.json.decode(rows[0][0])
        change(spec)
        yield Fetch(PUT_SPEC, (stored.job.id, msgspec.json.encode(spec).decode()))
        if trigger_params is not None:
            yield Fetch(PUT_PARAMS, (stored.job.id, msgspec.json.encode(trigger_params).decode()))

    await node.store.write(script)


def by_sequence(text: str):
    def change(spec):
        spec["sequence"] = text
        spec["params"] = {"rows": list(range(1000))}

    return change


CASES = {
    "a sequence over literals": (by_sequence(BY_LITERALS), None),
    "a sequence over data": (by_sequence(BY_DATA), None),
    "params of a trigger": (by_sequence("x"), {"y": BY_DATA}),
}


@pytest.mark.parametrize("case", CASES)
async def test_a_stored_job_that_takes_too_much_work_is_paused_and_says_why(world: World, node: ServerNode, case: str):
    await hostile(node, *CASES[case])
    again = ServerNode(world.env, world.store)  # as after a restart
    await again.prepare()
    world.clock.advance(HOUR + SECOND)
    began = time.process_time()
    await again.firing.scheduler.step()
    await again.firing.scheduler.step()

    assert time.process_time() - began < 2
    view = await again.definitions.jobs.get(NAMESPACE, "hostile")
    assert view.state == "paused"
    assert view.auto_paused is not None
    assert "steps to compute" in (view.auto_paused.reason or "")
    assert "steps to compute" in view.notes[0]
    (why,) = [one for one in (await again.work.explainer.job(NAMESPACE, "hostile")).blockers if one.gate == "paused"]
    assert "steps to compute" in why.message
    assert (await again.definitions.jobs.get(NAMESPACE, "harmless")).state == "active"
    assert again.firing.scheduler.fired == 1


async def test_an_auto_paused_job_continues_after_a_change_and_a_resumption(world: World, node: ServerNode):
    await hostile(node, by_sequence(BY_DATA))
    world.clock.advance(HOUR + SECOND)
    await node.firing.scheduler.step()
    await node.definitions.jobs.edit(NAMESPACE, "hostile", {"sequence": "one"})
    resumed = await node.definitions.jobs.resume(NAMESPACE, "hostile")

    assert (resumed.state, resumed.auto_paused) == ("active", None)
    world.clock.advance(HOUR)
    await node.firing.scheduler.step()
    assert (await node.definitions.jobs.get(NAMESPACE, "hostile")).status == "queued"


async def test_costly_expressions_of_one_namespace_do_not_delay_other_namespaces(world: World, node: ServerNode):
    costly = "${string(" + nested("params.rows", 1, "params.rows[v0] == v0") + ")}"
    for i in range(60):
        body = {"name": f"costly-{i}", "command": "true", "sequence": costly, "schedule": {"every": "1h"}}
        await node.definitions.jobs.create(NAMESPACE, {**body, "params": {"rows": list(range(1000))}})
    await node.tenancy.namespaces.create({"name": "other"})
    space = await node.store.read(lambda: namespaces.by_name("other"))
    assert space is not None
    body = {"name": "neighbour", "command": "true", "sequence": "${job.name}", "schedule": {"every": "1h"}}
    await node.definitions.jobs.create(space.id, body)
    world.clock.advance(HOUR + SECOND)
    await node.firing.scheduler.step()

    fired = node.firing.scheduler.fired
    assert (await node.definitions.jobs.get(space.id, "neighbour")).status == "queued"
    assert 1 < fired < 61  # the other job, and as many as the budget allows
    assert {(await node.definitions.jobs.get(NAMESPACE, f"costly-{i}")).state for i in range(60)} == {"active"}
    world.clock.advance(61 * SECOND)
    await node.firing.scheduler.step()
    assert node.firing.scheduler.fired > fired


async def test_keys_that_take_too_much_work_at_every_fire_are_refused_with_the_definition(node: ServerNode):
    body = {"name": "hostile", "command": "true", "sequence": BY_DATA, "schedule": {"every": "1h"}}
    with pytest.raises(Costly, match="sequence"):
        await node.definitions.jobs.create(NAMESPACE, {**body, "params": {"rows": list(range(1000))}})


async def test_an_event_starts_no_execution_with_a_too_costly_key(node: ServerNode):
    body = {"name": "hostile", "command": "true", "sequence": "${job.name}", "triggers": [{"name": "t", "event": "up"}]}
    await node.definitions.jobs.create(NAMESPACE, body)
    await rewritten(node, by_sequence(BY_DATA))
    began = time.process_time()
    views = await node.part(EventsPart).intake.send(
        NAMESPACE, [read_event({"name": "up", "payload": {}}) for _ in range(20)]
    )

    assert time.process_time() - began < 5
    assert {one.disposition for view in views for one in view.skipped} == {"skipped-params"}
    assert all("steps to compute" in one.cause for view in views for one in view.skipped[:1])
    assert not any(view.fired for view in views)
