"""The rows of a round of decisions about a workflow, and the start of its steps."""

from collections.abc import Iterable

from msgspec import structs

from horae.env import Instant
from horae.model.expressions.template import TemplateError
from horae.model.fleet.protocol import Failure
from horae.model.workflows.decisions import starting
from horae.model.workflows.decisions.plan import Plan
from horae.model.workflows.decisions.starting import Launch, Starter
from horae.model.workflows.decisions.values import UNDO
from horae.model.workflows.decisions.workflow import (
    BREAKPOINT,
    FAULT,
    GIVEN_UP,
    OPEN,
    PAUSED,
    Deciding,
    Decisions,
    Final,
    RowRequest,
    StepEnd,
    StepRow,
    StepWait,
    WorkflowContext,
    WorkflowExecution,
)


class Launching:
    """The part of a round that holds its state and starts steps.

    `workflow` and the rows include all changes that the round has decided so far.
    """

    def __init__(self, plan: Plan, workflow: WorkflowExecution, context: WorkflowContext, now: Instant) -> None:
        self.plan, self.workflow, self.now = plan, workflow, now
        self._starter = Starter(plan, context, now)
        self._rows: dict[str, StepRow] = {}
        self._with_result: set[str] = set()  # the steps in `_rows` whose results are loaded too
        self._changed: dict[str, None] = {}
        self._fresh: set[str] = set()  # steps whose rows are new
        self._just_ended: list[str] = []  # steps that have ended; their followers are not updated yet
        self._ready: list[str] = []  # steps that may start
        self._decisions = Decisions(workflow=workflow)

    def _load(self, rows: Iterable[str] = (), results: Iterable[str] = ()) -> Deciding[None]:
        wanted = frozenset(name for name in results if name not in self._with_result)
        others = frozenset(name for name in rows if name not in self._rows) - wanted
        if wanted or others:
            found = yield RowRequest(others, wanted)
            for name, row in found.items():
                mine = self._rows.get(name)
                self._rows[name] = row if mine is None else structs.replace(mine, result=row.result)
            self._with_result |= wanted

    def _load_items(self, steps: frozenset[str]) -> Deciding[None]:
        """Load the indexes of the successful items of foreach steps."""
        if steps:
            for name, row in (yield RowRequest(items=steps)).items():
                self._rows[name] = structs.replace(self._rows.get(name, row), done=row.done)

    @property
    def _is_active(self) -> bool:
        """True while steps of the current phase may still begin."""
        return not self.workflow.stopped

    def _end(self, row: StepRow, state: Final, result: bytes | None, error: Failure | None, reason: str) -> None:
        workflow = self.workflow
        began = row.state in OPEN
        self._put(
            structs.replace(
                row, state=state, result=result, error=error, reason=reason, ended_at=self.now,
                ended_seq=workflow.ended, wake_at=None,
            )
        )  # fmt: skip
        self.workflow = structs.replace(
            workflow, left=workflow.left - 1, open=workflow.open - began, ended=workflow.ended + 1
        )
        self._just_ended.append(row.step)

    def _put(self, row: StepRow, *, fresh: bool = False) -> None:
        self._rows[row.step] = row
        self._changed[row.step] = None
        if fresh:
            self._fresh.add(row.step)
            self._with_result.add(row.step)

    def _drop_pending(self, rest: Final) -> None:
        """End the rows that have not begun, in state `rest`; the store ends such rows that are stored already."""
        for name in list(self._changed):
            row = self._rows[name]
            if row.state not in ("pending", "held"):
                continue
            ended = structs.replace(row, state=rest, reason=GIVEN_UP, ended_at=self.now)
            self._rows[name] = ended
            if name not in self._fresh:
                del self._changed[name]

    # Starting

    def _launch_ready(self) -> Deciding[None]:
        ready, self._ready = self._ready, []
        yield from self._load(ready)
        starting_steps = [name for name in ready if not self._hold(name)]
        yield from self._load((), {name for step in starting_steps for name in self._needed_steps(step)})
        undone = (name.removesuffix(UNDO) for name in starting_steps if name.endswith(UNDO))
        yield from self._load_items(frozenset(name for name in undone if self.plan.is_foreach(name)))
        for name in starting_steps:
            self._launch(name)

    def _needed_steps(self, name: str) -> frozenset[str]:
        if name.endswith(UNDO):
            return self.plan.undoings[name.removesuffix(UNDO)].needed_steps
        return self.plan.nodes[name].needed_steps

    def _hold(self, name: str) -> bool:
        """Hold a step if the workflow is paused or the step has a breakpoint; return whether it is held."""
        reason = PAUSED if self.workflow.paused else BREAKPOINT if name in self.workflow.breakpoints else ""
        if reason:
            self._put(structs.replace(self._rows[name], state="held", reason=reason))
        return bool(reason)

    def _launch(self, name: str) -> None:
        row = self._rows[name]
        try:
            launch = self._starter.launch(name, row, self._rows, self.workflow)
        except TemplateError as error:
            launch = StepEnd(step=name, state="failed", reason=FAULT, error=starting.fault(error))
        self._apply(structs.replace(row, reason="", began_at=self.now), launch)

    def _apply(self, row: StepRow, launch: Launch) -> None:
        if isinstance(launch, StepEnd):
            idle = row if launch.state != "skipped" else structs.replace(row, began_at=None)
            self._with_result.add(row.step)
            self._end(idle, launch.state, launch.result, launch.error, launch.reason)
            return
        self.workflow = structs.replace(self.workflow, open=self.workflow.open + 1)
        if isinstance(launch, StepWait):
            self._put(structs.replace(row, state="waiting", wake_at=launch.wake_at))
            self._decisions.awaits.append(launch)
        else:
            total = len(launch.items) if launch.foreach else 0
            self._put(structs.replace(row, state="running", total=total))
            self._decisions.starts.append(launch)
