"""The decisions after a phase of a workflow: the next phase, the steps to undo, and the workflow's result."""

from collections.abc import Iterable, Mapping

import msgspec

from horae.model.expressions.template import TemplateError
from horae.model.fleet.protocol import MAX_RESULT, Failure
from horae.model.workflows.decisions.plan import Plan
from horae.model.workflows.decisions.starting import Starter, fault
from horae.model.workflows.decisions.values import Phase, Workflow
from horae.model.workflows.decisions.workflow import FAULT, StepRow, Verdict, WorkflowResult

# The phases for each verdict, in order; phases without steps are skipped.
_ORDER: Mapping[Verdict, tuple[Phase, ...]] = {
    "success": ("main", "onSuccess", "finally"),
    "failed": ("main", "undo", "onFailure", "finally"),
    "cancelled": ("main", "undo", "finally"),
}
_LATE: tuple[Phase, ...] = ("onSuccess", "onFailure")  # phases that may be running when the verdict changes


def next_phase(workflow: Workflow, phase: Phase, verdict: Verdict) -> Phase | None:
    """Return the next phase with steps, or None if the workflow ends. Entering `undo` is left to the caller."""
    if phase in _LATE:
        rest: tuple[Phase, ...] = ("finally",)
    else:
        order = _ORDER[verdict]
        rest = order[order.index(phase) + 1 :] if phase in order else ()
    return next((name for name in rest if workflow.of(name)), None)


def undo_order(rows: Iterable[StepRow]) -> tuple[str, ...]:
    """Return the steps to undo, the last ended first: successful steps, and foreach steps with successful items."""
    done = [row for row in rows if row.state == "success" or row.ok]
    return tuple(row.step for row in sorted(done, key=lambda row: row.ended_seq or 0, reverse=True))


def output_of(plan: Plan, starter: Starter, rows: Mapping[str, StepRow]) -> WorkflowResult:
    """Return the end of a successful workflow, with its result."""
    if plan.workflow.output is None:
        return WorkflowResult(state="success", result=_last_results(plan, rows))
    try:
        result = msgspec.json.encode(starter.rendered(plan.output, plan.output_steps, rows))
    except TemplateError as error:
        return WorkflowResult(state="failed", error=fault(TemplateError(f"output: {error}")), reason=FAULT)
    except (TypeError, ValueError) as error:
        return WorkflowResult(state="failed", error=fault(TemplateError(f"output: not JSON: {error}")), reason=FAULT)
    if len(result) > MAX_RESULT:
        message = f"The output has {len(result)} bytes; at most {MAX_RESULT} are allowed. Give a reference instead."
        return WorkflowResult(state="failed", error=Failure(type="ResultTooLarge", message=message), reason="output")
    return WorkflowResult(state="success", result=None if result == b"null" else result)


def _last_results(plan: Plan, rows: Mapping[str, StepRow]) -> bytes | None:
    """Return the result of the step without followers; if there are several, an object with their results by name.

    Return None if that is too large, or null.
    """
    found = {name: rows[name].result for name in plan.leaves}
    if len(found) == 1:
        (only,) = found.values()
        return None if only is not None and len(only) > MAX_RESULT else only
    if all(result is None for result in found.values()):
        return None
    if sum(len(result or b"") for result in found.values()) > MAX_RESULT // 2:
        return None
    return msgspec.json.encode({name: msgspec.Raw(result or b"null") for name, result in found.items()})
