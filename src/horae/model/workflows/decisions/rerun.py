"""Reruns: a new execution that takes over what another one had finished."""

from collections.abc import Collection, Mapping

from msgspec import Struct

from horae.model.executions.execution import Rerun
from horae.model.workflows.decisions.flow import Ended, StepRow
from horae.model.workflows.decisions.plan import Plan
from horae.model.workflows.decisions.values import undo_name

FAILED = "failed"  # from whatever did not succeed on
_AS_IT_WAS = frozenset({"pending", "held", "skipped", "cancelled"})  # of an undoing: it did nothing


class Kept(Struct, frozen=True):
    """The steps that a rerun takes over, upstreams first: as a whole, or what succeeded of those that did not."""

    whole: list[str] = []
    in_part: list[str] = []  # of a foreach the items that succeeded, of a workflow within the steps that did


def kept_steps(plan: Plan, rows: Mapping[str, StepRow], since: str) -> Kept:
    """Find the steps whose results a rerun takes over.

    Steps that succeeded, unless they were undone, are `since`, or come after a step that runs again; from the
    beginning, none. A step that was skipped is decided anew, from the same results.
    """
    kept = Kept([], [])
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
    """Whether an undoing of a step has begun, whatever it came to: what it had done is not there any more."""
    undoing = rows.get(undo_name(name))
    return undoing is not None and undoing.state not in _AS_IT_WAS


def copies(kept: Collection[str], rows: Mapping[str, StepRow], rerun: Rerun) -> list[Ended]:
    """What these steps came to, as news for the rerun."""
    said = f"taken over from {rerun.of}"
    return [Ended(step=name, result=rows[name].result, reason=said, forced=True) for name in kept]
