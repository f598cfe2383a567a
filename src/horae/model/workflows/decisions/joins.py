"""Join rules: they decide whether a step runs, from the outcomes of its upstreams."""

from collections.abc import Callable, Mapping
from typing import Literal

from horae.model.workflows.decisions.flow import StepRow
from horae.model.workflows.decisions.values import JoinRule

Verdict = Literal["start", "skip", "wait"]

EARLY: frozenset[JoinRule] = frozenset({"oneSuccess", "oneFailed"})  # rules that do not wait for all upstreams
# Steps with these rules run despite or because of a failed upstream. If such a step runs, it handles that failure, and
# the failure has no further effect.
CATCHING: frozenset[JoinRule] = frozenset({"oneSuccess", "oneFailed", "allFailed", "allDone", "always"})

_RUNS: Mapping[JoinRule, Callable[[StepRow], bool]] = {
    "allSuccess": lambda row: not row.failed and not row.skipped,
    "allDone": lambda row: bool(row.succeeded or row.failed),
    "oneSuccess": lambda row: bool(row.succeeded),
    "oneFailed": lambda row: bool(row.failed),
    "noneFailed": lambda row: not row.failed,
    "noneFailedOneSuccess": lambda row: bool(row.succeeded) and not row.failed,
    "allFailed": lambda row: bool(row.failed) and not row.succeeded and not row.skipped,
    "allSkipped": lambda row: not row.succeeded and not row.failed,
    "always": lambda row: True,
}


def join(rule: JoinRule, row: StepRow) -> Verdict:
    """Apply a step's rule to the upstreams that have ended. No step is skipped before all its upstreams have ended."""
    if row.missing and rule not in EARLY:
        return "wait"
    if _RUNS[rule](row):
        return "start"
    return "wait" if row.missing else "skip"
