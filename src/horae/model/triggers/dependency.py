"""Dependencies: a job starts because executions of other jobs ended.

A *join* waits on behalf of one dependent until each upstream meets its condition for one data interval. A *part* is the
contribution of one upstream to a join.
"""

from collections.abc import Mapping
from typing import Literal
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.model.base.instant import format_instant

Condition = Literal["success", "failure", "finished"]
CONDITIONS: tuple[Condition, ...] = ("success", "failure", "finished")
Late = Literal["fail", "skip", "run"]  # the policy for an execution that waited too long
LATE: tuple[Late, ...] = ("fail", "skip", "run")
NO_INTERVAL = -1  # the start of a join without a data interval

JoinState = Literal["open", "started", "skipped", "ended"]
# start: create the execution; release: let the waiting execution continue; skip: end it, or record that none was made
Verdict = Literal["wait", "start", "release", "skip"]


class JoinPart(Struct, frozen=True, kw_only=True):
    """The outcome of an upstream's execution, and whether it meets the dependent's condition."""

    upstream: UUID
    met: bool
    state: str
    execution: UUID


class Join(Struct, frozen=True, kw_only=True):
    """The wait of one dependent; `execution` is the execution that it started, or the one that waits for it."""

    dependent: UUID
    step: str = ""  # empty for the job's own join of an interval; otherwise the execution that asked to wait
    start: Instant = NO_INTERVAL
    end: Instant | None = None
    state: JoinState = "open"
    execution: UUID | None = None
    deadline: Instant | None = None
    wake_at: Instant | None = None

    @property
    def key(self) -> tuple[UUID, str, Instant]:
        return self.dependent, self.step, self.start

    @property
    def interval(self) -> tuple[Instant, Instant] | None:
        return None if self.start == NO_INTERVAL or self.end is None else (self.start, self.end)


Needed = Mapping[UUID, Condition]  # upstream -> its condition
Parts = Mapping[UUID, JoinPart]  # by upstream


def meets(condition: Condition, state: str) -> bool:
    """Return whether an execution that ended in this state meets a condition."""
    if condition == "finished":
        return True
    return state == ("success" if condition == "success" else "failed")


def judge(join: Join, needed: Needed, parts: Parts, *, scheduled: bool) -> Verdict:
    """Decide the next step of a join. A job with its own schedule is started by that schedule; its joins only wait.

    A join skipped because an upstream failed starts when that upstream later succeeds for the same interval. A job that
    depends on failures only is not skipped by a success: there was nothing to start.
    """
    complete = all(upstream in parts and parts[upstream].met for upstream in needed)
    if join.state == "skipped":
        return "start" if complete and needed else "wait"
    if join.state != "open":
        return "wait"
    if join.execution is not None:
        return "release" if complete else "skip" if unmet(needed, parts) else "wait"
    if scheduled or not needed:
        return "wait"
    if complete:
        return "start"
    return "skip" if any(needed[part.upstream] == "success" for part in unmet(needed, parts)) else "wait"


def unmet(needed: Needed, parts: Parts) -> list[JoinPart]:
    """Return the parts of upstreams that ended without meeting their condition."""
    return [parts[upstream] for upstream in sorted(needed) if upstream in parts and not parts[upstream].met]


def missing(needed: Needed, parts: Parts) -> list[UUID]:
    """Return the upstreams without a part so far."""
    return [upstream for upstream in sorted(needed) if upstream not in parts]


def why_skipped(needed: Needed, parts: Parts, names: Mapping[UUID, str]) -> str:
    """Describe why a dependent did not run."""
    reasons = [
        f'"{names.get(part.upstream, str(part.upstream))}" ended as {part.state} ({part.execution}),'
        f" and this job runs on its {needed[part.upstream]}"
        for part in unmet(needed, parts)
    ]
    return f"{'; '.join(reasons)}." if reasons else "It waited too long for its dependencies."


def why_late(needed: Needed, parts: Parts, names: Mapping[UUID, str], interval: tuple[Instant, Instant] | None) -> str:
    """Describe the upstreams that a dependent waited for in vain."""
    upstreams = ", ".join(f'"{names.get(upstream, str(upstream))}"' for upstream in missing(needed, parts))
    return f"It waited for {upstreams}{in_words(interval)}, which did not end in time."


def in_words(interval: tuple[Instant, Instant] | None) -> str:
    """Describe a data interval as part of a sentence."""
    return "" if interval is None else f" for {format_instant(interval[0])} to {format_instant(interval[1])}"
