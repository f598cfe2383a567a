"""An in-memory store of one workflow: it answers the requests of decisions and applies them."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

import msgspec
from msgspec import structs

from horae.env import Instant
from horae.model.fleet.protocol import Failure
from horae.model.workflows.decisions import decide
from horae.model.workflows.decisions.plan import plan_of
from horae.model.workflows.decisions.values import Workflow
from horae.model.workflows.decisions.workflow import (
    Deciding,
    Decisions,
    StepEnd,
    StepRow,
    WorkflowContext,
    WorkflowExecution,
    WorkflowResult,
)

ID = UUID(int=1)


class Memory:
    """A workflow run in memory."""

    def __init__(self, workflow: Workflow, params: dict[str, Any] | None = None, **flow: Any) -> None:
        self.plan = plan_of(workflow)
        self.workflow = WorkflowExecution(execution=ID, root=ID, job=UUID(int=2), version=1, **flow)
        self.about = WorkflowContext(id=ID, params=msgspec.json.encode(params or {}))
        self.rows: dict[str, StepRow] = {}
        self.asked = 0  # rows requested by decisions
        self.end: WorkflowResult | None = None
        self.last: Decisions | None = None
        self.now: Instant = 0
        self.started: list[str] = []
        self.items: dict[str, tuple[int, ...]] = {}  # per foreach step: the items that succeeded
        self.began: dict[str, int] = {}  # per step: the number of ended steps before its first start

    def begin(self, **more: Any) -> Decisions:
        return self.run(decide.begin(self.plan, self.workflow, self.about, self.now, **more))

    def ends(self, *news: StepEnd) -> Decisions:
        return self.run(decide.after(self.plan, self.workflow, self.about, news, self.now))

    def done(self, step: str, result: Any = None, state: Any = "success", **more: Any) -> Decisions:
        """End one child."""
        encoded = None if result is None else msgspec.json.encode(result)
        failure = Failure(type="ValueError", message="no") if state == "failed" else None
        return self.ends(StepEnd(step=step, state=state, result=encoded, error=failure, **more))

    def cancel(self) -> Decisions:
        return self.run(decide.cancel(self.plan, self.workflow, self.about, "cancelled", self.now))

    def time_out(self) -> Decisions:
        failure = Failure(type="TotalTimeout")
        return self.run(decide.fail(self.plan, self.workflow, self.about, failure, "timeout", self.now))

    def pause(self) -> None:
        self.workflow = structs.replace(self.workflow, paused=True)

    def unpause(self) -> None:
        """Remove the pause mark, as the store does before it cancels."""
        self.workflow = structs.replace(self.workflow, paused=False)

    def resume(self) -> Decisions:
        held = [row for row in self.rows.values() if row.state == "held"]
        return self.run(decide.resume(self.plan, self.workflow, self.about, held, self.now))

    def run(self, decision: Deciding[Decisions]) -> Decisions:
        assert self.end is None, "what has ended hears of nothing"
        self.now += 1
        try:
            ask = next(decision)
            while True:
                names = ask.rows | ask.results
                self.asked += len(names)
                rows = {name: self._shown(name, name in ask.results) for name in names}
                rows |= {name: structs.replace(self.rows[name], done=self.items.get(name)) for name in ask.items}
                ask = decision.send(rows)
        except StopIteration as made:
            self._write(made.value)
            return self.last  # type: ignore[return-value]

    def _shown(self, name: str, full: bool) -> StepRow:
        row = self.rows[name]
        return row if full else structs.replace(row, result=None)

    def _write(self, made: Decisions) -> None:
        ended = {name for name, row in self.rows.items() if row.is_final}
        if made.unstarted_become is not None:
            for name, row in self.rows.items():
                if row.state in ("pending", "held"):
                    self.rows[name] = structs.replace(row, state=made.unstarted_become)
        for name, row in made.rows.items():
            assert (name not in self.rows) == (name in made.fresh)
            assert name not in ended, f"{name} had ended"
            self.rows[name] = row
        for start in [*made.starts, *made.awaits]:
            self.started.append(start.step)
            self.began.setdefault(start.step, self.now)
        self.workflow, self.end, self.last = made.workflow, made.end, made

    @property
    def states(self) -> dict[str, str]:
        return {name: row.state for name, row in self.rows.items()}

    def in_state(self, *states: str) -> list[str]:
        return [name for name, row in self.rows.items() if row.state in states]

    def succeed(self, *steps: Iterable[Any] | str) -> None:
        """Return steps that run one after another, each without a result."""
        for step in steps:
            self.done(str(step))
