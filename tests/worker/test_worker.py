"""The loop: registering, losing the server or the session, draining and leaving."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from horae.env import SECOND, virtual_env
from horae.errors import BadInput, Busy, Forbidden, HoraeError, ProtocolMismatch, SessionEnded, Unauthorized
from horae.model.definitions.tasks import CommandTask, PythonTask
from horae.worker import session
from horae.worker.session import WorkerSession
from tests.waiting import eventually
from tests.worker.functions import app
from tests.worker.local import Jobs, result, shop
from tests.worker.test_command import STUBBORN, alive, pids_in, shell

ADD = PythonTask(function="add")


async def test_a_worker_registers_with_its_abilities():
    async with shop(app, name="w1", labels={"gpu": "a100"}, queues=("q",), concurrency=3) as it:
        await eventually(lambda: it.transport.registered)
        presence = it.transport.registered[0]

        assert (presence.worker, presence.labels, presence.concurrency, presence.pid) == (
            "w1",
            {"gpu": "a100"},
            3,
            os.getpid(),
        )
        assert [f.name for f in presence.functions] == list(app.jobs)
        assert b'"required":["a"]' in bytes(presence.functions[0].params)


@pytest.mark.parametrize(
    "error", [Unauthorized("no key"), Forbidden("not you"), ProtocolMismatch("too old"), BadInput("odd")]
)
async def test_a_server_that_refuses_the_worker_ends_it_with_its_message(error):
    async with shop(app) as it:
        it.transport.failure = error

        with pytest.raises(type(error), match=str(error)):
            await it.end


async def test_a_revoked_key_ends_a_worker_at_work(tmp_path):
    async with shop(app) as it:
        it.submit(PythonTask(function="sleep"), {"folder": str(tmp_path)})
        await pids_in(tmp_path, 1)
        it.transport.failure = Unauthorized("revoked")
        await eventually(it.end.done)

        assert isinstance(it.end.exception(), Unauthorized)
        assert (tmp_path / "up.cleaned").exists()


async def test_it_waits_for_a_server_that_is_not_there_yet():
    async with shop(app) as it:
        it.transport.is_down = True
        parcel = it.submit(ADD, {"a": 1})
        await eventually(lambda: it.worker._done is not None)
        it.transport.is_down = False

        assert result(await it.outcome(parcel)) == 3


async def test_outcomes_are_held_while_no_server_answers(tmp_path):
    async with shop(app, heartbeat=0.5) as it:
        parcel = it.submit(shell(f"echo up; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; echo bye"))
        await it.line(parcel, "up")
        it.transport.is_down = True
        (tmp_path / "go").touch()
        await eventually(
            lambda: it.worker.session.outbox.has_outcomes or any(e.outcomes for e in it.worker.session.unanswered())
        )
        assert not it.gateway.finished
        it.transport.is_down = False

        assert (await it.outcome(parcel)).outcome == "success"
        assert it.gateway.lines(parcel, 0) == ["up", "bye"]


async def test_a_lost_session_stops_everything_and_a_new_one_continues(tmp_path):
    async with shop(app, heartbeat=0.5) as it:
        command = it.submit(shell(f"echo $$ > {tmp_path}/$HORAE_ATTEMPT.pid; echo up; exec sleep 600"), name="command")
        coroutine = it.submit(PythonTask(function="sleep"), {"folder": str(tmp_path), "name": "task"}, name="coroutine")
        process = it.submit(
            PythonTask(function="wait", isolation="process"), {"folder": str(tmp_path), "name": "kid"}, name="process"
        )
        first = await pids_in(tmp_path, 3)
        assert {command, coroutine, process} == {parcel for parcel, _ in it.gateway.running}
        children = [pid for pid in first if pid != os.getpid()]

        it.gateway.lose()

        await eventually(lambda: (tmp_path / "task.cleaned").exists() and not any(map(alive, children)))
        await eventually(lambda: len(it.transport.registered) == 2 and (tmp_path / "2.pid").exists())
        assert not it.gateway.outcomes, "nobody hears of what the lost session did"


async def test_a_thread_of_a_lost_session_keeps_its_slot_until_it_ends(tmp_path):
    async with shop(app, heartbeat=0.5, concurrency=2) as it:
        it.submit(PythonTask(function="wait"), {"folder": str(tmp_path)})
        await pids_in(tmp_path, 1)
        it.gateway.lose()
        it.gateway.queue.clear()
        await eventually(lambda: len(it.transport.registered) == 2 and it.worker.session is not None)

        await eventually(lambda: it.worker.session.stock.busy == 0)
        assert result(await it.run(ADD, {"a": 1}, name="after")) == 3


async def test_items_behind_long_executions_of_another_job_are_handed_back_after_a_second(tmp_path, monkeypatch):
    async with shop(app, concurrency=2) as it:
        await it.run(ADD, {"a": 1}, name="short")
        short = next(iter(it.worker.session.stock.backlogs.values())).job
        monkeypatch.setattr(session, "fetch_ahead", lambda stock, asked: {} if asked else {short: 5})
        it.submit(
            PythonTask(function="sleep"), *({"folder": str(tmp_path), "name": str(i)} for i in range(2)), name="long"
        )
        await pids_in(tmp_path, 2)
        parcel = it.submit(ADD, *[{"a": 1}] * 5, name="short")
        await it.is_running(parcel, 4)

        await eventually(lambda: len(it.gateway.queue) == 5)
        assert {(item.parcel, item.failures) for item in it.gateway.queue} == {(parcel, 0)}


async def test_draining_finishes_running_items_and_hands_back_the_rest(tmp_path):
    async with shop(app, heartbeat=0.5, concurrency=2) as it:
        wait = f"touch {tmp_path}/$HORAE_EXECUTION_ID; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done"
        parcel = it.submit(shell(wait), *[{}] * 5)
        await eventually(lambda: len(list(tmp_path.iterdir())) == 2)
        it.worker.drain()
        it.worker.drain()
        (tmp_path / "go").touch()

        assert await it.end == "drained"
        assert len(it.gateway.finished) == 2
        assert len(it.gateway.queue) == 3
        assert {item.failures for item in it.gateway.queue} == {0}
        assert it.transport.closed == [it.gateway.session]
        assert parcel


async def test_items_that_outlive_the_grace_time_are_stopped_and_handed_back(tmp_path):
    async with shop(app, heartbeat=0.5, grace=SECOND // 5, concurrency=4) as it:
        it.submit(shell(f"echo $$ > {tmp_path}/a.pid; exec sleep 600"), name="command")
        it.submit(PythonTask(function="sleep"), {"folder": str(tmp_path), "name": "b"}, name="task")
        it.submit(
            PythonTask(function="stuck", isolation="thread"), {"folder": str(tmp_path), "seconds": 5}, name="thread"
        )
        await pids_in(tmp_path, 3)
        it.worker.drain()

        assert await it.end == "drained"
        assert [o.outcome for o in it.gateway.outcomes] == ["released"] * 3
        assert len(it.gateway.queue) == 3
        assert not it.gateway.running


async def test_the_server_may_ask_it_to_drain():
    async with shop(app, heartbeat=0.5) as it:
        await eventually(lambda: it.gateway.exchanges)
        it.gateway.drain = True

        assert await it.end == "drained"


@pytest.mark.parametrize("begun", [False, True])
async def test_draining_without_a_server_leaves_at_once(begun):
    async with shop(app) as it:
        it.transport.is_down = True
        if begun:
            await eventually(lambda: it.worker._done is not None)
        it.worker.drain()

        assert await it.end == "drained"


async def test_aborting_kills_running_items(tmp_path):
    async with shop(app) as it:
        it.submit(CommandTask(argv=(sys.executable, "-c", STUBBORN, str(tmp_path))))
        pids = await pids_in(tmp_path, 4)
        folder = it.worker.spawner.folder
        it.worker.abort()

        assert await it.end == "aborted"
        assert not any(map(alive, pids))
        assert not folder.exists()


async def test_a_refused_exchange_is_made_smaller():
    async with shop(app, heartbeat=0.5) as it:
        plain, refused = it.transport.exchange, []

        async def picky(session, body):
            if any(b"poison" in bytes(raw) for outcome in body.outcomes for raw in outcome.results):
                refused.append(body)
                raise BadInput("cannot read this")
            return await plain(session, body)

        it.transport.exchange = picky
        parcel = it.submit(
            PythonTask(function="echo"), *[{"value": v} for v in ["fine"] * 3 + ["poison"] + ["fine"] * 3]
        )

        assert (await it.outcome(parcel, 3)).error.type == "OutcomeRefused"
        assert [result(await it.outcome(parcel, i)) for i in (0, 1, 2, 4, 5, 6)] == ["fine"] * 6


async def test_an_exchange_that_breaks_a_server_is_not_repeated_for_ever():
    async with shop(app, heartbeat=0.5) as it:
        plain, tries = it.transport.exchange, []

        async def broken(session, body):
            if any(outcome.outcome == "success" for outcome in body.outcomes):
                tries.append(body)
                raise HoraeError("oops")
            return await plain(session, body)

        it.transport.exchange = broken
        parcel = it.submit(ADD, {"a": 1})

        assert (await it.outcome(parcel)).error.type == "OutcomeRefused"
        assert len(tries) == 10


async def test_a_session_that_both_sides_see_differently_is_given_up():
    async with shop(app, heartbeat=0.5) as it:
        await eventually(lambda: it.gateway.exchanges)
        it.transport.exchange, plain = _always(BadInput("numbers were left out")), it.transport.exchange
        await eventually(lambda: len(it.transport.registered) >= 2)
        it.transport.exchange = plain

        assert result(await it.run(ADD, {"a": 1})) == 3


def _always(error):
    async def call(*_):
        raise error

    return call


async def test_requests_of_executions_are_repeated_until_a_server_answers():
    async with shop(app, heartbeat=0.5) as it:
        plain, tries = it.transport.submit_children, []

        async def shaky(session, body):
            tries.append(body)
            if len(tries) < 3:
                raise Busy("not now")
            return await plain(session, body)

        it.transport.submit_children = shaky

        assert len(result(await it.run(PythonTask(function="children_sync")))) == 1
        assert len(tries) == 3


async def test_requests_of_an_execution_of_an_ended_session_fail():
    async with shop(app, heartbeat=0.5) as it:
        await eventually(lambda: it.worker.session)
        session = it.worker.session
        session.end()

        with pytest.raises(SessionEnded):
            await it.worker._requests.run(session, None, None)


async def test_timeouts_use_the_environments_clock(tmp_path):
    """On a virtual clock a timeout occurs when the clock is moved, and not before."""
    env = virtual_env(5)
    async with shop(app, env=env) as it:
        parcel = it.submit(PythonTask(function="sleep"), {"folder": str(tmp_path)}, timeout=3600 * SECOND)
        await pids_in(tmp_path, 1)
        for _ in range(10):
            env.clock.advance(300 * SECOND)
            await asyncio.sleep(0)
        assert not it.gateway.finished

        async def moved():
            env.clock.advance(60 * SECOND)
            return it.gateway.finished.get((parcel, 0))

        assert (await eventually(moved)).error.type == "RunTimeout"


VICTIM = Path(__file__).with_name("victim.py")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_no_child_outlives_a_killed_worker(tmp_path, number):
    """kill -9 of a worker with a running command, its stubborn grandchildren and a child process."""
    worker = subprocess.Popen([sys.executable, str(VICTIM), str(tmp_path)], cwd=Path(__file__).parents[2])
    try:
        pids = await pids_in(tmp_path, 6)
        assert worker.pid not in pids
        assert all(map(alive, pids))
        guard, folder = int((tmp_path / "guard").read_text()), Path((tmp_path / "folder").read_text())

        os.kill(worker.pid, number)

        await eventually(lambda: not any(map(alive, [*pids, guard])))
        await eventually(lambda: not folder.exists())
    finally:
        worker.kill()
        worker.wait()


async def test_a_worker_without_functions_runs_commands():
    async with shop(Jobs()) as it:
        assert (await it.run(shell("true"))).outcome == "success"
        assert isinstance(it.worker.session, WorkerSession)
