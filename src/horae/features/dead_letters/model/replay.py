"""Replays: dead letters that match a filter run again as new executions, at a pace; any server goes on with them."""

from typing import Literal
from uuid import UUID

from msgspec import Struct

from horae.env import SECOND, Instant, Micros
from horae.model.admission.rate import Rate

ReplayState = Literal["running", "paused", "cancelled", "done"]
OPEN: tuple[ReplayState, ...] = ("running", "paused")
BATCH = 256  # letters that are submitted together, at most
LEASE: Micros = 30 * SECOND  # after which what a server has taken up and not finished is anybody's


class Letters(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Which dead letters; each field left out lets all pass. Instants bound when they were made."""

    job: UUID | None = None
    queue: str | None = None
    error_type: str | None = None
    reason: str | None = None
    text: str | None = None  # a part of the error's message
    since: Instant | None = None
    until: Instant | None = None


class Replay(Struct, frozen=True, kw_only=True):
    """Letters that are to run again."""

    id: UUID
    namespace: int
    letters: Letters
    rate: Rate | None = None  # None: as fast as it goes
    params: str | None = None  # a JSON object: what changes about theirs
    state: ReplayState = "running"
    place: tuple[UUID, int]  # how far it got: the newest letter that is left lies before it
    next_at: Instant  # when there is something to do
    total: int | None = None  # how many matched when it was made; None when there were more than were counted
    matched: int = 0
    retried: int = 0
    skipped: int = 0
    note: str = ""
    created_by: str = ""
    created_at: Instant
    completed_at: Instant | None = None

    @property
    def batch(self) -> int:
        """How many letters go at a time: about a second's worth, so that a pace is one and not a pulse."""
        if self.rate is None:
            return BATCH
        return max(1, min(BATCH, SECOND // self.rate.interval))

    def pace(self, letters: int) -> Micros:
        """How long so many letters take."""
        return 0 if self.rate is None else letters * self.rate.interval
