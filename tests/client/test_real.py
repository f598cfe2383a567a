"""The client against a real server in the same process and over a socket, with a worker that runs jobs."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from horae import App, Client, EmbeddedTransport, SyncClient
from horae.engine.server_node import ServerNode
from horae.env import system_env
from horae.errors import BadInput, Conflict, NotFound, Stale
from horae.server.app import Application
from horae.server.run import serve
from horae.worker.gateway_transport import GatewayTransport
from horae.worker.settings import WorkerSettings
from horae.worker.worker import WorkerRuntime

KEY = "k" * 40


def jobs_of(client: Client | None = None) -> App:
    app = App(client=client)

    @app.job()
    async def double(i: int) -> int:
        return 2 * i

    @app.job(retries=0)
    def breaks() -> None:
        raise ValueError("no")

    return app


@asynccontextmanager
async def working(node: ServerNode):
    """Start a worker on the node and define its jobs."""
    await node.tenancy.keys.ensure_admin_key(KEY)
    app = jobs_of()
    for document in app.definitions():
        await node.definitions.jobs.put(1, document)
    worker = WorkerRuntime(node.env, WorkerSettings(name="w"), GatewayTransport(node), app)
    running = asyncio.ensure_future(worker.run())
    yield
    worker.abort()
    await running


@asynccontextmanager
async def embedded():
    node = await ServerNode.open(system_env(), "sqlite://")
    await node.start()
    async with working(node), Client(key=KEY, transport=EmbeddedTransport(Application(node))) as client:
        yield client
    await node.stop()


@asynccontextmanager
async def over_http():
    node = await ServerNode.open(system_env(), "sqlite://")
    serving = await serve(node, "127.0.0.1", 0)
    async with working(node), Client(serving.url, KEY) as client:
        yield client
    await serving.stop()


@pytest.fixture(params=[embedded, over_http])
async def client(request):
    async with request.param() as made:
        yield made


async def test_a_submission_runs_and_is_waited_for(client):
    execution = await client.submit("double", {"i": 21}, tags={"a": "b"}, priority=7)
    final = await client.executions.wait(execution.id, timeout=30)
    assert (final.status, final.result, final.tags, final.priority) == ("success", 42, {"a": "b"}, 7)
    assert final.started_at <= final.completed_at


async def test_functions_submit_through_their_app(client):
    app = jobs_of(client)
    execution = await app.jobs["double"].submit(i=4)
    assert (await client.executions.wait(execution.id, timeout=30)).result == 8
    many = await app.jobs["double"].submit_many({"i": i} for i in range(3))
    finals = await client.executions.wait_all([one.id for one in many], timeout=30)
    assert [final.result for final in finals] == [0, 2, 4]


async def test_many_are_submitted_with_one_error_per_refusal(client):
    done = await client.submit_many("double", [{"i": 1}, {"i": "x"}, {"i": 3}])
    assert [one.error is None for one in done] == [True, False, True]
    with pytest.raises(BadInput):
        await client.submit_many("double", [{"i": 1}, {"i": "x"}], atomic=True)


async def test_a_key_makes_a_submission_unique(client):
    first = await client.submit("double", {"i": 1}, key="once")
    second = await client.submit("double", {"i": 1}, key="once")
    assert (first.id, first.deduplicated, second.deduplicated) == (second.id, False, True)


async def test_jobs_are_created_changed_and_deleted(client):
    job = await client.jobs.create("report", command="true", schedule="0 3 * * *", timeout="1h")
    assert (job.name, job.status, job.version) == ("report", "scheduled", 1)
    with pytest.raises(Conflict):
        await client.jobs.create("report", command="true")
    assert (await client.jobs.edit("report", retries=2)).version == 2
    with pytest.raises(Stale):
        await client.jobs.edit("report", retries=3, if_match='"1"')
    assert [v.version for v in await client.jobs.versions("report")] == [2, 1]
    assert (await client.jobs.rollback("report", 1)).version == 3
    assert (await client.jobs.pause("report")).status == "paused"
    assert (await client.jobs.resume("report")).status == "scheduled"
    assert (await client.jobs.apply({"name": "report", "command": "false"}))[1] == "changed"
    assert (await client.jobs.apply({"name": "report", "command": "false"}))[1] == "unchanged"
    assert (await client.jobs.apply({"name": "other", "command": "false"}))[1] == "created"
    await client.jobs.delete("report")
    with pytest.raises(NotFound):
        await client.jobs.get("report")
    assert (await client.jobs.restore("report")).state == "active"
    assert {"double", "report"} <= {one.name for one in await client.jobs.list(limit=100)}


async def test_dead_letters_are_retried_and_discarded(client):
    failed = await client.executions.wait((await client.jobs.trigger("breaks")).id, timeout=30)
    assert (failed.status, failed.error_message) == ("failed", "no")
    assert [attempt.outcome for attempt in await client.executions.attempts(failed.id)] == ["failed"]
    assert (await client.dlq.get(failed.id)).state == "open"
    again = await client.dlq.retry([failed.id])
    retried = await client.executions.wait(again.execution_ids[0], timeout=30)
    assert retried.retry_of == failed.id
    assert (await client.dlq.discard(job="breaks")).done == 1
    assert await client.dlq.list() == []


async def test_events_and_users(client):
    seen = asyncio.ensure_future(first_event(client))
    while not seen.done():
        await client.submit("double", {"i": 1})
        await asyncio.wait({seen}, timeout=0.05)
    assert (await seen).kind == "execution"
    assert [worker.worker_id for worker in await client.workers.list()] == ["w"]
    assert (await client.health()).version
    await client.ready()
    assert [queue.raw["name"] for queue in await client.queues.list()] == ["default"]
    key = await client.keys.create("ci", role="worker")
    await client.keys.delete(key.raw["keyId"])


async def first_event(client: Client):
    async for event in client.stream("executions"):
        return event


async def test_the_sync_client_does_the_same():
    async with over_http() as client:
        url = client._caller._transport.place

        def work() -> int:
            with SyncClient(url, KEY) as sync:
                execution = sync.submit("double", {"i": 5})
                return sync.executions.wait(execution.id, timeout=30).result

        assert await asyncio.to_thread(work) == 10
