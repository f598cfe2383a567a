"""`client.backfills` and `client.audit.fires` against a server in the same process."""

from datetime import UTC, datetime, timedelta

from horae.client.client import Client
from horae.client.transport.calls import RequestRetryPolicy
from horae.client.transport.embedded import EmbeddedTransport
from horae.engine.server_node import ServerNode
from horae.env import SECOND, VirtualClock, virtual_env
from horae.features.backfills.part import BackfillsPart
from horae.server.app import Application
from horae.store.contract import Store
from horae.store.open import open_store_driver
from tests.server.conftest import key_for
from tests.store_contract.world import World, success

HOUR = timedelta(hours=1)


async def test_a_backfill_is_planned_created_followed_and_audited():
    clock = VirtualClock()
    env = virtual_env(clock=clock)
    driver = await open_store_driver("sqlite://", env)
    await driver.migrate()
    node = ServerNode(env, Store(driver, env))
    await node.prepare()
    transport = EmbeddedTransport(Application(node))
    async with Client(
        key=await key_for(node, "admin"), transport=transport, env=env, patience=RequestRetryPolicy()
    ) as client:
        await client.jobs.create("report", command="true", schedule="0 * * * *", params={"day": 1})
        now = datetime.fromtimestamp(env.now() // SECOND, UTC)
        since, until = now - 5 * HOUR, now

        plan = await client.backfills.plan("report", since, until)
        assert (plan.fires, plan.to_run) == (5, 5)
        assert plan.first_fire_at == since
        made = await client.backfills.create(
            "report", since, until, max_concurrent=3, params={"day": 2}, order="newest"
        )
        assert (made.state, made.is_final) == ("running", False)
        assert [one.id for one in await client.backfills.list(job="report", state="running")] == [made.id]
        assert (await client.backfills.pause(made.id)).state == "paused"
        assert (await client.backfills.resume(made.id)).state == "running"

        worker = await World(driver, env).worker()
        for _ in range(5):
            await node.part(BackfillsPart).backfiller.step()
            for slice in await worker.claim(10):
                await worker.report(success(slice))
        done = await client.backfills.wait(made.id)
        assert (done.state, done.succeeded, done.progress) == ("done", 5, 100.0)
        runs = await client.backfills.runs(made.id, limit=2)
        assert len(runs) == 2
        assert runs.next_cursor
        execution = await client.executions.get(runs[0].raw["executionId"])
        assert (execution.origin, execution.backfill_id, execution.fire_at) == ("backfill", made.id, since)
        assert execution.params == {"day": 2}
        report = (await client.audit.fires("report", since, until)).raw
        assert (report["fires"], report["findings"]) == (5, [])
        again = await client.backfills.create("report", since, until, force=True)
        assert (await client.backfills.cancel(again.id, executions=True)).state == "cancelled"
    await node.stop()
