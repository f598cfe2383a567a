"""What is undone: one after another whatever people do meanwhile, and not taken over by a rerun."""

from horae.model.workflow.flow import Ended
from horae.model.workflow.rerun import kept_steps
from tests.model.workflow.test_decide import job, running


def undoing():
    """Three steps that are to be undone: c comes first, then b, then a."""
    memory = running(
        job("a", undo="u"), job("b", undo="u", after=["a"]), job("c", undo="u", after=["b"]), job("d", after=["c"])
    )
    memory.succeed("a", "b", "c")
    memory.done("d", state="failed")
    assert memory.started[-1] == "c:undo"
    return memory


def test_an_undoing_that_is_left_out_before_its_turn_changes_no_other_turn():
    memory = undoing()
    memory.ends(Ended(step="b:undo", forced=True, state="skipped"))
    assert (memory.started[-1], memory.in_state("running")) == ("c:undo", ["c:undo"])
    memory.done("c:undo")
    assert memory.started[-1] == "a:undo"
    memory.done("a:undo")
    assert memory.end.state == "failed"
    assert memory.states["b:undo"] == "skipped"


def test_an_undoing_that_is_left_out_in_its_turn_makes_room_for_the_next():
    memory = undoing()
    memory.ends(Ended(step="c:undo", forced=True, state="skipped"))
    assert (memory.last.cancel, memory.started[-1]) == (["c:undo"], "b:undo")


def test_cancelling_lets_a_paused_undoing_go_on():
    memory = undoing()
    memory.pause()
    memory.done("c:undo")
    assert memory.states["b:undo"] == "held"
    memory.go_on()
    memory.cancel()
    assert memory.started[-1] == "b:undo"
    memory.succeed("b:undo", "a:undo")
    assert memory.end.state == "failed"


def test_cancelling_starts_no_second_undoing():
    memory = undoing()
    memory.cancel()
    assert memory.started[-1] == "c:undo"
    assert memory.started.count("c:undo") == 1


def test_a_rerun_does_again_what_was_undone():
    memory = undoing()
    memory.ends(Ended(step="a:undo", forced=True, state="skipped"))
    memory.done("c:undo", state="failed")
    memory.done("b:undo")
    assert memory.end.state == "failed"
    assert kept_steps(memory.plan, memory.rows, "failed") == ["a"]
