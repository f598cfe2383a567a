"""The sync face: the same methods, blocking."""

import asyncio

import pytest

from horae.client.client import Client
from horae.client.sync import SyncClient
from horae.errors import NotFound
from tests.client.fakes import client_of, ok, problem
from tests.client.test_executions import lines


def test_calls_block_and_answer_the_same():
    client, server, _ = client_of(ok({"jobId": "1", "name": "a"}))
    with client.sync as sync:
        assert sync.jobs.get("a").name == "a"
        assert sync.jobs is sync.jobs
    assert server.closed


def test_errors_are_raised_here():
    client, _, _ = client_of(problem(404, "not-found"))
    with client.sync as sync, pytest.raises(NotFound):
        sync.submit("a")


def test_iterators_are_plain_ones():
    client, _, _ = client_of(lines("1", "a", "b"), lines("1"))
    with client.sync as sync:
        assert [line.text for line in sync.executions.logs("e")] == ["a", "b"]


def test_an_iterator_may_be_left_early():
    client, _, _ = client_of(lines("1", "a", "b"))
    with client.sync as sync:
        for line in sync.executions.logs("e"):
            assert line.text == "a"
            break


def test_every_method_of_the_async_client_is_there():
    client, _, _ = client_of(ok({}))
    with client.sync as sync:
        names = [name for name in dir(client) if not name.startswith("_")]
        assert set(dir(sync)) == set(names)
        assert sync.submit.__doc__ == Client.submit.__doc__
        assert all(callable(getattr(sync.jobs, name)) for name in ("create", "get", "list", "trigger"))


def test_it_is_made_like_the_async_one():
    _, transport, _ = client_of(ok({"items": []}))
    sync = SyncClient(key="k", transport=transport)
    assert sync.workers.list() == []
    sync.close()


def test_its_own_loop_refuses_to_wait_for_itself():
    client, _, _ = client_of(ok({}))
    with client.sync as sync:

        async def inside() -> None:
            sync.jobs.get("a")

        with pytest.raises(RuntimeError, match="await the async one"):
            sync._portal.wait(inside())


def test_it_works_beside_a_running_loop():
    client, _, _ = client_of(ok({"jobId": "1"}))

    async def outside() -> str:
        return await asyncio.to_thread(lambda: client.sync.jobs.get("a").job_id)

    assert asyncio.run(outside()) == "1"
    client.sync.close()
