"""Bodies of requests about triggers, for the OpenAPI document; `model.definitions.reading` reads them."""

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, field

from horae.model.fields.derived import body
from horae.model.triggers.decisions.preview import MOST
from horae.model.triggers.decisions.schedule import FIELDS
from horae.server.reading.bodies import RequestBody, When

if TYPE_CHECKING:  # created at run time from the table

    class TriggerPatch(RequestBody, frozen=True, kw_only=True): ...
else:
    TriggerPatch = body(
        FIELDS,
        "TriggerPatch",
        "Parts of a trigger: one kind's fields, rules and params; null resets a field to its default.",
        RequestBody,
    )


class TriggerBody(TriggerPatch, frozen=True, kw_only=True):
    """A trigger: the field that defines its kind, and options that differ from the defaults."""


class PreviewBody(TriggerPatch, frozen=True, kw_only=True):
    """A trigger to preview, or `job` and `trigger` of an existing trigger; the start, and the number of fires."""

    job: str | None = None
    trigger: str | None = None
    from_: Annotated[When, Meta(description="Only fires strictly after this time; now by default.")] | None = field(
        default=None, name="from"
    )
    count: Annotated[int, Meta(ge=1, le=MOST)] = 10
