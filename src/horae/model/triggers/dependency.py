"""Dependencies: a job starts because executions of other jobs ended.

A *join* waits on behalf of one dependent job until the executions of all its upstream jobs have ended as their
conditions require, for one data interval. A *part* records how the execution of one upstream ended.
"""

from collections.abc import Mapping
from typing import Literal
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.model.base.instant import format_instant

Condition = Literal["success", "failure", "finished"]
CONDITIONS: tuple[Condition, ...] = ("success", "failure", "finished")
Late = Literal["fail", "skip", "run"]  # the policy for an execution that waited too long for its dependencies
LATE: tuple[Late, ...] = ("fail", "skip", "run")
NO_INTERVAL = -1  # the value of `Join.start` for a join without a data interval

JoinState = Literal["open", "started", "skipped", "ended"]
# start: create an execution; release: let the waiting execution continue; skip: end the waiting execution, or record
# that no execution was created
Verdict = Literal["wait", "start", "release", "skip"]


class JoinPart(Struct, frozen=True, kw_only=True):
    """The final state of an upstream's execution, and whether it meets the dependent's condition."""

    upstream: UUID
    met: bool
    state: str
    execution: UUID


class Join(Struct, frozen=True, kw_only=True):
    """The wait of one dependent job. `execution` waits for the join, or was started by it."""

    dependent: UUID
    step: str = ""  # empty for the job's one join of an interval; the execution's id for a join of that execution alone
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


Needed = Mapping[UUID, Condition]  # upstream -> the condition that the end of its execution must meet
Parts = Mapping[UUID, JoinPart]  # upstream -> its part of the join


def meets(condition: Condition, state: str) -> bool:
    """Return whether an execution that ended in this state meets a condition."""
    if condition == "finished":
        return True
    return state == ("success" if condition == "success" else "failed")


def judge(join: Join, needed: Needed, parts: Parts, *, scheduled: bool) -> Verdict:
    """Decide the next step of a join. If the job has its own schedule (`scheduled`), its joins start no execution.

    A join that was skipped because an upstream failed starts an execution if that upstream later succeeds for the same
    interval. A success does not skip the join of a job that depends on failures only: it keeps waiting for a failure.
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
    """Return the upstreams that have no part yet."""
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
    """Describe the upstreams that did not end before the dependent's deadline."""
    upstreams = ", ".join(f'"{names.get(upstream, str(upstream))}"' for upstream in missing(needed, parts))
    return f"It waited for {upstreams}{in_words(interval)}, which did not end in time."


def in_words(interval: tuple[Instant, Instant] | None) -> str:
    """Describe a data interval as part of a sentence."""
    return "" if interval is None else f" for {format_instant(interval[0])} to {format_instant(interval[1])}"
