"""The sync client: the same methods, blocking."""

import asyncio
import copy

import pytest

from horae import App, EmbeddedTransport, step
from horae.client.client import Client
from horae.client.sync import SyncClient, portal
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


def test_every_method_of_the_async_client_exists():
    client, _, _ = client_of(ok({}))
    with client.sync as sync:
        names = [name for name in dir(client) if not name.startswith("_")]
        assert set(dir(sync)) == set(names)
        assert sync.submit.__doc__ == Client.submit.__doc__
        assert all(callable(getattr(sync.jobs, name)) for name in ("create", "get", "list", "trigger"))


def test_it_is_created_like_the_async_client():
    _, transport, _ = client_of(ok({"items": []}))
    sync = SyncClient(key="k", transport=transport)
    assert sync.workers.list() == []
    sync.close()


def test_properties_have_their_values():
    client, _, _ = client_of(ok({}))
    with client.sync as sync:
        assert sync.place == "http://scripted"


def test_its_own_loop_refuses_to_wait_for_itself():
    client, _, _ = client_of(ok({}))
    with client.sync as sync:

        async def inside() -> None:
            sync.jobs.get("a")

        with pytest.raises(RuntimeError, match="await the async one"):
            portal().wait(inside())


def test_it_works_beside_a_running_loop():
    client, _, _ = client_of(ok({"jobId": "1"}))

    async def outside() -> str:
        return await asyncio.to_thread(lambda: client.sync.jobs.get("a").job_id)

    assert asyncio.run(outside()) == "1"
    client.sync.close()


def test_methods_of_other_libraries_are_refused_with_the_right_call():
    job, flow = App().job(named), App().workflow(calling)
    with pytest.raises(
        AttributeError, match=r"no \.delay\(\.\.\.\)\. Write `await named\.submit\(\.\.\.\)`, or `named\."
    ):
        _ = job.delay
    with pytest.raises(AttributeError, match=r"countdown= is delay="):
        _ = flow.apply_async
    with pytest.raises(AttributeError, match="no attribute 'frobnicate'"):
        _ = job.frobnicate
    assert not hasattr(copy.copy(job), "enqueue")


async def test_a_blocking_call_on_the_loop_of_an_embedded_server_is_refused():
    async def application(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b'{"jobId": "1"}'})

    client = Client(key="k", transport=EmbeddedTransport(application))
    with pytest.raises(RuntimeError, match="Await the asynchronous method instead"):
        client.sync.jobs.get("a")
    assert (await asyncio.to_thread(client.sync.jobs.get, "a")).job_id == "1"


async def test_streams_of_an_embedded_server_reach_other_threads():
    async def application(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for piece in (b"one", b"two"):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body"})

    client = Client(key="k", transport=EmbeddedTransport(application))
    pieces = await asyncio.to_thread(lambda: list(client.sync.backup()))
    assert b"".join(pieces) == b"onetwo"


def test_wrong_params_are_refused_at_once():
    with pytest.raises(TypeError, match="named does not accept 'tto' here; its params are to"):
        App().job(named).submit(tto="a")


def test_params_that_a_call_takes_only_by_name_are_not_filled_by_position():
    def mail(to: str, *, copy: str = "") -> None: ...

    with pytest.raises(TypeError, match="mail takes 1 params by position, but 2 were given"):
        App().job(mail).submit("a", "b")


def test_a_submission_may_be_a_task_or_run_on_its_own():
    client, _, _ = client_of(ok({"executionId": "e"}))
    app = App(client=client)
    job = app.job(named)

    async def main():
        task = asyncio.create_task(job.submit(to="a"))
        gathered = await asyncio.gather(job.submit(to="b"), asyncio.wait_for(job.submit(to="c"), 60))
        return [one.id for one in (await task, *gathered)]

    assert asyncio.run(main()) == ["e", "e", "e"]
    assert asyncio.run(job.submit(to="d")).id == "e"
    assert asyncio.run(asyncio.wait_for(job.submit(to="d"), 60)).id == "e"
    assert asyncio.run(job.submit_many([])) == []


def named(to: str) -> None: ...


def calling(day: str) -> None:
    step.command("true")
