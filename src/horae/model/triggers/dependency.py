"""Dependencies: when a job may start because of how executions of others ended.

A *join* is what one dependent waits for: that each of its upstreams meets its condition for one data interval. A *part*
is what one upstream has brought to it so far.
"""

from collections.abc import Mapping
from typing import Literal
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.model.base.instant import format_instant

Condition = Literal["success", "failure", "finished"]
CONDITIONS: tuple[Condition, ...] = ("success", "failure", "finished")
Late = Literal["fail", "skip", "run"]  # what becomes of an execution that waited too long
LATE: tuple[Late, ...] = ("fail", "skip", "run")
NO_INTERVAL = -1  # the start of a join without a data interval

JoinState = Literal["open", "started", "skipped", "ended"]
# start: make its execution; release: let the one that waits go on; skip: end it, or note that there was none
Verdict = Literal["wait", "start", "release", "skip"]


class Part(Struct, frozen=True, kw_only=True):
    """How an upstream's execution ended, and whether that is what the dependent waits for."""

    upstream: UUID
    met: bool
    state: str
    execution: UUID


class Join(Struct, frozen=True, kw_only=True):
    """What a dependent waits for; `execution` is what was started by it, or waits for it."""

    dependent: UUID
    step: str = ""  # empty for the job's own of an interval; else the execution that asked to wait
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
Parts = Mapping[UUID, Part]  # by upstream


def meets(condition: Condition, state: str) -> bool:
    """Whether an execution that ended so is what a dependent waits for."""
    if condition == "finished":
        return True
    return state == ("success" if condition == "success" else "failed")


def judge(join: Join, needed: Needed, parts: Parts, *, scheduled: bool) -> Verdict:
    """What a join comes to. A job with a schedule of its own is started by that, and only waits here.

    What was skipped because an upstream failed starts when that upstream succeeds for the same interval after all. A
    job that only wants to hear of failures is not skipped by a success: there was nothing to start.
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


def unmet(needed: Needed, parts: Parts) -> list[Part]:
    """Upstreams that ended otherwise than their condition asks for."""
    return [parts[upstream] for upstream in sorted(needed) if upstream in parts and not parts[upstream].met]


def missing(needed: Needed, parts: Parts) -> list[UUID]:
    """Upstreams that nothing is known of yet."""
    return [upstream for upstream in sorted(needed) if upstream not in parts]


def why_skipped(needed: Needed, parts: Parts, names: Mapping[UUID, str]) -> str:
    """What kept a dependent from running, for people."""
    told = [
        f'"{names.get(part.upstream, str(part.upstream))}" ended as {part.state} ({part.execution}),'
        f" and this job runs on its {needed[part.upstream]}"
        for part in unmet(needed, parts)
    ]
    return f"{'; '.join(told)}." if told else "It waited too long for its dependencies."


def why_late(needed: Needed, parts: Parts, names: Mapping[UUID, str], interval: tuple[Instant, Instant] | None) -> str:
    """What a dependent waited for in vain."""
    told = ", ".join(f'"{names.get(upstream, str(upstream))}"' for upstream in missing(needed, parts))
    return f"It waited for {told}{in_words(interval)}, which did not end in time."


def in_words(interval: tuple[Instant, Instant] | None) -> str:
    """A data interval in a sentence."""
    return "" if interval is None else f" for {format_instant(interval[0])} to {format_instant(interval[1])}"
