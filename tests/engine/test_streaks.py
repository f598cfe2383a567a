"""pauseAfter: triggers pause after failures in a row, with a visible reason, and continue when resumed."""

import pytest

from horae.engine.server_node import ServerNode
from horae.env import SECOND
from horae.errors import StoreUnavailable
from horae.features.statistics.part import StatisticsPart
from horae.model.fleet.submit import Submit
from horae.store.triggers import streaks
from tests.store_contract.world import NAMESPACE, World, failed, success

TRIGGERS = [{"name": "often", "every": "1h"}, {"name": "asleep", "cron": "0 2 * * *", "paused": True}]


@pytest.fixture
async def node(world: World) -> ServerNode:
    made = ServerNode(world.env, world.store)
    await made.prepare()
    await made.definitions.jobs.create(
        NAMESPACE, {"name": "flaky", "command": "true", "triggers": TRIGGERS, "pauseAfter": 3}
    )
    return made


async def run(world: World, node: ServerNode, *ends: str) -> None:
    """End executions one after the other."""
    for end in ends:
        await node.submitter.submit(NAMESPACE, [Submit(job="flaky")], origin="submit")
        worker = await world.worker()
        (slice,) = await worker.claim(1)
        world.clock.advance(SECOND)
        await worker.report(failed(slice) if end == "failed" else success(slice))
        node.base.topics.settled(worker.effects)
    await node.firing.streaks.step()


async def states(node: ServerNode) -> dict[str, str]:
    return {one.name: one.state for one in await node.definitions.triggers.of_job(NAMESPACE, "flaky")}


async def test_triggers_pause_after_so_many_failures_in_a_row(world: World, node: ServerNode):
    await run(world, node, "failed", "failed", "success", "failed", "failed")
    assert await states(node) == {"often": "active", "asleep": "paused"}
    await run(world, node, "failed")

    assert await states(node) == {"often": "paused", "asleep": "paused"}
    view = await node.definitions.jobs.get(NAMESPACE, "flaky")
    assert (view.auto_paused.failures, view.auto_paused.triggers, view.state) == (3, ["often"], "active")
    assert view.auto_paused.execution_id == view.last_execution.execution_id
    assert "failed in a row" in view.notes[0]
    why = (await node.work.explainer.job(NAMESPACE, "flaky")).blockers
    assert ["failed in a row" in one.message for one in why if one.gate == "trigger-paused"] == [False, True]


@pytest.mark.parametrize("by", ["job", "trigger", "paused job"])
async def test_resuming_goes_on_and_counts_anew(world: World, node: ServerNode, by: str):
    await run(world, node, "failed", "failed", "failed")
    if by == "paused job":
        await node.definitions.jobs.pause(NAMESPACE, "flaky")
    if by == "trigger":
        await node.definitions.triggers.resume(NAMESPACE, "flaky", "often")
    else:
        await node.definitions.jobs.resume(NAMESPACE, "flaky")

    assert await states(node) == {"often": "active", "asleep": "paused"}
    assert (await node.definitions.jobs.get(NAMESPACE, "flaky")).auto_paused is None
    await run(world, node, "failed", "failed")
    assert (await states(node))["often"] == "active"
    await run(world, node, "failed")
    assert (await states(node))["often"] == "paused"


async def test_failures_without_a_report_to_this_server_are_found(world: World, node: ServerNode):
    other = ServerNode(world.env, world.store)
    await run(world, node, "failed")
    await node.part(StatisticsPart).statistics.step()
    await other.firing.streaks.step()
    assert (await states(node))["often"] == "active"

    for _ in range(2):
        await node.submitter.submit(NAMESPACE, [Submit(job="flaky")], origin="submit")
        worker = await world.worker()
        (slice,) = await worker.claim(1)
        world.clock.advance(SECOND)
        await worker.report(failed(slice))
    world.clock.advance(40 * SECOND)
    await other.firing.streaks.step()
    assert (await states(node))["often"] == "paused"


async def test_failures_are_remembered_while_they_cannot_be_checked(world: World, node: ServerNode, monkeypatch):
    def unreadable(*given):
        raise StoreUnavailable("The store went away.")

    await run(world, node, "failed", "failed")
    for part, ends in (("is_watched", ["failed"]), ("failed_lately", [])):
        world.clock.advance(40 * SECOND)
        with monkeypatch.context() as patch:
            patch.setattr(streaks, part, unreadable)
            with pytest.raises(StoreUnavailable):
                await run(world, node, *ends)
    monkeypatch.setattr(streaks, "failed_lately", lambda since: nothing())
    await node.firing.streaks.step()

    assert (await states(node))["often"] == "paused"


def nothing():
    return set()
    yield


async def test_a_job_that_does_not_ask_for_it_goes_on(world: World, node: ServerNode):
    await node.definitions.jobs.edit(NAMESPACE, "flaky", {"pauseAfter": None})
    await run(world, node, *["failed"] * 4)

    assert await states(node) == {"often": "active", "asleep": "paused"}
