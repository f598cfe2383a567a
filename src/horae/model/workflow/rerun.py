"""Reruns: a new execution that takes over what another one had finished."""

from collections.abc import Collection, Mapping

from horae.model.execution import Rerun
from horae.model.workflow.flow import Ended, StepRow
from horae.model.workflow.plan import Plan
from horae.model.workflow.values import undo_name

FAILED = "failed"  # from whatever did not succeed on
_AS_IT_WAS = frozenset({"pending", "held", "skipped", "cancelled"})  # of an undoing: it did nothing


def kept_steps(plan: Plan, rows: Mapping[str, StepRow], since: str) -> list[str]:
    """The steps whose results a rerun takes over, upstreams first.

    Those that succeeded, unless they were undone, are `since`, or come after something that runs again; from the
    beginning, none. What was skipped is decided anew, from the same results.
    """
    if not since:
        return []
    again: set[str] = set()
    kept: list[str] = []
    for name in plan.order["main"]:
        row = rows.get(name)
        upstreams = plan.nodes[name].upstreams
        fine = row is not None and row.state == "success" and name != since and not _is_undone(name, rows)
        if fine and not again.intersection(upstreams):
            kept.append(name)
        elif row is None or row.state != "skipped" or again.intersection(upstreams) or name == since:
            again.add(name)
    return kept


def _is_undone(name: str, rows: Mapping[str, StepRow]) -> bool:
    """Whether an undoing of a step has begun, whatever it came to: what it had done is not there any more."""
    undoing = rows.get(undo_name(name))
    return undoing is not None and undoing.state not in _AS_IT_WAS


def copies(kept: Collection[str], rows: Mapping[str, StepRow], rerun: Rerun) -> list[Ended]:
    """What these steps came to, as news for the rerun."""
    said = f"taken over from {rerun.of}"
    return [Ended(step=name, result=rows[name].result, reason=said, forced=True) for name in kept]
