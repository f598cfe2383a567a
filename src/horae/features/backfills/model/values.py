"""A backfill and its counters."""

from typing import Literal
from uuid import UUID

from msgspec import Struct

from horae.env import Instant

BackfillState = Literal["running", "paused", "cancelled", "done"]

DEFAULT_CONCURRENT = 16
MOST_CONCURRENT = 1_000
MOST_FIRES = 10_000_000  # fires that one backfill may run


class BackfillCounts(Struct, frozen=True, kw_only=True):
    """The progress of a backfill. A fire ran before, is unknown to the ledger, was started, or is pending."""

    total: int = 0  # nominal fires in its range
    already: int = 0  # fires that were reached and skipped, because they ran before
    unknown: int = 0  # fires that are skipped, because they are no longer in the ledger
    started: int = 0  # executions created
    succeeded: int = 0
    failed: int = 0
    ended: int = 0  # executions that ended in any other way: cancelled, skipped, or no longer stored

    @property
    def live(self) -> int:
        """The number of executions that were started, and have no recorded end."""
        return self.started - self.succeeded - self.failed - self.ended

    @property
    def pending(self) -> int:
        """The number of fires that were neither started nor skipped."""
        return max(0, self.total - self.already - self.unknown - self.started)


class Backfill(Struct, frozen=True, kw_only=True):
    """A request to run the nominal fires of a job's triggers in [since, until), a bounded number at a time."""

    id: UUID
    namespace: int
    job: UUID
    trigger: str | None = None  # a trigger's name; None for all triggers of the job
    since: Instant
    until: Instant
    newest_first: bool = False
    force: bool = False  # whether fires that ran before run again
    max_concurrent: int = DEFAULT_CONCURRENT
    priority: int | None = None  # None for the job's priority
    params: str | None = None  # a JSON object that overrides the params of the job and the trigger
    state: BackfillState = "running"
    at: tuple[Instant, str] | None = None  # the last fire that it processed: its instant and the name of the trigger
    counts: BackfillCounts = BackfillCounts()
    first_at: Instant | None = None  # the first fire in its range
    last_at: Instant | None = None  # the last fire in its range
    known_from: Instant = 0  # the instant since which the ledger was complete when the backfill was created
    note: str = ""  # the reason why it waits, was paused or was cancelled
    created_by: str = ""
    created_at: Instant
    completed_at: Instant | None = None  # set when no fire is left to start, and all executions have ended
