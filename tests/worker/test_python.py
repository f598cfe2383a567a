"""Python functions: on the loop, in threads and in child processes."""

import asyncio
import os
from pathlib import Path

import pytest

from horae.env import SECOND
from horae.errors import Conflict
from horae.model.definitions.retry import RetryPolicy
from horae.model.definitions.tasks import PythonTask
from horae.model.definitions.timeouts import Timeouts
from tests.waiting import eventually
from tests.worker.functions import app
from tests.worker.local import Jobs, Shop, result, shop
from tests.worker.test_command import alive, pids_in


def python(function: str, isolation: str | None = None) -> PythonTask:
    return PythonTask(function=function, isolation=isolation)


async def loaded(it: Shop) -> None:
    """Wait until an idle child process has loaded the functions' module, which takes long on a busy machine."""
    await it.run(python("add", "process"), {"a": 1}, name="first")


ADD = [python("add"), python("add_async"), python("add", "process"), python("add_async", "process")]


@pytest.mark.parametrize("task", ADD)
async def test_a_function_runs_with_its_params(task):
    async with shop(app) as it:
        parcel = it.submit(task, {"a": 1}, {"a": 1, "b": 1}, params={"b": 5})

        assert [result(await it.outcome(parcel, i)) for i in range(2)] == [6, 2]


@pytest.mark.parametrize("task", ADD)
async def test_wrong_params_are_a_permanent_failure_that_says_which(task):
    async with shop(app) as it:
        outcome = await it.run(task, {"a": "x"})

        assert (outcome.error.type, outcome.error.permanent) == ("BadParams", True)
        assert "$.a" in outcome.error.message


async def test_annotations_decide_what_arrives():
    async with shop(app) as it:
        assert result(await it.run(python("typed"), {"day": "2026-11-15", "point": {"x": 3}})) == {
            "day": "2026-11-15",
            "x": 3,
        }


async def test_many_short_executions_all_arrive():
    async with shop(app) as it:
        parcel = it.submit(python("add"), *[{"a": i} for i in range(1000)])
        await eventually(lambda: len(it.gateway.finished) == 1000)
        results = {
            lo: raw
            for outcome in it.gateway.outcomes
            if outcome.parcel == parcel
            for lo, raw in enumerate(outcome.results, outcome.lo)
        }

        assert [int(bytes(results[i])) for i in range(1000)] == [i + 2 for i in range(1000)]
        assert len(it.gateway.outcomes) < 200, "they travel together"


FAIL = [python("fail"), python("fail_async"), python("fail", "process")]


@pytest.mark.parametrize("task", FAIL)
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("retry", ("failed", "Retry", False, 600 * SECOND)),
        ("give up", ("failed", "GiveUp", True, None)),
        ("exit", ("failed", "SystemExit", False, None)),
        ("other", ("failed", "KeyError", False, None)),
        ("surrogate", ("failed", "ValueError", False, None)),
    ],
)
async def test_exceptions_say_how_an_attempt_ended(task, kind, expected):
    async with shop(app) as it:
        outcome = await it.run(task, {"kind": kind})
        error = outcome.error

        assert (outcome.outcome, error.type, error.permanent, error.retry_after) == expected
        assert "functions.py" in error.traceback
        assert "horae/worker" not in error.traceback


@pytest.mark.parametrize("task", FAIL)
async def test_a_function_may_say_that_it_is_cancelled(task):
    async with shop(app) as it:
        assert (await it.run(task, {"kind": "cancel"})).outcome == "cancelled"


@pytest.mark.parametrize("isolation", [None, "process"])
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("key", ("KeyError", False, 60 * SECOND)),
        ("value", ("ValueError", True, None)),
        ("other", ("OSError", False, None)),
    ],
)
async def test_a_jobs_own_rule_is_called_after_a_failure(isolation, kind, expected):
    async with shop(app) as it:
        error = (await it.run(python("ruled", isolation), {"kind": kind})).error

        assert (error.type, error.permanent, error.retry_after) == expected


@pytest.mark.parametrize("isolation", ["thread", "process"])
async def test_an_error_is_reported_with_its_class_and_parents(isolation):
    async with shop(app) as it:
        error = (await it.run(python("fail", isolation), {"kind": "x"})).error

        assert error.names == ("KeyError", "LookupError", "Exception")
        assert (error.kind, error.status, error.permanent) == ("error", None, False)


@pytest.mark.parametrize("isolation", [None, "process"])
async def test_results_that_cannot_be_stored_fail_clearly(isolation):
    async with shop(app) as it:
        odd = await it.run(python("unencodable", isolation))
        large = await it.run(python("large", isolation), {"size": 1100000}, name="large")

        assert (odd.error.type, odd.error.permanent) == ("BadResult", True)
        assert (large.error.type, large.error.permanent) == ("ResultTooLarge", True)


@pytest.mark.parametrize("task", [python("talk"), python("talk_async"), python("talk", "process")])
async def test_the_context_has_facts_and_reports(task):
    async with shop(app) as it:
        parcel = it.submit(task, {"folder": "f"}, timeout=60 * SECOND, tags={"team": "a"}, params={"folder": "g"})
        told = result(await it.outcome(parcel))
        lines = it.gateway.lines(parcel, 0, "log")

        assert told["id"] == str(parcel)
        assert (told["job"], told["attempt"], told["failures"], told["token"]) == ("job", 1, 0, (1 << 32) + 1)
        assert (told["params"], told["same"], told["deadline"], told["tags"]) == (
            {"folder": "f"},
            True,
            True,
            {"team": "a"},
        )
        assert lines == ["INFO hello", "WARNING 3 left", "INFO app: through logging"]
        assert [(p.percent, p.message) for p in it.gateway.progress] == [(50, "half")]
        if task.isolation == "process":
            assert it.gateway.lines(parcel, 0, "stdout") == ["printed"]


@pytest.mark.parametrize(
    "task", [python("wait"), python("sleep"), python("wait", "process"), python("sleep", "process")]
)
@pytest.mark.parametrize(("kind", "expected"), [("cancel", "cancelled"), ("preempt", "released")])
async def test_a_running_function_can_be_stopped(tmp_path, task, kind, expected):
    async with shop(app, heartbeat=1.0) as it:
        parcel = it.submit(task, {"folder": str(tmp_path)})
        await pids_in(tmp_path, 1)
        it.gateway.ask(parcel, 0, kind)

        await eventually(lambda: [o for o in it.gateway.outcomes if o.outcome == expected])
        if task.function == "sleep":
            assert (tmp_path / "up.cleaned").exists()


async def test_a_cancelled_neighbour_does_not_disturb_the_others(tmp_path):
    async with shop(app, heartbeat=1.0, concurrency=3) as it:
        parcel = it.submit(python("sleep"), *[{"folder": str(tmp_path), "name": str(i)} for i in range(3)])
        await pids_in(tmp_path, 3)
        it.gateway.ask(parcel, 1, "cancel")

        assert (await it.outcome(parcel, 1)).outcome == "cancelled"
        assert len(it.gateway.running) == 2


async def test_a_sync_function_with_a_timeout_runs_in_a_process_and_is_killed(tmp_path):
    async with shop(app) as it:
        await loaded(it)
        parcel = it.submit(python("breed"), {"folder": str(tmp_path)}, timeout=2 * SECOND)
        pids = await pids_in(tmp_path, 2)
        outcome = await it.outcome(parcel)

        assert os.getpid() not in pids
        assert outcome.error.type == "RunTimeout"
        await eventually(lambda: not any(map(alive, pids)), within=5)


async def test_a_function_in_a_process_may_clean_up(tmp_path):
    async with shop(app) as it:
        await loaded(it)
        outcome = await it.run(python("clean"), {"folder": str(tmp_path)}, timeout=SECOND, grace=10 * SECOND)

        assert outcome.error.type == "RunTimeout"
        assert (tmp_path / "cleaned").exists()


@pytest.mark.parametrize("isolation", ["thread", "process"])
async def test_a_function_that_falls_silent_is_stopped(isolation):
    async with shop(app, replace=False) as it:
        await loaded(it)
        silence = Timeouts(heartbeat=SECOND // 2)
        outcome = await it.run(python("beat", isolation), {"times": 10}, timeouts=silence)

        assert (outcome.error.type, outcome.error.kind) == ("HeartbeatTimeout", "timeout")
        assert outcome.ended_at[0] - outcome.started_at[0] > SECOND, "what it told kept it alive"
        assert {told.percent for told in it.gateway.progress} == {None}, "the server heard of it"


async def test_the_total_timeout_stops_an_execution_in_any_attempt(tmp_path):
    async with shop(app) as it:
        outcome = await it.run(python("sleep"), {"folder": str(tmp_path)}, retry=RetryPolicy(within=SECOND // 5))

        assert (outcome.error.type, outcome.error.kind) == ("TotalTimeout", "timeout")


async def test_an_async_function_times_out(tmp_path):
    async with shop(app) as it:
        outcome = await it.run(python("sleep"), {"folder": str(tmp_path)}, timeout=SECOND // 5)

        assert outcome.error.type == "RunTimeout"
        assert (tmp_path / "up.cleaned").exists()


async def test_a_thread_that_times_out_fails_at_once_and_keeps_its_slot(tmp_path):
    async with shop(app, concurrency=2, replace=False) as it:
        stuck = it.submit(python("stuck", "thread"), {"folder": str(tmp_path), "seconds": 3}, timeout=SECOND // 5)
        outcome = await it.outcome(stuck)
        assert outcome.error.type == "RunTimeout"
        assert len(it.worker.session.stock.chunks) == 1

        assert result(await it.run(python("add"), {"a": 1}, name="other")) == 3
        await eventually(lambda: not it.worker.session.stock.chunks)
        assert len(it.gateway.outcomes) == 2, "its late result is nobody's"


async def test_a_worker_with_a_thread_that_will_not_stop_replaces_itself(tmp_path):
    async with shop(app, concurrency=2, replace=True) as it:
        it.submit(python("stuck", "thread"), {"folder": str(tmp_path)}, timeout=SECOND // 5, grace=SECOND // 10)

        assert await asyncio.wait_for(it.end, 30) == "replace"
        assert it.gateway.outcomes[0].error.type == "RunTimeout"


async def test_a_coroutine_that_will_not_stop_is_reported_and_keeps_its_slot(tmp_path):
    async with shop(app, concurrency=2, replace=False) as it:
        outcome = await it.run(python("deaf"), {"folder": str(tmp_path)}, timeout=SECOND // 5, grace=SECOND // 5)

        assert outcome.error.type == "RunTimeout"
        assert len(it.worker.session.stock.chunks) == 1
        Path(tmp_path, "go").touch()
        await eventually(lambda: not it.worker.session.stock.chunks)


@pytest.mark.parametrize(("how", "said"), [("segfault", "SIGSEGV"), ("exit", "exit code 7")])
async def test_a_crash_takes_down_one_execution(how, said):
    async with shop(app) as it:
        outcome = await it.run(python("crash", "process"), {"how": how})
        assert (outcome.outcome, outcome.error.type) == ("failed", "WorkerProcessDied")
        assert said in outcome.error.message

        assert result(await it.run(python("add", "process"), {"a": 1}, name="after")) == 3


async def test_child_processes_are_used_again():
    async with shop(app, concurrency=1) as it:
        parcel = it.submit(python("where", "process"), {}, {}, {})
        pids = {result(await it.outcome(parcel, i)) for i in range(3)}

        assert len(pids) == 1
        assert pids != {os.getpid()}


@pytest.mark.parametrize(
    "task",
    [python("children"), python("children_sync"), python("children", "process"), python("children_sync", "process")],
)
async def test_submissions_of_a_running_job_are_the_same_in_every_attempt(task):
    async with shop(app) as it:
        parcel = it.submit(task, {"fails": True}, retry=RetryPolicy(retries=1))
        ids = result(await it.outcome(parcel))
        calls = [body.call for body in it.transport.submitted]

        assert it.transport.submitted[0].attempt == 1
        assert it.transport.submitted[-1].attempt == 2
        assert calls == (["1", "2"] * 2 if task.function == "children" else ["1"] * 2)
        assert ids == [str(c.execution_id) for children in it.transport.children.values() for c in children]


async def test_options_of_child_submissions():
    async with shop(app) as it:
        await it.run(python("children"))
        first = it.transport.submitted[0].submissions[0]

        assert (first.job, bytes(first.params), first.delay, first.priority) == ("other", b'{"n":1}', SECOND, 7)


@pytest.mark.parametrize("isolation", [None, "process"])
async def test_steps_are_remembered(tmp_path, isolation):
    async with shop(app) as it:
        parcel = it.submit(python("steps", isolation), {"folder": str(tmp_path)}, retry=RetryPolicy(retries=1))
        assert result(await it.outcome(parcel)) == [1, "b"]

        sync = it.submit(python("steps_sync", isolation), {"folder": ""}, retry=RetryPolicy(retries=1), name="sync")
        assert result(await it.outcome(sync)) == {"day": "2026-11-15", "n": 1}


async def test_a_refusal_by_the_server_is_an_error_of_the_running_job():
    async with shop(app) as it:

        async def refuse(*_: object) -> None:
            raise Conflict("not yours", "Stop.")

        it.transport.submit_children = refuse
        outcome = await it.run(python("children"))

        assert (outcome.error.type, outcome.error.message) == ("Conflict", "not yours Stop.")


async def test_submissions_that_the_server_leaves_out_are_an_error():
    async with shop(app) as it:

        async def none_of_them(*_: object) -> list[object]:
            return []

        it.transport.submit_children = none_of_them
        outcome = await it.run(python("children"))

        assert (outcome.error.type, "0 of 1" in outcome.error.message) == ("BadInput", True)


async def test_items_that_look_like_submissions_are_no_children():
    async with shop(app) as it:
        outcome = await it.run(python("children_in_envelopes"))

        assert (outcome.error.type, "items are params" in outcome.error.message) == ("TypeError", True)


async def test_params_of_a_child_by_keyword_are_refused_with_a_remedy():
    async with shop(app) as it:
        outcome = await it.run(python("child_by_keyword"))

        assert outcome.error.message == 'give the params as one mapping, submit("other", {...}), and not as n=...'


async def test_an_error_without_a_message_is_reported_by_its_name():
    async with shop(app) as it:
        outcome = await it.run(python("says_nothing"))

        assert (outcome.error.type, outcome.error.message) == ("AssertionError", "AssertionError")


async def test_a_key_error_says_that_it_is_one():
    async with shop(app) as it:
        outcome = await it.run(python("fail"), {"kind": "amount"})

        assert (outcome.error.type, outcome.error.message) == ("KeyError", "KeyError: 'amount'")


async def test_a_function_this_worker_does_not_have_is_named():
    async with shop(app) as it:
        outcome = await it.run(python("nowhere"))

        assert outcome.error.type == "FunctionNotFound"
        assert "nowhere" in outcome.error.message


async def test_a_function_that_cannot_be_found_by_others_cannot_have_a_process():
    def local(n: int = 1) -> int:
        return n

    async with shop(Jobs(local)) as it:
        refused = await it.run(python("local", "process"))
        assert (refused.error.type, refused.error.permanent) == ("BadDefinition", True)

        assert result(await it.run(python("local"), name="timed", timeout=60 * SECOND)) == 1


async def test_a_thousand_sleeping_coroutines_fit_in_a_small_worker(tmp_path):
    started = 0

    async def nap() -> None:
        nonlocal started
        started += 1
        await asyncio.Event().wait()

    before = resident()
    async with shop(Jobs(nap), concurrency=1000) as it:
        it.submit(python("nap"), *[{}] * 1000)
        await eventually(lambda: started == 1000)

        assert resident() - before < 100 * 1024 * 1024


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


async def test_a_started_at_most_once_item_is_not_handed_back(tmp_path):
    async with shop(app, heartbeat=1.0) as it:
        parcel = it.submit(python("sleep"), {"folder": str(tmp_path)}, delivery="at-most-once")
        await pids_in(tmp_path, 1)
        it.gateway.ask(parcel, 0, "preempt")
        outcome = await it.outcome(parcel)

        assert (outcome.outcome, outcome.error.type) == ("failed", "Interrupted")


async def test_a_function_in_its_own_process_has_variables_that_others_do_not_see(monkeypatch):
    monkeypatch.setenv("HORAE_KEY", "hk_secret")
    async with shop(app) as it:
        assert result(await it.run(python("environment", "process"))) == [True, False]
