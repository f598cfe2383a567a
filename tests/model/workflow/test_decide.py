"""Decisions after steps of a workflow end: params, waits, and the result of the whole workflow."""

import msgspec
import pytest

from horae.env import SECOND
from horae.model.workflows.decisions.workflow import StepEnd
from horae.model.workflows.reading.workflow import parse_workflow
from tests.model.workflow.running import Memory


def running(*steps, params=None, copied=None, **more):
    """Return a started workflow; `more` are further fields of the workflow or its flow."""
    flow = {name: more.pop(name) for name in ("breakpoints", "paused") if name in more}
    memory = Memory(parse_workflow({"steps": list(steps), **more}), params, **flow)
    memory.begin(**({} if copied is None else {"copied": copied}))
    return memory


def given(memory, step):
    """Return the params with which a step was last started."""
    start = next(start for start in memory.last.starts if start.step == step)
    items = [msgspec.json.decode(item) for item in start.items]
    return items if start.foreach else items[0]


def result(memory):
    return None if memory.end.result is None else msgspec.json.decode(memory.end.result)


def job(name, **fields):
    return {"name": name, "job": "j", **fields}


def test_results_are_passed_to_steps_that_refer_to_them():
    memory = running(
        job("a"), job("b", params={"rows": "${steps.a.result.rows}", "text": "of ${params.day}"}), params={"day": 3}
    )
    memory.done("a", {"rows": [1, 2]})
    assert given(memory, "b") == {"rows": [1, 2], "text": "of 3"}
    memory.done("b", "done")
    assert (memory.end.state, result(memory)) == ("success", "done")


def test_an_inline_step_gets_the_workflows_params_and_a_named_job_its_own():
    memory = running(
        job("a"), {"name": "b", "command": "true"}, {"name": "c", "command": "true", "params": {}}, params={"d": 1}
    )
    assert [given(memory, step) for step in "abc"] == [{}, {"d": 1}, {}]


def test_a_step_reads_only_the_results_it_refers_to():
    memory = running(*[job(f"s{i}", **({"after": [f"s{i - 1}"]} if i else {})) for i in range(50)])
    for i in range(49):
        before = memory.asked
        memory.done(f"s{i}")
        assert memory.asked - before == 2  # itself, and its follower


def test_a_foreach_counts_and_tolerates():
    memory = running(
        job("a", foreach={"items": "${params.list}", "tolerate": 1}), job("b", after=["a"]), params={"list": [1, 2, 3]}
    )
    assert given(memory, "a") == [{"item": 1, "index": 0}, {"item": 2, "index": 1}, {"item": 3, "index": 2}]
    memory.ends(StepEnd(step="a", ok=1))
    memory.ends(StepEnd(step="a", ok=1, bad=1))
    assert memory.states == {"a": "success", "b": "running"}


def test_a_foreach_that_fails_too_often_is_stopped():
    memory = running(job("a", foreach={"items": [{"x": 1}, {"x": 2}, {"x": 3}], "concurrency": 2}))
    start = memory.last.starts[0]
    assert (given(memory, "a"), start.concurrency) == ([{"x": 1}, {"x": 2}, {"x": 3}], 2)
    memory.ends(StepEnd(step="a", bad=1, state="failed"))
    assert memory.last.cancel == ["a"]
    memory.ends(StepEnd(step="a", bad=2, state="cancelled"))
    assert (memory.states["a"], memory.rows["a"].error.type) == ("failed", "TooManyFailed")
    assert memory.end.state == "failed"


def test_a_foreach_stopped_with_its_workflow_is_cancelled():
    for last in ({"ok": 1}, {"bad": 1, "state": "cancelled"}):
        memory = running(job("a", foreach={"items": [1, 2, 3]}))
        memory.cancel()
        memory.ends(StepEnd(step="a", bad=2, state="cancelled"))
        assert memory.last.cancel == []
        memory.ends(StepEnd(step="a", **last))
        assert (memory.states["a"], memory.end.state) == ("cancelled", "cancelled")


@pytest.mark.parametrize(
    ("items", "told"),
    [
        ("${params.text}", "which is not a list"),
        ("${params.list}", "at most 2 are allowed"),
        ("${params.no}", "no 'no'"),
    ],
)
def test_a_foreach_over_a_value_that_is_no_list_fails_its_step(items, told):
    memory = Memory(parse_workflow([job("a", foreach=items)]), {"text": "x", "list": [1, 2, 3]})
    memory.about = msgspec.structs.replace(memory.about, most_items=2)
    memory.begin()
    assert told in memory.rows["a"].error.message
    assert memory.end.state == "failed"


def test_a_loop_sees_its_last_run_and_is_bounded():
    loop = {"until": "${steps.a.result.done}", "params": {"n": "${index}"}, "every": "10s", "maxRuns": 2}
    memory = running(job("a", **loop), job("b", params={"x": "${steps.a.result.done}"}))
    memory.done("a", {"done": False})
    assert (given(memory, "a"), memory.last.starts[0].delay) == ({"n": 1}, 10 * SECOND)
    memory.done("a", {"done": True})
    assert given(memory, "b") == {"x": True}

    memory = running(job("a", **loop))
    memory.done("a", {"done": False})
    memory.done("a", {"done": False})
    assert (memory.rows["a"].reason, memory.rows["a"].error.type) == ("bound", "LoopBound")


def test_a_condition_that_is_not_boolean_fails_its_step():
    memory = running(job("a", when="${params.n}"), params={"n": 3})
    assert "gave '3', neither true nor false" in memory.rows["a"].error.message
    assert memory.rows["a"].reason == "expression"


def test_a_switch_chooses_and_joins_continue_after_it():
    steps = (
        {"name": "w", "switch": [{"when": "${params.n > 5}", "then": ["big"]}, {"else": ["small"]}]},
        job("big"),
        job("small"),
        job("after", after=["big", "small"], join="noneFailedOneSuccess"),
    )
    memory = running(*steps, params={"n": 9})
    assert (memory.states["small"], memory.rows["small"].reason) == ("skipped", "switch")
    memory.done("big")
    assert memory.states["after"] == "running"


def test_failures_by_mode():
    steps = (job("a"), job("b"), job("c", after=["b"]))
    memory = running(*steps)
    memory.done("a", state="failed")
    assert (memory.last.stop, memory.states["c"], memory.workflow.state) == (True, "skipped", "failing")
    memory.done("b", state="cancelled")
    assert (memory.end.state, memory.end.error.message, memory.workflow.cause) == ("failed", "no", "a")

    memory = running(*steps, onError="finish")
    memory.done("a", state="failed")
    assert (memory.last.stop, memory.states["c"], memory.end) == (False, "skipped", None)
    memory.done("b")
    assert memory.end.state == "failed"

    memory = running(*steps, onError="ignore")
    memory.done("a", state="failed")
    memory.succeed("b", "c")
    assert memory.end.state == "success"


def test_a_failure_handled_by_a_follower_does_not_fail_the_workflow():
    memory = running(job("a"), job("b", after=["a"], join="oneFailed"), job("c", after=["a"]))
    memory.done("a", state="failed")
    assert memory.states == {"a": "failed", "b": "running", "c": "skipped"}
    memory.done("b")
    assert memory.end.state == "success"


def test_steps_are_undone_last_first_and_handlers_follow():
    undo = {"job": "u", "params": {"r": "${steps.a.result}", "why": "${error.message}"}}
    memory = running(
        job("a", undo=undo),
        job("b", undo="u"),
        job("c", after=["a", "b"]),
        onFailure=[job("tell", params={"of": "${error.step}"})],
        **{"finally": [job("clean")]},
    )
    memory.done("b")
    memory.done("a", 7)
    memory.done("c", state="failed")
    assert (memory.workflow.state, memory.last.starts[0].step) == ("undoing", "a:undo")
    assert given(memory, "a:undo") == {"r": 7, "why": "no"}
    memory.done("a:undo", state="failed")
    assert memory.last.starts[0].step == "b:undo"
    memory.done("b:undo")
    assert given(memory, "tell") == {"of": "c"}
    memory.succeed("tell", "clean")
    assert (memory.end.state, memory.workflow.cause) == ("failed", "c")


def test_a_cancelled_workflow_undoes_and_cleans_up():
    memory = running(
        job("a", undo="u"),
        job("b", after=["a"]),
        job("c", after=["b"]),
        onFailure=[job("no")],
        **{"finally": [job("f")]},
    )
    memory.done("a")
    memory.cancel()
    assert (memory.last.stop, memory.states["c"]) == (True, "cancelled")
    memory.done("b", state="cancelled")
    memory.succeed("a:undo", "f")
    assert (memory.end.state, memory.end.reason) == ("cancelled", "cancelled")
    assert "no" not in memory.rows


def test_a_pause_and_a_breakpoint_hold_ready_steps():
    memory = running(job("a"), job("b", after=["a"]), job("c", after=["b"]), breakpoints=frozenset({"c"}))
    memory.pause()
    memory.done("a")
    assert (memory.states["b"], memory.rows["b"].reason) == ("held", "paused")
    memory.resume()
    memory.done("b")
    assert (memory.states["c"], memory.rows["c"].reason) == ("held", "breakpoint")
    memory.resume()
    memory.done("c")
    assert memory.end.state == "success"


def test_waits_have_rendered_names_and_texts():
    memory = running(
        {"name": "nap", "sleep": "5s"},
        {"name": "night", "sleep": {"until": "${params.at}"}},
        {"name": "paid", "event": {"name": "paid-${params.n}", "timeout": "1m", "onTimeout": "skip"}},
        {"name": "ok", "approval": {"message": "of ${params.n}?", "remind": "2s"}},
        job("after", after=["nap", "night", "paid", "ok"], params={"who": "${steps.ok.result.by}"}),
        params={"at": "1970-01-01T00:01:00Z", "n": 4},
    )
    waits = {one.step: one for one in memory.last.awaits}
    assert (waits["nap"].wake_at, waits["night"].wake_at) == (5 * SECOND, 60 * SECOND)
    assert (waits["paid"].wait.name, waits["paid"].wake_at) == ("paid-4", 60 * SECOND)
    assert (waits["ok"].wait.message, waits["ok"].remind_at) == ("of 4?", 2 * SECOND)
    memory.succeed("nap", "night", "paid")
    memory.done("ok", {"by": "ada"})
    assert given(memory, "after") == {"who": "ada"}


def test_outputs():
    memory = running(job("a"), job("b"), output={"all": ["${steps.a.result}", "${steps.b.state}"]})
    memory.done("a", 1)
    memory.done("b", 2)
    assert result(memory) == {"all": [1, "success"]}

    memory = running(job("a"), job("b"))
    memory.done("a", 1)
    memory.done("b")
    assert result(memory) == {"a": 1, "b": None}

    memory = running(job("a"), output="${steps.a.result.x}")
    memory.done("a", {})
    assert (memory.end.state, memory.end.error.type) == ("failed", "ExpressionError")

    memory = running(job("a"), output="${steps.a.result + steps.a.result}")
    memory.done("a", "x" * 600_000)
    assert (memory.end.state, memory.end.error.type) == ("failed", "ResultTooLarge")


def test_a_rerun_reuses_the_steps_it_does_not_repeat():
    steps = (job("a"), job("b", params={"x": "${steps.a.result}"}), job("c", after=["b"]))
    before = running(*steps)
    before.done("a", 5)
    before.done("b", state="failed")
    again = running(*steps, copied={"a": before.rows["a"]})
    assert (again.states["a"], given(again, "b"), again.workflow.left) == ("success", {"x": 5}, 2)
    again.succeed("b", "c")
    assert again.end.state == "success"


def test_a_user_may_decide_the_end_of_a_step():
    memory = running(job("a"), job("b", after=["a"]), job("c", after=["b"]))
    memory.ends(StepEnd(step="b", forced=True, state="skipped", reason="by hand"))
    assert memory.states == {"a": "running", "b": "skipped", "c": "skipped"}
    memory.ends(StepEnd(step="a", forced=True, result=b"3"))
    assert (memory.last.cancel, memory.end.state) == (["a"], "success")


def test_an_outdated_end_changes_nothing():
    memory = running(job("a"), job("b", after=["a"]))
    memory.done("a")
    before = dict(memory.rows)
    memory.done("a", state="failed")
    assert memory.rows == before


def test_an_expression_that_cannot_be_computed_names_its_step_in_the_workflows_error():
    memory = running(job("a"), job("b", params={"n": "${steps.a.result.rows}"}))
    memory.done("a", {})
    assert memory.rows["b"].error.message == "${steps.a.result.rows}: there is no 'rows'."
    assert memory.end.error.message == "Step \"b\": ${steps.a.result.rows}: there is no 'rows'."
    memory = running(job("a"), output="${steps.a.result.rows}")
    memory.done("a", {})
    assert memory.end.error.message == "output: ${steps.a.result.rows}: there is no 'rows'."
