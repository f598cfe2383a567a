"""Dead letters and their replays: values, filters, and views of the API.

A replay retries dead letters that match a filter as new executions at a limited rate, on any server.
"""

from collections.abc import Mapping
from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta, Raw, Struct, field

from horae.env import SECOND, Instant, Micros
from horae.model.admission.rate import Rate
from horae.model.base.view import Time, View, shown_time
from horae.model.executions.execution_view import ErrorView, ExecutionView
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


class FailedStepView(View, frozen=True, kw_only=True):
    """A failed step of a failed workflow. `executionId` is the step's execution, or the first one of a foreach."""

    step: str
    execution_id: UUID | None = None
    error: ErrorView | None = None


class DeadLetterView(View, frozen=True, kw_only=True):
    """An execution that failed for good.

    `state` is open, retried or discarded; `retriedAs` is the new execution of a retried one. A failed workflow is one
    dead letter with its failed `steps`, which are not dead letters of their own.
    """

    execution: ExecutionView
    state: Literal["open", "retried", "discarded"] = "open"
    retried_as: UUID | None = None
    marked_at: Time | None = None
    steps: list[FailedStepView] = []


class DeadLetterGroup(View, frozen=True, kw_only=True):
    """The dead letters of one job with one error type. `trend` counts failures in each 24th of the window."""

    job_id: UUID
    job_name: str
    error_type: str
    count: int
    newest_id: UUID
    newest_at: Time
    oldest_at: Time
    trend: list[int]
    error_message: str | None = None


class DeadLetterGroups(View, frozen=True, kw_only=True):
    """Groups, the largest first. `complete` is false if there are more dead letters or groups than were counted.

    The window of each `trend` is from `from` to `to`; it begins at the filter's `since` or with the oldest failure.
    """

    items: list[DeadLetterGroup]
    from_: Time = field(name="from")
    to: Time
    complete: bool


class BulkView(View, frozen=True, kw_only=True):
    """The result of a bulk action.

    `more` is true if there may be more dead letters than the limit allowed; a request with `nextCursor` as the filter's
    `cursor` continues with them. `notes` says why some were skipped.
    """

    matched: int
    done: int
    skipped: int = 0
    more: bool = False
    next_cursor: str | None = None
    execution_ids: list[UUID] = []
    notes: list[str] = []


class DeadLetterFilterView(View, frozen=True, kw_only=True):
    """The filter of a replay."""

    job: str | None = None
    queue: str | None = None
    error_type: str | None = None
    reason: str | None = None
    text: str | None = None
    since: Time | None = None
    until: Time | None = None


class ReplayView(View, frozen=True, kw_only=True):
    """A replay of dead letters and its progress."""

    replay_id: UUID
    state: ReplayState
    filter: DeadLetterFilterView
    rate: str | None = None
    params: Annotated[Raw, Meta(description="The merge patch of the params of all dead letters.")] | None = None
    total: (
        Annotated[
            int,
            Meta(description="How many dead letters matched when the replay was created; null if too many to count."),
        ]
        | None
    ) = None
    matched: Annotated[int, Meta(description="How many dead letters were processed so far.")]
    retried: int
    skipped: Annotated[int, Meta(description="How many were processed but not retried; `note` has a reason.")]
    note: str
    next_at: Time | None = None
    created_by: str
    created_at: Time
    completed_at: Time | None = None


def show_replay(r: Replay, names: Mapping[UUID, str]) -> ReplayView:
    """Return the view of a replay; `names` are the names of jobs."""
    letters = r.letters
    return ReplayView(
        replay_id=r.id, state=r.state, rate=None if r.rate is None else str(r.rate),
        filter=DeadLetterFilterView(
            job=None if letters.job is None else names.get(letters.job, str(letters.job)), queue=letters.queue,
            error_type=letters.error_type, reason=letters.reason, text=letters.text, since=shown_time(letters.since),
            until=shown_time(letters.until),
        ),
        params=None if r.params is None else Raw(r.params.encode()), total=r.total, matched=r.matched,
        retried=r.retried, skipped=r.skipped, note=r.note,
        next_at=shown_time(r.next_at) if r.state == "running" else None, created_by=r.created_by,
        created_at=shown_time(r.created_at) or "", completed_at=shown_time(r.completed_at),
    )  # fmt: skip
