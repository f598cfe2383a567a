"""One round of decisions about a workflow: process ended steps, then start or end steps until nothing more follows."""

from collections.abc import Mapping, Sequence

from msgspec import structs

from horae.model.fleet.protocol import Failure
from horae.model.workflows.decisions import starting
from horae.model.workflows.decisions.ending import next_phase, output_of, undo_order
from horae.model.workflows.decisions.launching import Launching
from horae.model.workflows.decisions.plan import CATCHING, join
from horae.model.workflows.decisions.values import Phase, undo_name
from horae.model.workflows.decisions.workflow import (
    BREAKPOINT,
    GIVEN_UP,
    NOT_CHOSEN,
    NOT_JOINED,
    OPEN,
    TOLERANCE,
    Deciding,
    Decisions,
    Start,
    StepEnd,
    StepRow,
    Verdict,
    WorkflowResult,
)


class Round(Launching):
    """One round: takes the input, makes all decisions that follow from it, and returns them."""

    # Input

    def enter(self, phase: Phase, copied: Mapping[str, StepRow] | None = None) -> Deciding[None]:
        """Begin a phase: its steps are pending, and steps without upstreams are ready.

        `copied` has rows of ended steps that a rerun reuses; these steps do not run.
        """
        names = self.plan.order[phase]
        self.workflow = structs.replace(self.workflow, phase=phase, left=len(names), open=0, stopped=False)
        for name in names:
            node = self.plan.nodes[name]
            self._put(StepRow(step=name, phase=phase, missing=len(node.upstreams)), fresh=True)
            if not node.upstreams and name not in (copied or {}):
                self._ready.append(name)
        for name in names:
            if copied and name in copied:
                row = copied[name]
                reused = structs.replace(row, missing=0, ended_seq=self.workflow.ended, wake_at=None)
                self._put(reused)
                if row.total:
                    self._with_result.discard(name)
                self.workflow = structs.replace(
                    self.workflow, left=self.workflow.left - 1, ended=self.workflow.ended + 1
                )
                self._just_ended.append(name)
        yield from ()

    def process(self, ended_steps: Sequence[StepEnd]) -> Deciding[None]:
        """Record ended children and waits in the rows of their steps; outdated ones are ignored."""
        mine = {ended.step for ended in ended_steps}
        around = {name for step in mine for name in self._followers(step)} if self._is_active else set()
        yield from self._load(mine | around)
        for ended in ended_steps:
            row = self._rows.get(ended.step)
            if row is None or row.is_final or (row.state not in OPEN and not ended.forced):
                continue
            if ended.execution is not None and row.execution is not None and ended.execution != row.execution:
                continue
            if ended.forced:
                self._force(row, ended)
            elif row.total:
                self._count(row, ended)
            else:
                yield from self._end_single(row, ended)

    def resume(self, held: Sequence[StepRow]) -> Deciding[None]:
        """Make held steps ready again."""
        passed = {row.step for row in held if row.reason == BREAKPOINT}
        self.workflow = structs.replace(self.workflow, paused=False, breakpoints=self.workflow.breakpoints - passed)
        for row in held:
            self._rows[row.step] = row
            self._ready.append(row.step)
        yield from ()

    def resume_undoing(self) -> None:
        """If the workflow is undoing its steps, make the next undo step ready: a pause may have held it."""
        if self.workflow.phase == "undo":
            self._undo_next()

    def give_up(self, verdict: Verdict, failure: Failure | None, reason: str, *, stop: bool, cause: str = "") -> None:
        """Set the verdict and start nothing more in this phase; with `stop`, also cancel what is open.

        In the undo phase this has no effect: that phase always runs to its end.
        """
        if self.workflow.phase == "undo":
            return
        if self.workflow.verdict == "success" or (verdict == "cancelled" and self.workflow.phase == "main"):
            self.workflow = structs.replace(self.workflow, verdict=verdict, error=failure, reason=reason, cause=cause)
        self.workflow = structs.replace(self.workflow, left=self.workflow.open, stopped=True)
        self._decisions.unstarted_become = "cancelled" if verdict == "cancelled" else "skipped"
        self._decisions.stop |= stop and self.workflow.open > 0
        self._just_ended.clear()
        self._ready.clear()
        self._drop_pending(self._decisions.unstarted_become)

    def settle(self) -> Deciding[None]:
        """Decide until nothing more follows."""
        while self._decisions.end is None:
            if self._just_ended:
                yield from self._update_followers()
            elif self._ready:
                yield from self._launch_ready()
            elif self.workflow.left == 0:
                yield from self._go_to_next_phase()
            else:
                return

    def decisions(self) -> Decisions:
        """Return everything that was decided."""
        self._decisions.workflow = self.workflow
        self._decisions.rows = {name: self._rows[name] for name in self._changed}
        self._decisions.fresh = self._fresh
        return self._decisions

    # Ends

    def _end_single(self, row: StepRow, ended: StepEnd) -> Deciding[None]:
        """Process the end of a step's only child, or of a loop's current run."""
        node = self.plan.nodes.get(row.step)
        updated = structs.replace(row, result=ended.result, error=ended.error)
        self._rows[row.step] = updated
        self._with_result.add(row.step)
        again = None
        if node is not None and node.condition is not None and ended.state == "success":
            yield from self._load(results=node.needed_steps)
            again = self._starter.again(node, updated, self._rows, self.workflow)
        if isinstance(again, Start) and self._is_active:
            self._put(structs.replace(updated, iteration=again.iteration))
            self._decisions.starts.append(again)
        elif isinstance(again, Start):  # the workflow has stopped, so the loop cannot run again
            self._end(updated, "cancelled", ended.result, None, GIVEN_UP)
        elif isinstance(again, StepEnd):
            self._end(updated, again.state, again.result, again.error, again.reason)
        else:
            self._end(updated, ended.state, ended.result, ended.error, ended.reason)

    def _count(self, row: StepRow, ended: StepEnd) -> None:
        """Count ended items of a foreach. An undo step processes all its items, whatever their results."""
        node = self.plan.nodes.get(row.step)
        foreach = None if node is None else node.step.foreach
        most = foreach.tolerates(row.total) if foreach is not None else row.total
        counted = structs.replace(
            row, ok=row.ok + ended.ok, bad=row.bad + ended.bad, error=row.error or (ended.error if ended.bad else None)
        )
        exceeded = counted.bad > most
        if ended.cancelled and not self._is_active and row.reason != TOLERANCE:
            counted = structs.replace(counted, reason=GIVEN_UP)  # items were interrupted, so the step cannot succeed
        stopped = not self._is_active and (ended.state == "cancelled" or not ended.bad)  # no item failed by itself
        if counted.ok + counted.bad < row.total:
            if exceeded and row.reason != TOLERANCE and not self._decisions.stop and not stopped:
                counted = structs.replace(counted, reason=TOLERANCE)
                self._decisions.cancel.append(row.step)
            self._put(counted)
            return
        if foreach is None and counted.bad:
            self._end(counted, "failed", None, starting.not_undone(counted), "")
        elif foreach is not None and counted.reason == GIVEN_UP:
            self._end(counted, "cancelled", None, counted.error, GIVEN_UP)
        elif not exceeded:
            self._end(counted, "success", None, None, "")
        elif counted.reason != TOLERANCE and (stopped or ended.state == "cancelled"):
            self._end(counted, "cancelled", None, counted.error, ended.reason)
        else:
            self._end(counted, "failed", None, starting.too_many(counted, most), TOLERANCE)

    def _force(self, row: StepRow, ended: StepEnd) -> None:
        """End a step, whatever its state, as a user or a rerun decided."""
        if row.state in OPEN:
            self._decisions.cancel.append(row.step)
        elif self.workflow.phase == "undo" and row.state == "pending":  # the other undo steps keep their order
            rest = tuple(name for name in self.workflow.undo if undo_name(name) != row.step)
            self.workflow = structs.replace(self.workflow, undo=rest)
        self._with_result.add(row.step)
        self._end(row, ended.state, ended.result, ended.error, ended.reason)

    # Consequences of ends

    def _update_followers(self) -> Deciding[None]:
        """Update the followers of all ended steps, and collect those that may start."""
        ended, self._just_ended = self._just_ended, []
        if self.workflow.phase == "undo":
            self._undo_next()
            return
        for name in ended:
            yield from self._check_failure(name)
        if not self._is_active:
            return
        yield from self._load(name for step in ended for name in self.plan.nodes[step].followers)
        for name in ended:
            for follower in self.plan.nodes[name].followers:
                self._update_follower(self._rows[follower], name)

    def _update_follower(self, row: StepRow, upstream: str) -> None:
        if row.state != "pending":
            return
        outcome = self._outcome(upstream, row.step)
        row = structs.replace(
            row,
            missing=row.missing - 1,
            succeeded=row.succeeded + (outcome == "success"),
            failed=row.failed + (outcome == "failed"),
            skipped=row.skipped + (outcome == "skipped"),
        )
        self._put(row)
        verdict = join(self.plan.nodes[row.step].step.join, row)
        if verdict == "skip":
            chosen = self.plan.nodes[upstream].step.switch and self._rows[upstream].state == "success"
            self._end(row, "skipped", None, None, NOT_CHOSEN if chosen and outcome == "skipped" else NOT_JOINED)
        elif verdict == "start" and row.step not in self._ready:
            self._ready.append(row.step)

    def _outcome(self, name: str, follower: str) -> str:
        """Return the outcome of an ended upstream as one follower sees it."""
        row, step = self._rows[name], self.plan.nodes[name].step
        if row.state == "success" and step.switch:
            return starting.chosen(step, row, follower)
        if row.state in ("failed", "cancelled"):
            return "success" if step.ignore_failure else "failed"
        return row.state

    def _check_failure(self, name: str) -> Deciding[None]:
        """Fail the workflow if the ended step failed and no step handles the failure.

        If the step was skipped, check the failures of its upstreams: it may have been the last step that could handle
        them.
        """
        row, node = self._rows[name], self.plan.nodes[name]
        failed: list[str] = []
        if row.state in ("failed", "cancelled"):
            failed = [name]
        elif row.state == "skipped" and row.failed and node.step.join in CATCHING:
            yield from self._load(node.upstreams)
            failed = [up for up in node.upstreams if self._rows[up].state in ("failed", "cancelled")]
        yield from self._load(catcher for one in failed for catcher in self.plan.nodes[one].catchers)
        for one in failed:
            if all(self._rows[catcher].state == "skipped" for catcher in self.plan.nodes[one].catchers):
                self._fail_by(one)

    def _fail_by(self, name: str) -> None:
        """Apply an unhandled failure to the workflow."""
        row, mode = self._rows[name], self.plan.workflow.on_error
        if self.plan.nodes[name].step.ignore_failure or not self._is_active:
            return
        failure = starting.why_failed(row)
        if self.workflow.phase == "main":
            if mode != "ignore":
                self.give_up("failed", failure, "step", stop=mode == "fail", cause=name)
        elif self.workflow.verdict == "success":
            self.workflow = structs.replace(self.workflow, verdict="failed", error=failure, reason="step", cause=name)

    def _followers(self, name: str) -> Sequence[str]:
        node = self.plan.nodes.get(name)
        return () if node is None or node.step.loop or node.step.foreach else node.followers

    # Phases

    def _go_to_next_phase(self) -> Deciding[None]:
        workflow = self.workflow
        if workflow.phase != "main" or workflow.verdict == "success":
            yield from self._enter_after(workflow.phase)
            return
        yield from self._load(self.plan.undoings)
        order = undo_order(self._rows[name] for name in self.plan.undoings)
        if not order:
            yield from self._enter_after("undo")
            return
        self.workflow = structs.replace(workflow, phase="undo", undo=order, left=len(order), open=0, stopped=False)
        for name in order:
            self._put(StepRow(step=undo_name(name), phase="undo"), fresh=True)
        self._undo_next()

    def _undo_next(self) -> None:
        """Make the next undo step ready unless one is open. They run one by one, whatever their results."""
        order = self.workflow.undo
        if self.workflow.left and not self.workflow.open:
            self._ready.append(undo_name(order[len(order) - self.workflow.left]))

    def _enter_after(self, phase: Phase) -> Deciding[None]:
        following = next_phase(self.plan.workflow, phase, self.workflow.verdict)
        if following is not None:
            yield from self.enter(following)
            return
        if self.workflow.verdict != "success":
            self._decisions.end = WorkflowResult(
                state=self.workflow.verdict, error=self.workflow.error, reason=self.workflow.reason
            )
            return
        yield from self._load(results=self.plan.output_steps or self.plan.leaves)
        self._decisions.end = output_of(self.plan, self._starter, self._rows)
