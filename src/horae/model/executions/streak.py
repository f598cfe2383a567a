"""Streaks of failed executions of a job, on which `pauseAfter` acts."""

from collections.abc import Iterable
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.model.executions.execution import FAILED, SUCCESS


class EndedExecutions(Struct, frozen=True):
    """Executions of a job that ended in the same state: their number, the time, and the last of them."""

    count: int
    state: str
    at: Instant
    execution: UUID


class Streak(Struct, frozen=True):
    """The number of failed executions in a row, and the newest of them."""

    failures: int
    execution: UUID


def failure_streak(ended: Iterable[EndedExecutions], since: Instant) -> Streak | None:
    """Return the failures since the last success, or since an instant.

    Cancelled and skipped executions do not count.
    """
    failures, newest = 0, None
    for one in sorted(ended, key=lambda one: (one.at, one.execution), reverse=True):
        if one.state == SUCCESS or one.at <= since:
            break
        if one.state == FAILED:
            failures, newest = failures + one.count, newest or one.execution
    return None if newest is None else Streak(failures, newest)


class AutoPause(Struct, frozen=True, kw_only=True):
    """The reason of an automatic pause: of the job's triggers after failures in a row, or of the whole job."""

    job: UUID
    at: Instant
    failures: int = 0
    execution: UUID | None = None
    triggers: tuple[str, ...] = ()
    reason: str = ""
