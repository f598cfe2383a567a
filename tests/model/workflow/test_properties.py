"""Random workflows with random outcomes, compared with a simple reference model."""

from contextlib import suppress
from random import Random

import pytest

from horae.errors import BadInput
from horae.model.workflows.decisions.values import undo_name
from horae.model.workflows.decisions.workflow import StepEnd, StepRow
from tests.model.workflow.graphs import random_workflow
from tests.model.workflow.reference import Reference
from tests.model.workflow.running import Memory

SIZES = (3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 60, 90, 120, 200)
SEEDS = [(seed, SIZES[seed % len(SIZES)]) for seed in range(64)]


@pytest.mark.parametrize(("seed", "size"), SEEDS)
def test_a_workflow_agrees_with_the_reference(seed, size):
    rng = Random(seed)
    workflow, params = made(rng, size)
    memory, book = Memory(workflow, params), Reference(workflow, params)
    memory.begin()
    course = Course(rng, memory, book)
    course.compare()
    while memory.end is None:
        course.advance()
        course.compare()
    course.check_the_whole()


def made(rng, size):
    """Return a random workflow in which every step can run."""
    while True:
        with suppress(BadInput):  # a rule that can never match
            return random_workflow(rng, size)


class Course:
    """A random sequence of events of a workflow: children end; users cancel, pause and resume."""

    def __init__(self, rng, memory, book):
        self.rng, self.memory, self.book = rng, memory, book
        self.dangers = rng.choice((0.05, 0.2, 0.5))
        self.stops = rng.random() < 0.3
        self.undone = []

    def advance(self):
        memory, rng = self.memory, self.rng
        open_steps = memory.in_state("running", "waiting")
        if self.stops and rng.random() < 0.03:
            verdict = rng.choice(("cancelled", "failed"))
            memory.cancel() if verdict == "cancelled" else memory.time_out()
            self.book.stop(verdict)
        elif memory.workflow.paused and (not open_steps or rng.random() < 0.3):
            memory.resume()
            self.book.resume()
        elif not memory.workflow.paused and rng.random() < 0.03:
            memory.pause()
            self.book.pause()
        else:
            assert open_steps, f"nothing goes on, and it has not ended: {memory.states}"
            self.end_one(memory.rows[rng.choice(open_steps)])

    def end_one(self, row: StepRow):
        state = self.fate()
        if not row.total:
            self.memory.done(row.step, {"n": 1} if state == "success" else None, state)
            if row.phase != "undo":
                self.book.ended(row.step, state)
            return
        count = self.rng.randint(1, row.total - row.ok - row.bad)
        bad = count if state == "cancelled" else sum(self.rng.random() < self.dangers for _ in range(count))
        if row.phase != "undo":
            self.memory.items[row.step] = tuple(range(row.ok + count - bad))
        cancelled = bad if state == "cancelled" else 0
        self.memory.ends(StepEnd(step=row.step, state=state, ok=count - bad, bad=bad, cancelled=cancelled))
        if row.phase != "undo":
            self.book.items(row.step, count - bad, bad, state)

    def fate(self):
        if self.memory.workflow.stopped and self.rng.random() < 0.7:
            return "cancelled"
        if self.rng.random() < self.dangers:
            return self.rng.choice(("failed", "failed", "cancelled", "skipped"))
        return "success"

    def hear_of_undoings(self):
        """Report newly ended steps in their order; the reference does not know their numbers of items."""
        over = [row for row in self.memory.rows.values() if row.phase == "undo" and row.is_final]
        for row in sorted(over, key=lambda row: row.ended_seq):
            if row.step not in self.undone:
                self.undone.append(row.step)
                self.book.ended(row.step, row.state)

    def compare(self):
        memory, book = self.memory, self.book
        self.hear_of_undoings()
        shown = {name: state for name, state in memory.states.items() if not name.endswith(":undo")}
        meant = {name: state for name, state in book.states.items() if not name.endswith(":undo")}
        assert shown == meant
        assert (memory.workflow.phase, memory.workflow.verdict) == (book.phase, book.verdict)
        assert (memory.end.state if memory.end else None) == book.over
        left = [row for row in memory.rows.values() if row.phase == memory.workflow.phase and not row.is_final]
        assert memory.workflow.left == len(left)
        assert memory.workflow.open == sum(row.state in ("running", "waiting") for row in left)

    def check_the_whole(self):
        memory, book = self.memory, self.book
        assert all(row.is_final for row in memory.rows.values())
        order = [row.ended_seq for row in memory.rows.values() if row.ended_seq is not None]
        assert len(order) == len(set(order))
        self.check_upstreams()
        self.check_undoing()
        edges = sum(len(node.upstreams) for node in memory.plan.nodes.values())
        assert memory.asked <= 12 * (edges + len(memory.rows) + len(memory.started))
        assert book.over == memory.end.state

    def check_upstreams(self):
        """Check that no step began before its upstreams ended, or before one of them for rules that need only one."""
        rows = self.memory.rows
        for name, at in self.memory.began.items():
            node = self.memory.plan.nodes.get(name)
            if node is None:
                continue
            before = [rows[up].ended_at is not None and rows[up].ended_at <= at for up in node.upstreams]
            assert any(before) or not before if node.step.join in ("oneSuccess", "oneFailed") else all(before)

    def check_undoing(self):
        """Check that completed steps are undone, last first."""
        undone = [name.removesuffix(undo_name("")) for name in self.undone]
        assert sorted(undone) == sorted(self.book.undo)
        times = [self.book.ended_at[name] for name in undone]
        assert times == sorted(times, reverse=True)
