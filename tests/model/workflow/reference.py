"""A reference model of workflows, as simple as possible: after each event everything is evaluated again.

It shares nothing with the decisions under test but the definition and the terms.
"""

import re
from typing import Any

from horae.model.workflows.decisions.values import PHASES, Workflow, WorkflowStep

FINAL = ("success", "failed", "skipped", "cancelled")
RULES = {
    "allSuccess": lambda s: all(one == "success" for one in s),
    "allDone": lambda s: any(one != "skipped" for one in s),
    "oneSuccess": lambda s: "success" in s,
    "oneFailed": lambda s: "failed" in s,
    "noneFailed": lambda s: "failed" not in s,
    "noneFailedOneSuccess": lambda s: "failed" not in s and "success" in s,
    "allFailed": lambda s: all(one == "failed" for one in s),
    "allSkipped": lambda s: all(one == "skipped" for one in s),
    "always": lambda s: True,
}
TAKES_FAILURES = ("oneSuccess", "oneFailed", "allFailed", "allDone", "always")


class Reference:
    """The reference model of one workflow."""

    def __init__(self, workflow: Workflow, params: dict[str, Any]) -> None:
        self.workflow, self.params = workflow, params
        self.by_name = {step.name: step for step in workflow.everything}
        self.before: dict[str, list[str]] = {}
        self.phase, self.verdict = "main", "success"
        self.stopped = self.paused = False
        self.states: dict[str, str] = {}
        self.runs: dict[str, int] = {}
        self.counts: dict[str, list[int]] = {}  # per foreach: successful, failed, and all items
        self.exceeded: set[str] = set()  # foreach steps with more failures than tolerated, before all items had ended
        self.cut: set[str] = set()  # foreach steps with items cancelled together with the workflow
        self.ended_at: dict[str, int] = {}
        self.undo: list[str] = []
        self.time = 0
        self.over: str | None = None
        self._enter("main")
        self._settle()

    # Input

    def ended(self, step: str, state: str) -> None:
        """Process the end of a step's child."""
        self.time += 1
        self._child(step, state)
        self._settle()

    def items(self, step: str, good: int, bad: int, state: str) -> None:
        """Process ended items of a foreach."""
        self.time += 1
        count = self.counts[step]
        count[0] += good
        count[1] += bad
        if self.stopped and bad and state == "cancelled" and step not in self.exceeded:
            self.cut.add(step)
        with_it = self.stopped and (state == "cancelled" or not bad)  # not by its own failures
        if count[0] + count[1] == count[2]:
            foreach = self.step(step).foreach
            share = foreach.tolerate_percent
            bound = foreach.tolerate if share is None else count[2] * share // 100
            stopped = (with_it or state == "cancelled") and step not in self.exceeded
            if step in self.cut:
                self._end(step, "cancelled")
            else:
                self._end(step, "success" if count[1] <= bound else "cancelled" if stopped else "failed")
        elif not with_it:
            self._note_excess(step)
        self._settle()

    def _note_excess(self, step: str) -> None:
        foreach, count = self.step(step).foreach, self.counts[step]
        share = foreach.tolerate_percent
        if count[1] > (foreach.tolerate if share is None else count[2] * share // 100):
            self.exceeded.add(step)

    def stop(self, verdict: str) -> None:
        """Stop the workflow: it was cancelled, or its time is over."""
        self.time += 1
        self._give_up(verdict)
        self._settle()

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.time += 1
        self.paused = False
        held = [name for name, state in self.states.items() if state == "held"]
        for name in held:
            self.states[name] = "pending"
        self._settle(held)

    # Consequences

    def step(self, name: str) -> WorkflowStep:
        return self.by_name[name]

    def upstreams(self, step: WorkflowStep) -> list[str]:
        return self.before[step.name]

    def _upstreams(self, step: WorkflowStep) -> list[str]:
        text = f"{step.when} {step.params}"
        spoken = [name for name in re.findall(r"steps\.(\w+)", text) if name != step.name]
        switches = [
            other.name for other in self.workflow.of(self.phase) for branch in other.switch if step.name in branch.then
        ]
        return list(dict.fromkeys([*step.after, *spoken, *switches]))

    def _enter(self, phase: str) -> None:
        self.phase, self.stopped = phase, False
        for step in self.workflow.of(phase):
            self.states[step.name] = "pending"
            self.before[step.name] = self._upstreams(step)

    def _settle(self, ready: list[str] | None = None) -> None:
        waiting = list(ready or [])
        while self.over is None:
            while self._skip_some():
                pass
            self._look_at_failures()
            starting = waiting or self._may_start()
            waiting = []
            if starting and not self.stopped:
                for name in starting:
                    self._start(name)
                continue
            if self.phase == "undo":
                self._undo_next()
                return
            if not all(self.states[step.name] in FINAL for step in self.workflow.of(self.phase)):
                return
            self._next_phase()

    def _seen(self, step: WorkflowStep) -> list[str | None]:
        """Return the outcome of each upstream, or None before its end."""
        return [self._counts_as(up, step.name) for up in self.upstreams(step)]

    def _counts_as(self, name: str, follower: str) -> str | None:
        state, step = self.states[name], self.step(name)
        if state not in FINAL:
            return None
        if state == "success" and any(follower in branch.then for branch in step.switch):
            return "success" if follower in self._chosen(step) else "skipped"
        if state in ("failed", "cancelled"):
            return "success" if step.ignore_failure else "failed"
        return state

    def _chosen(self, step: WorkflowStep) -> tuple[str, ...]:
        for branch in step.switch:
            if not branch.when or self.params[step.name]:
                return branch.then
        return ()

    def _skip_some(self) -> bool:
        """Skip steps whose rule cannot match; check failures in between, since they may end the workflow."""
        self._look_at_failures()
        if self.stopped or self.phase == "undo":
            return False
        skipped = False
        for step in self.workflow.of(self.phase):
            seen = self._seen(step)
            if self.states[step.name] == "pending" and seen and None not in seen and not RULES[step.join](seen):
                self._end(step.name, "skipped")
                skipped = True
        return skipped

    def _may_start(self) -> list[str]:
        if self.phase == "undo":
            return []
        found = []
        for step in self.workflow.of(self.phase):
            seen = self._seen(step)
            if self.states[step.name] != "pending":
                continue
            known = [one for one in seen if one is not None]
            early = step.join in ("oneSuccess", "oneFailed") and RULES[step.join](known)
            if not seen or early or (None not in seen and RULES[step.join](seen)):
                found.append(step.name)
        return found

    def _start(self, name: str) -> None:
        step = self.step(name)
        if self.paused:
            self.states[name] = "held"
            return
        if step.when:
            if ".no" in step.when:
                return self._end(name, "failed")
            if not self.params[name]:
                return self._end(name, "skipped")
        if step.switch:
            return self._end(name, "success")
        if step.foreach is not None:
            items = self.params["list" if "list" in step.foreach.items else "none"]
            if not items:
                return self._end(name, "success")
            self.counts[name] = [0, 0, len(items)]
        if step.loop is not None:
            self.runs[name] = 0
            if "index < 0" in step.loop.condition:
                return self._end(name, "success")
        self.states[name] = "waiting" if step.wait is not None else "running"
        return None

    def _child(self, name: str, state: str) -> None:
        if name.endswith(":undo"):
            self.states[name] = state
            return
        step = self.step(name)
        if step.loop is not None and state == "success":
            self.runs[name] += 1
            if self.runs[name] < 2:  # both kinds of loops run twice
                if self.runs[name] >= step.loop.max_runs:
                    self._end(name, "failed")
                elif self.stopped:
                    self._end(name, "cancelled")
                return
        self._end(name, state)

    def _end(self, name: str, state: str) -> None:
        self.states[name], self.ended_at[name] = state, self.time

    def _look_at_failures(self) -> None:
        if self.stopped or self.phase == "undo":
            return
        for step in self.workflow.of(self.phase):
            if self.states[step.name] not in ("failed", "cancelled") or step.ignore_failure:
                continue
            followers = [other for other in self.workflow.of(self.phase) if step.name in self.upstreams(other)]
            takers = [other for other in followers if other.join in TAKES_FAILURES]
            if all(self.states[other.name] == "skipped" for other in takers):
                if self.phase != "main":
                    self.verdict = "failed" if self.verdict == "success" else self.verdict
                elif self.workflow.on_error != "ignore":
                    self._give_up("failed")
                    return

    def _give_up(self, verdict: str) -> None:
        if self.phase == "undo":
            return
        if self.verdict == "success" or (verdict == "cancelled" and self.phase == "main"):
            self.verdict = verdict
        self.stopped = True
        for step in self.workflow.of(self.phase):
            if self.states[step.name] in ("pending", "held"):
                self.states[step.name] = "cancelled" if verdict == "cancelled" else "skipped"

    def _next_phase(self) -> None:
        if self.phase == "main" and self.verdict != "success":
            done = [
                step.name
                for step in self.workflow.steps
                if step.undo is not None and (self.states[step.name] == "success" or self.counts.get(step.name, [0])[0])
            ]
            if done:
                self.phase, self.undo = "undo", done
                self.states |= {f"{name}:undo": "pending" for name in done}
                return
        if self.phase in ("main", "undo"):
            words = {"success": "onSuccess", "failed": "onFailure", "cancelled": ""}
            following = [words[self.verdict], "finally"]
        else:
            following = ["finally"] if self.phase != "finally" else []
        for phase in following:
            if phase in PHASES and self.workflow.of(phase):
                self._enter(phase)
                return
        self.over = self.verdict

    def _undo_next(self) -> None:
        """The caller checks the order; here only the end of all matters."""
        if all(self.states[f"{name}:undo"] in FINAL for name in self.undo):
            self._next_phase()
            if self.over is None:
                self._settle()
