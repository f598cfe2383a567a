"""The fields of a request for a backfill, declared once."""

import json
from typing import Annotated, Any, Literal

from msgspec import Struct

from horae.env import Instant
from horae.features.backfills.model.values import DEFAULT_CONCURRENT, MOST_CONCURRENT
from horae.model.fields.kinds import Choice, Custom, Flag, Integer, Moment, Text
from horae.model.fields.table import Field, Table
from horae.model.fields.values import an_object

Order = Literal["oldest", "newest"]
EXAMPLE = 'Send {"job": "report", "from": "2026-11-01T00:00:00Z", "to": "2026-11-15T00:00:00Z"}.'


def _read_params(value: Any, at: str) -> bytes:
    return json.dumps(
        an_object(value, at, 'Write an object such as {"day": "2026-11-15"}.'), ensure_ascii=False
    ).encode()


PARAMS = Custom(_read_params, dict[str, Any], "Mapping[str, Any]", json.loads, option="pairs")


class BackfillRequest(Struct, frozen=True, kw_only=True, rename="camel"):
    """A request for a backfill."""

    job: Annotated[str, Field(Text(128, 1), "The job's name or id.", example="report", flag="", sdk=False)]
    since: Annotated[
        Instant,
        Field(Moment(), "The start of the range.", name="from", example="2026-11-01T00:00:00Z", sdk=False),
    ]
    until: Annotated[
        Instant,
        Field(
            Moment(), "The end of the range, exclusive; not after now.", name="to", example="2026-11-15T00:00:00Z",
            sdk=False,
        ),
    ]  # fmt: skip
    trigger: Annotated[
        str | None,
        Field(Text(128), "Only this trigger of the job; by default, all with cron, every or at.", metavar="NAME"),
    ] = None
    max_concurrent: Annotated[int, Field(Integer(1, MOST_CONCURRENT), "How many of its executions may be live.")] = (
        DEFAULT_CONCURRENT
    )
    order: Annotated[Order, Field(Choice(("oldest", "newest")), "The fires to run first.")] = "oldest"
    force: Annotated[bool, Field(Flag(), "Also run fires that ran before.")] = False
    priority: Annotated[
        int | None, Field(Integer(0, 9), "Replaces the job's priority: 0 (least urgent) to 9 (most urgent).")
    ] = None
    params: Annotated[
        bytes | None, Field(PARAMS, "Override the params of the job and the trigger.", example={"day": "1"}, flag="")
    ] = None
    dry_run: Annotated[bool, Field(Flag(), "Only show what would run.", sdk=False)] = False


BACKFILL = Table(BackfillRequest, "A backfill")


def read_request(body: Any) -> BackfillRequest:
    """Read a request. Raises BadInput with the name of the wrong field."""
    request: BackfillRequest = BACKFILL.make(an_object(body, "body", EXAMPLE))
    return request
