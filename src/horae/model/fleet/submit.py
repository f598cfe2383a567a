"""Submissions: the fields of a request for an execution, which clients or running jobs send."""

from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from msgspec import Meta, Raw, Struct, field

from horae.env import Instant
from horae.model.base.duration import LONGEST
from horae.model.base.instant import format_instant, parse_instant
from horae.model.fields.kinds import Custom, Duration, Flag, Integer, Moment, Text, as_given
from horae.model.fields.table import Field, Table
from horae.model.fleet.protocol import ABSENT, MAX_CALL, MOST_CHILDREN, At, Count, Length, Wire


@dataclass(frozen=True, eq=False)
class SubmitField(Field):
    """A field of a submission, with the other places where it may be given."""

    shared: bool = True  # whether a bulk submission may give it once for all executions
    called: bool = True  # whether a call of a job in the SDK accepts it beside the params


class DataInterval(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A data interval; the end is excluded."""

    start: Moment.given
    end: Moment.given


def _read_interval(value: Any, at: str) -> tuple[Instant, Instant]:
    return parse_instant(value.start, field=f"{at}.start"), parse_instant(value.end, field=f"{at}.end")


def _write_interval(interval: tuple[Instant, Instant]) -> dict[str, str]:
    return {"start": format_instant(interval[0]), "end": format_instant(interval[1])}


_SPAN = Duration(0, LONGEST)
_PARAMS = Custom(as_given, Annotated[Raw, Meta(extra_json_schema={"type": "object"})], "Any", option="pairs")
_TAGS = Custom(as_given, dict[str, str], "Mapping[str, str]", option="pairs")
_INTERVAL = Custom(_read_interval, DataInterval, "tuple[datetime | str, datetime | str]", _write_interval)


class Submit(Wire, frozen=True, kw_only=True):
    """One requested execution: from a route, the SDK, or a running job through its session."""

    job: Annotated[str, SubmitField(Text(128, least=1), "The job's name or id.", sdk=False, flag="")]
    params: Annotated[
        Raw, SubmitField(_PARAMS, "Params; they override the job's own by name.", sdk=False, shared=False, flag="param")
    ] = ABSENT
    delay: Annotated[Length | None, SubmitField(_SPAN, "The wait before it runs.", example="10m")] = None
    at: Annotated[At | None, SubmitField(Moment(), "When it runs.", example="2026-11-15T08:00:00Z")] = None
    key: Annotated[
        str | None,
        SubmitField(
            Text(256, least=1),
            "A key that makes it unique: while the key is taken, no new execution is created.",
            metavar="KEY",
            shared=False,
        ),
    ] = None
    key_for: Annotated[
        Length | None,
        SubmitField(_SPAN, "How long its key stays taken, instead of the job's own time.", shared=False),
    ] = None
    priority: Annotated[
        int | None,
        SubmitField(Integer(0, 9), "From 0 (least urgent) to 9 (most urgent); the default is the job's own."),
    ] = None
    deadline: Annotated[At | None, SubmitField(Moment(), "When it should end; deadline queues order by this.")] = None
    within: Annotated[Length | None, SubmitField(_SPAN, "The deadline, as a span after it is due.", example="2h")] = (
        None
    )
    tags: Annotated[
        dict[str, str], SubmitField(_TAGS, "Tags besides the job's own.", example={"team": "data"}, flag="tag")
    ] = field(default_factory=dict)
    trace: str | None = None  # W3C's traceparent
    trace_state: str | None = None  # W3C's tracestate
    interval: Annotated[
        tuple[At, At] | None,
        SubmitField(
            _INTERVAL,
            "The interval of its data; jobs that depend on this one inherit it.",
            example={"start": "2026-11-14T00:00:00Z", "end": "2026-11-15T00:00:00Z"},
            called=False,
            metavar="START/END",
        ),
    ] = None
    propagate: Annotated[
        bool,
        SubmitField(Flag(off="no-propagate"), "Whether its end starts jobs that depend on this one.", called=False),
    ] = True
    wait_for_dependencies: Annotated[
        bool,
        SubmitField(Flag(off="no-wait-for-dependencies"), "Whether it waits for the job's dependencies.", called=False),
    ] = False


SUBMISSION = Table(Submit, "A submission")


class ChildSubmit(Wire, frozen=True, kw_only=True):
    """POST /api/v1/sessions/{id}/executions: a running item submits executions.

    `call` counts the submissions of this execution; a repeated call returns the same executions.
    """

    parcel: UUID
    item: Count
    attempt: Count
    call: Annotated[str, Meta(min_length=1, max_length=MAX_CALL)]
    submissions: Annotated[list[Submit], Meta(max_length=MOST_CHILDREN)]
