"""Undo steps: they run one after another despite actions of users, and a rerun does not reuse undone steps."""

import pytest

from horae.errors import BadInput
from horae.model.workflows.decisions.rerun import reused_steps
from horae.model.workflows.decisions.workflow import StepEnd
from tests.model.workflow.test_decide import given, job, running


def undoing():
    """Return a workflow with three steps to undo: c first, then b, then a."""
    memory = running(
        job("a", undo="u"), job("b", undo="u", after=["a"]), job("c", undo="u", after=["b"]), job("d", after=["c"])
    )
    memory.succeed("a", "b", "c")
    memory.done("d", state="failed")
    assert memory.started[-1] == "c:undo"
    return memory


def test_an_undo_step_skipped_early_keeps_the_order_of_the_others():
    memory = undoing()
    memory.ends(StepEnd(step="b:undo", forced=True, state="skipped"))
    assert (memory.started[-1], memory.in_state("running")) == ("c:undo", ["c:undo"])
    memory.done("c:undo")
    assert memory.started[-1] == "a:undo"
    memory.done("a:undo")
    assert memory.end.state == "failed"
    assert memory.states["b:undo"] == "skipped"


def test_an_undo_step_skipped_in_its_turn_starts_the_next():
    memory = undoing()
    memory.ends(StepEnd(step="c:undo", forced=True, state="skipped"))
    assert (memory.last.cancel, memory.started[-1]) == (["c:undo"], "b:undo")


def test_cancelling_resumes_a_paused_undo():
    memory = undoing()
    memory.pause()
    memory.done("c:undo")
    assert memory.states["b:undo"] == "held"
    memory.unpause()
    memory.cancel()
    assert memory.started[-1] == "b:undo"
    memory.succeed("b:undo", "a:undo")
    assert memory.end.state == "failed"


def test_cancelling_starts_no_second_undo():
    memory = undoing()
    memory.cancel()
    assert memory.started[-1] == "c:undo"
    assert memory.started.count("c:undo") == 1


def test_a_rerun_repeats_undone_steps():
    memory = undoing()
    memory.ends(StepEnd(step="a:undo", forced=True, state="skipped"))
    memory.done("c:undo", state="failed")
    memory.done("b:undo")
    assert memory.end.state == "failed"
    assert reused_steps(memory.plan, memory.rows, "failed").whole == ["a"]


def fanned(**undo):
    """Return a foreach of three items: the first and the last succeeded before another step failed."""
    each = job("a", foreach={"items": "${params.list}", "tolerate": 1}, undo={"job": "u", **undo})
    memory = running(each, job("b", after=["a"]), params={"list": ["x", "y", "z"]})
    memory.ends(StepEnd(step="a", ok=2, bad=1))
    memory.items["a"] = (0, 2)
    return memory


def test_successful_items_of_a_foreach_are_undone_last_first():
    memory = fanned(params={"it": "${item}", "n": "${index}", "why": "${error.step}"})
    memory.done("b", state="failed")
    (start,) = memory.last.starts
    assert (start.step, start.ordered, start.concurrency) == ("a:undo", True, None)
    assert given(memory, "a:undo") == [{"it": "z", "n": 2, "why": "b"}, {"it": "x", "n": 0, "why": "b"}]
    memory.ends(StepEnd(step="a:undo", bad=1, state="failed"))
    assert (memory.end, memory.last.cancel) == (None, [])
    memory.ends(StepEnd(step="a:undo", ok=1))
    assert memory.end.state == "failed"
    assert (memory.states["a:undo"], memory.rows["a:undo"].error.type) == ("failed", "NotUndone")


def test_an_item_undo_without_params_gets_the_params_of_the_item():
    memory = fanned()
    memory.cancel()
    memory.done("b", state="cancelled")
    assert given(memory, "a:undo") == [{"item": "z", "index": 2}, {"item": "x", "index": 0}]
    memory.ends(StepEnd(step="a:undo", ok=2))
    assert (memory.end.state, memory.states["a:undo"]) == ("cancelled", "success")


def test_undoing_a_foreach_without_items_does_nothing():
    each = job("a", foreach={"items": "${params.list}"}, undo="u")
    memory = running(each, job("b", after=["a"]), params={"list": []})
    memory.done("b", state="failed")
    assert (memory.end.state, memory.states["a:undo"]) == ("failed", "success")


def test_the_undo_of_a_single_step_has_no_item():
    with pytest.raises(BadInput, match="item"):
        running(job("a", undo={"job": "u", "params": {"x": "${item}"}}))
