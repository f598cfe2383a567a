"""The start of a step: the params of its children, its wait, or its end if it has neither."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import structs

from horae.env import Instant, Micros
from horae.errors import HoraeError
from horae.model.base.instant import parse_instant
from horae.model.base.paths import RemoteValue
from horae.model.expressions.meter import ITEM_STEPS, Meter, shared_budget
from horae.model.expressions.template import TemplateError, as_text, render_tree, rendered_item
from horae.model.fleet.protocol import Failure
from horae.model.workflows.decisions.expressions import error_value, holds, scope_of, step_value
from horae.model.workflows.decisions.plan import NOTHING, CompiledParams, Plan, PlanNode
from horae.model.workflows.decisions.values import UNDO, Call, WorkflowStep
from horae.model.workflows.decisions.waits import token_of
from horae.model.workflows.decisions.workflow import (
    BOUND,
    FAULT,
    NOT_WANTED,
    Start,
    StepEnd,
    StepRow,
    StepWait,
    WorkflowContext,
    WorkflowExecution,
)
from horae.model.workflows.waits import Approval, EventWait, SignalWait, Sleep

Rows = Mapping[str, StepRow]
Launch = Start | StepWait | StepEnd
Scope = dict[str, Any]


class Starter:
    """Computes the params and waits of starting steps from the workflow's execution and the known rows."""

    def __init__(self, plan: Plan, context: WorkflowContext, now: Instant) -> None:
        self._plan, self._context, self._now = plan, context, now
        self._base: Scope | None = None
        self._meter = Meter()  # shared by all evaluations of one decision

    def launch(self, name: str, row: StepRow, rows: Rows, workflow: WorkflowExecution) -> Launch:
        """Begin a step. Raises TemplateError if an expression cannot be computed."""
        with shared_budget(self._meter):
            return self._begin(name, row, rows, workflow)

    def _begin(self, name: str, row: StepRow, rows: Rows, workflow: WorkflowExecution) -> Launch:
        self._meter.grant(ITEM_STEPS)
        if name.endswith(UNDO):
            return self._undo(name, name.removesuffix(UNDO), rows, workflow)
        node = self._plan.nodes[name]
        scope = self._scope(node.needed_steps, rows, workflow)
        if node.when is not None and not holds(node.when, scope):
            return StepEnd(step=name, state="skipped", reason=NOT_WANTED)
        if node.branches:
            return self._choose(node, scope)
        if node.step.wait is not None:
            return self._wait(node, scope)
        if node.step.foreach is not None:
            return self._each(node, scope)
        return self._loop(node, row, scope) if node.step.loop is not None else self._run(node, scope)

    def _undo(self, name: str, undone: str, rows: Rows, workflow: WorkflowExecution) -> Launch:
        """Start an undo step; for a foreach, undo each successful item, from the last to the first."""
        undoing, node = self._plan.undoings[undone], self._plan.nodes[undone]
        scope = self._scope(undoing.needed_steps, rows, workflow)
        if node.step.foreach is None:
            return Start(step=name, items=[self._params(undoing.params, undoing.call, scope)])
        items = self._items(node, scope)
        done = rows[undone].done
        which = range(len(items)) if done is None else [index for index in done if index < len(items)]
        if not which:
            return StepEnd(step=name)
        params = [self._item(undoing.params, scope, items[index], index) for index in sorted(which, reverse=True)]
        return Start(step=name, items=params, foreach=True, ordered=True)

    def again(self, node: PlanNode, row: StepRow, rows: Rows, workflow: WorkflowExecution) -> Start | StepEnd | None:
        """Decide the next step after a successful run of a loop.

        Return the start of another run, an end of the step as failed, or None to end the step with the run's result.
        """
        loop, runs = node.step.loop, row.iteration + 1
        assert loop is not None
        assert node.condition is not None
        scope = self._scope(node.needed_steps, rows, workflow)
        scope = {**scope, "index": runs, "steps": {**scope["steps"], row.step: {**step_value(row), "state": "success"}}}
        try:
            with shared_budget(self._meter):
                if holds(node.condition, scope) == loop.until:
                    return None
                if runs >= loop.max_runs:
                    bound = _bound(loop.max_runs)
                    return StepEnd(step=row.step, state="failed", result=row.result, reason=BOUND, error=bound)
                return self._run(node, scope, iteration=runs, delay=loop.every)
        except TemplateError as error:
            return StepEnd(step=row.step, state="failed", result=row.result, reason=FAULT, error=fault(error))

    def rendered(self, tree: Any, needed_steps: frozenset[str], rows: Rows) -> Any:
        """Return a value with its expressions computed. Raises TemplateError."""
        with shared_budget(self._meter):
            return render_tree(tree, self._scope(needed_steps, rows, None))

    def _scope(self, needed_steps: frozenset[str], rows: Rows, workflow: WorkflowExecution | None) -> Scope:
        if self._base is None:
            self._base = {**scope_of(self._context, {}), "callbacks": self._callbacks()}
        error = None if workflow is None else error_value(workflow.error, workflow.cause)
        return {**self._base, "steps": {name: step_value(rows.get(name)) for name in needed_steps}, "error": error}

    def _callbacks(self) -> dict[str, str]:
        """Return the paths of the callback URLs of waiting steps, without the server's address."""
        secret = self._context.secret
        tokens = {step: token_of(secret, self._context.id, step) for step in self._plan.callbacks} if secret else {}
        return {step: f"/api/v1/callbacks/{token}" for step, token in tokens.items()}

    def _params(self, params: CompiledParams, call: Call, scope: Scope) -> bytes:
        if not params.given:
            return self._context.params if call.inline else NOTHING
        return params.constant if params.constant is not None else rendered_item(params.tree, scope)

    def _run(self, node: PlanNode, scope: Scope, *, iteration: int = 0, delay: Micros = 0) -> Start:
        return Start(
            step=node.step.name, items=[self._params(node.params, node.step, scope)], iteration=iteration, delay=delay,
            priority=node.step.priority,
        )  # fmt: skip

    def _loop(self, node: PlanNode, row: StepRow, scope: Scope) -> Launch:
        """Begin the first run of a loop; a `while` loop may have none."""
        scope = {**scope, "index": 0, "steps": {**scope["steps"], node.step.name: step_value(None)}}
        if node.step.loop is not None and not node.step.loop.until:
            assert node.condition is not None
            if not holds(node.condition, scope):
                return StepEnd(step=row.step)
        return self._run(node, scope)

    def _items(self, node: PlanNode, scope: Scope) -> list[Any]:
        """Return the items of a foreach."""
        items = render_tree(node.items, scope)
        if isinstance(items, RemoteValue):
            raise TemplateError(f"the value of foreach.items {items.why}")
        if not isinstance(items, list):
            raise TemplateError(f"foreach.items gave {as_text(items)[:60]!r}, which is not a list")
        if len(items) > self._context.most_items:
            raise TemplateError(
                f"foreach.items gave {len(items)} items; at most {self._context.most_items} are allowed: give each"
                " execution several of them"
            )
        self._meter.grant(ITEM_STEPS * len(items))
        return items

    def _each(self, node: PlanNode, scope: Scope) -> Launch:
        foreach = node.step.foreach
        assert foreach is not None
        items = self._items(node, scope)
        if not items:
            return StepEnd(step=node.step.name, result=b"[]")
        return Start(
            step=node.step.name,
            items=[self._item(node.params, scope, item, index) for index, item in enumerate(items)],
            foreach=True,
            concurrency=foreach.concurrency,
            priority=node.step.priority,
        )

    def _item(self, params: CompiledParams, scope: Scope, item: Any, index: int) -> bytes:
        """Return the params of one item: those in the definition, or the item itself if it is an object."""
        if params.constant is not None and params.given:
            return params.constant
        own = {"item": item, "index": index}
        if params.given:
            return rendered_item(params.tree, {**scope, **own})
        return rendered_item(item if isinstance(item, dict) else own, scope)

    def _choose(self, node: PlanNode, scope: Scope) -> StepEnd:
        """Take the first branch whose condition holds."""
        taken = next((then for when, then in node.branches if when is None or holds(when, scope)), ())
        return StepEnd(step=node.step.name, result=msgspec.json.encode(taken))

    def _wait(self, node: PlanNode, scope: Scope) -> StepWait:
        step, wait = node.step, node.step.wait
        texts = {field.split(".")[1]: as_text(render_tree(text, scope)) for field, text in node.texts.items()}
        if isinstance(wait, Sleep):
            until = self._now + (wait.span or 0) if wait.span is not None else _instant(texts["until"])
            return StepWait(step=step.name, wait=wait, wake_at=until)
        assert wait is not None
        remind = None
        if isinstance(wait, EventWait | SignalWait):
            wait = structs.replace(wait, name=texts["name"])
        elif isinstance(wait, Approval):
            wait = structs.replace(wait, message=texts.get("message", ""))
            remind = None if wait.remind is None else self._now + wait.remind
        late = None if wait.timeout is None else self._now + wait.timeout
        return StepWait(step=step.name, wait=wait, wake_at=late, remind_at=remind)


def chosen(step: WorkflowStep, row: StepRow, follower: str) -> str:
    """Return the outcome of a finished switch as one follower sees it: skipped, if the switch chose other steps."""
    named = {name for branch in step.switch for name in branch.then}
    taken = msgspec.json.decode(row.result or b"[]")
    return "success" if follower not in named or follower in taken else "skipped"


def fault(error: TemplateError) -> Failure:
    """Return the failure of a step whose expression could not be computed."""
    return Failure(type="ExpressionError", message=f"{error}.", permanent=True)


def too_many(row: StepRow, most: int) -> Failure:
    """Return the failure of a foreach with more failed items than it tolerates."""
    first = f" The first failure: {row.error.message or row.error.type}" if row.error is not None else ""
    message = f"Of {row.total} items {row.ok} succeeded, and at most {most} may fail.{first}"
    return Failure(type="TooManyFailed", message=message, permanent=True)


def not_undone(row: StepRow) -> Failure:
    """Return the failure of an undo step for a foreach with items that were not undone."""
    first = f" The first: {row.error.message or row.error.type}" if row.error is not None else ""
    message = f"{row.bad} of {row.total} items were not undone.{first}"
    return Failure(type="NotUndone", message=message, permanent=True)


def why_failed(row: StepRow) -> Failure:
    """Return the failure of the workflow that a failed step causes. The error of an expression gets the step's name."""
    if row.error is not None:
        message = f'Step "{row.step}": {row.error.message}'
        return structs.replace(row.error, message=message) if row.reason == FAULT else row.error
    word = "was cancelled" if row.state == "cancelled" else "failed"
    return Failure(type="StepFailed", message=f'Step "{row.step}" {word}.', permanent=True)


def _bound(most: int) -> Failure:
    message = f"The loop has run {most} times, and its condition asks for another run. Raise `maxRuns`."
    return Failure(type="LoopBound", message=message, permanent=True)


def _instant(text: str) -> Instant:
    try:
        return parse_instant(text, field="sleep.until")
    except HoraeError as error:
        raise TemplateError(f"sleep.until gave {text[:60]!r}: {error.detail.rstrip('.')}") from None
