"""What a backfill is."""

from typing import Literal
from uuid import UUID

from msgspec import Struct

from horae.env import Instant

BackfillState = Literal["running", "paused", "cancelled", "done"]

DEFAULT_CONCURRENT = 16
MOST_CONCURRENT = 1_000
MOST_FIRES = 10_000_000  # that one backfill may be about


class Counts(Struct, frozen=True, kw_only=True):
    """How far a backfill is. Its fires ran before, are not known, were started, or are still to come."""

    total: int = 0  # nominal fires in its range
    already: int = 0  # met on the way and left alone, because they ran
    unknown: int = 0  # left alone, because the ledger has forgotten what became of them
    started: int = 0  # executions made
    succeeded: int = 0
    failed: int = 0
    ended: int = 0  # in any other way: cancelled, skipped, or forgotten

    @property
    def live(self) -> int:
        """Executions made that have not been seen to end."""
        return self.started - self.succeeded - self.failed - self.ended

    @property
    def to_come(self) -> int:
        """Fires that were neither started nor left alone."""
        return max(0, self.total - self.already - self.unknown - self.started)


class Backfill(Struct, frozen=True, kw_only=True):
    """Nominal fires of a job's triggers in [since, until) that are to run, at most so many at a time."""

    id: UUID
    namespace: int
    job: UUID
    trigger: str | None = None  # a trigger's name; None for all of the job's
    since: Instant
    until: Instant
    newest_first: bool = False
    force: bool = False  # runs what ran before, too
    max_concurrent: int = DEFAULT_CONCURRENT
    priority: int | None = None  # instead of the job's
    params: str | None = None  # a JSON object that goes over the params of the job and the trigger
    state: BackfillState = "running"
    at: tuple[Instant, str] | None = None  # the instant and the trigger's name that it got to
    counts: Counts = Counts()
    first_at: Instant | None = None
    last_at: Instant | None = None
    known_from: Instant = 0  # what the ledger knew when it was made
    note: str = ""
    created_by: str = ""
    created_at: Instant
    completed_at: Instant | None = None  # nothing is left to start, and all that was started has ended
