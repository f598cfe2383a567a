"""Replays: dead letters that match a filter are retried as new executions at a limited rate, on any server."""

from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta, Struct

from horae.env import SECOND, Instant, Micros
from horae.model.admission.rate import Rate
from horae.model.fields.kinds import Custom, Moment, Text, as_given
from horae.model.fields.table import Field, JoinedRows, Table

ReplayState = Literal["running", "paused", "cancelled", "done"]
OPEN: tuple[ReplayState, ...] = ("running", "paused")
BATCH = 256  # the most dead letters that are submitted together
LEASE: Micros = 30 * SECOND  # after this, another server may take over an unfinished batch


_TEXT = Text(256)
_SPAN = Custom(as_given, Annotated[str, Meta(max_length=256, extra={"kind": "duration"})], "Span")


class LetterFilter(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A filter of dead letters. A field that is left out matches all; instants bound the creation of the executions.

    In requests, the job may be a name, and there may be an age (`olderThan`) instead of `until`.
    """

    job: Annotated[UUID | None, Field(_TEXT, "Only dead letters of this job, by name or id.", metavar="JOB")] = None
    queue: Annotated[str | None, Field(_TEXT, "Only dead letters of this queue.", metavar="QUEUE")] = None
    error_type: Annotated[str | None, Field(_TEXT, "Only dead letters with this type of error.", metavar="TYPE")] = None
    reason: Annotated[
        str | None,
        Field(_TEXT, "Only dead letters that ended for this reason: retries, permanent, ...", metavar="REASON"),
    ] = None
    text: Annotated[str | None, Field(_TEXT, "Only dead letters whose error message contains this text.")] = None
    since: Annotated[Instant | None, Field(Moment(), "Only dead letters created at this time or later.")] = None
    until: Annotated[Instant | None, Field(Moment(), "Only dead letters created before this time.")] = None


class _Age(Struct):
    older_than: Annotated[
        str | None,
        Field(_SPAN, "Only dead letters created longer ago than this, such as 7d.", name="olderThan", metavar="SPAN"),
    ] = None


LETTER_FILTER = JoinedRows((Table(LetterFilter, "A filter"), Table(_Age, "A filter")), "A filter")


class Replay(Struct, frozen=True, kw_only=True):
    """A request to retry the dead letters that match a filter, and its progress."""

    id: UUID
    namespace: int
    letters: LetterFilter
    rate: Rate | None = None  # None: unlimited
    params: str | None = None  # a JSON object: a patch of the params
    state: ReplayState = "running"
    place: tuple[UUID, int]  # the parcel and the item that it has reached; the remaining dead letters precede it
    next_at: Instant  # when the next batch is due
    total: int | None = None  # how many matched when it was created; None if there were too many to count
    matched: int = 0  # how many were processed so far
    retried: int = 0
    skipped: int = 0
    note: str = ""  # why some were skipped, or why the last batch was refused
    created_by: str = ""
    created_at: Instant
    completed_at: Instant | None = None

    @property
    def batch(self) -> int:
        """The size of a batch: as many as the rate allows in a second, so that executions are spread evenly."""
        if self.rate is None:
            return BATCH
        return max(1, min(BATCH, SECOND // self.rate.interval))

    def pace(self, letters: int) -> Micros:
        """Return the time from the start of a batch with this many dead letters until the next batch."""
        return 0 if self.rate is None else letters * self.rate.interval
