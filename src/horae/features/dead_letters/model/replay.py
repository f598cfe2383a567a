"""Replays: dead letters that match a filter run again as new executions, at a pace; any server goes on with them."""

from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta, Struct

from horae.env import SECOND, Instant, Micros
from horae.model.admission.rate import Rate
from horae.model.fields.kinds import Custom, Moment, Text, as_given
from horae.model.fields.table import Field, JoinedRows, Table

ReplayState = Literal["running", "paused", "cancelled", "done"]
OPEN: tuple[ReplayState, ...] = ("running", "paused")
BATCH = 256  # letters that are submitted together, at most
LEASE: Micros = 30 * SECOND  # after which what a server has taken up and not finished is anybody's


_TEXT = Text(256)
_SPAN = Custom(as_given, Annotated[str, Meta(max_length=256, extra={"kind": "duration"})], "Span")


class Letters(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Which dead letters; each field left out lets all pass. Instants bound when they were made.

    Requests say the job by its name, and may say an age.
    """

    job: Annotated[UUID | None, Field(_TEXT, "Only those of this job, by name or id.", metavar="JOB")] = None
    queue: Annotated[str | None, Field(_TEXT, "Only those of this queue.", metavar="QUEUE")] = None
    error_type: Annotated[str | None, Field(_TEXT, "The type of their error.", metavar="TYPE")] = None
    reason: Annotated[
        str | None, Field(_TEXT, "Why they ended: retries, permanent, runTimeout...", metavar="REASON")
    ] = None
    text: Annotated[str | None, Field(_TEXT, "A part of the error's message.")] = None
    since: Annotated[Instant | None, Field(Moment(), "Not before this.")] = None
    until: Annotated[Instant | None, Field(Moment(), "Before this.")] = None


class _Age(Struct):
    older_than: Annotated[
        str | None, Field(_SPAN, "Made longer ago than this, as 7d.", name="olderThan", metavar="SPAN")
    ] = None


LETTERS = JoinedRows((Table(Letters, "A filter"), Table(_Age, "A filter")), "A filter")


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
