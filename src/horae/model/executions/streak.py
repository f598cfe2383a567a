"""Streaks: how many executions of a job failed in a row, and what `pauseAfter` makes of that."""

from collections.abc import Iterable
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.model.executions.execution import FAILED, SUCCESS


class EndedExecutions(Struct, frozen=True):
    """Executions of a job that ended alike: how many, how, when, and the last of them."""

    count: int
    state: str
    at: Instant
    execution: UUID


class Streak(Struct, frozen=True):
    """Failed executions in a row, and the newest of them."""

    failures: int
    execution: UUID


def failure_streak(ended: Iterable[EndedExecutions], since: Instant) -> Streak | None:
    """The failures since the last success, or since an instant; what was cancelled or skipped says nothing."""
    failures, newest = 0, None
    for one in sorted(ended, key=lambda one: (one.at, one.execution), reverse=True):
        if one.state == SUCCESS or one.at <= since:
            break
        if one.state == FAILED:
            failures, newest = failures + one.count, newest or one.execution
    return None if newest is None else Streak(failures, newest)


class AutoPause(Struct, frozen=True, kw_only=True):
    """Why a job paused by itself: its triggers, after failures in a row, or all of it, for a reason in words."""

    job: UUID
    at: Instant
    failures: int = 0
    execution: UUID | None = None
    triggers: tuple[str, ...] = ()
    reason: str = ""
