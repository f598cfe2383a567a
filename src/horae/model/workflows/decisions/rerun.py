"""Reruns: new executions that reuse the finished steps of another execution."""

from collections.abc import Collection, Mapping

from msgspec import Struct

from horae.model.executions.execution import Rerun
from horae.model.workflows.decisions.plan import Plan
from horae.model.workflows.decisions.values import undo_name
from horae.model.workflows.decisions.workflow import StepEnd, StepRow

FAILED = "failed"  # rerun from all steps that did not succeed
_AS_IT_WAS = frozenset({"pending", "held", "skipped", "cancelled"})  # an undo step in one of these states had no effect


class ReusedSteps(Struct, frozen=True):
    """The steps that a rerun reuses, upstreams first: as a `whole`, or of a failed step its successful parts."""

    whole: list[str] = []
    in_part: list[str] = []  # a foreach with its successful items, or a nested workflow with its successful steps


def reused_steps(plan: Plan, rows: Mapping[str, StepRow], since: str) -> ReusedSteps:
    """Return the steps whose results a rerun reuses.

    These are the successful steps, except steps that were undone, the step `since`, and steps after a step that runs
    again. If `since` is empty, the rerun starts from the beginning and reuses none. Whether a skipped step runs is
    decided again, from the same results.
    """
    kept = ReusedSteps([], [])
    if not since:
        return kept
    again: set[str] = set()
    for name in plan.order["main"]:
        row = rows.get(name)
        after_another = not again.isdisjoint(plan.nodes[name].upstreams)
        stays = row is not None and name != since and not after_another and not _is_undone(name, rows)
        if stays and row is not None and row.state == "success":
            kept.whole.append(name)
            continue
        if stays and row is not None and (row.ok or row.state in ("failed", "cancelled")):
            kept.in_part.append(name)
        if row is None or row.state != "skipped" or after_another or name == since:
            again.add(name)
    return kept


def _is_undone(name: str, rows: Mapping[str, StepRow]) -> bool:
    """Return whether the undo step of a step has begun, so that the effect of the step may be gone."""
    undoing = rows.get(undo_name(name))
    return undoing is not None and undoing.state not in _AS_IT_WAS


def ends_of_reused(kept: Collection[str], rows: Mapping[str, StepRow], rerun: Rerun) -> list[StepEnd]:
    """Return the ends of reused steps, with their results, as input for the rerun's first decision."""
    reason = f"taken over from {rerun.of}"
    return [StepEnd(step=name, result=rows[name].result, reason=reason, forced=True) for name in kept]
