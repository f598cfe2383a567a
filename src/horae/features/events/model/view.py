"""The API views of events and webhooks, and the fields of a request for a webhook."""

from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Raw, Struct, UnsetType

from horae.model.base.view import Time, View
from horae.model.fields.kinds import Custom, Flag, SpanText, Text, as_given
from horae.model.fields.table import Field, Table

_SPAN = Custom(as_given, SpanText, "Span")


class HookRequest(Struct, frozen=True, kw_only=True, rename="camel"):
    """A request to create a webhook, or to give it a new secret."""

    secret: Annotated[
        str | None, Field(Text(256), "The sender's secret; by default a new secret is generated.", flag="")
    ] = None
    new_url: Annotated[bool, Field(Flag(), "Create a new URL beside the old one.")] = False
    overlap: Annotated[str | float, Field(_SPAN, "How long the old secret or URL stays valid.", metavar="SPAN")] = "1d"


HOOK = Table(HookRequest, "A webhook")


class EventFired(View, frozen=True, kw_only=True):
    """An execution that an event started. The disposition `moved` means that it is due when a calendar opens."""

    job: str
    job_id: UUID
    trigger: str
    execution_id: UUID
    disposition: str
    cause: str


class EventDecision(View, frozen=True, kw_only=True):
    """The decision of a trigger about an event, with the reason."""

    job: str
    job_id: UUID
    trigger: str
    disposition: str
    cause: str


class EventView(View, frozen=True, kw_only=True):
    """An event and its results. `repeated` means that the event had arrived before, and that nothing fired again."""

    event_id: str
    name: str
    source: str
    type: str | None = None
    received_at: Time
    fired: list[EventFired]
    skipped: list[EventDecision]
    repeated: bool = False
    note: str | None = None
    payload: Raw | UnsetType = UNSET


class EventsReceipt(View, frozen=True, kw_only=True):
    """The results of several events, in their order."""

    items: list[EventView]
    fired: int
    repeated: int


class EventPlan(View, frozen=True, kw_only=True):
    """The expected results of an event: the triggers that would fire, and the reasons why others would not."""

    name: str
    fires: list[EventDecision]
    skipped: list[EventDecision]
    repeated: bool = False
    note: str | None = None


class WebhookReceipt(View, frozen=True, kw_only=True):
    """The result of a webhook call: its events, and the number of executions that they started."""

    event_ids: list[str]
    fired: int
    repeated: bool
    note: str | None = None


class HookView(View, frozen=True, kw_only=True):
    """A trigger's webhook. `url` and `secret` are shown once, when they are created."""

    job: str
    trigger: str
    verify: str
    created_at: Time
    url: str | UnsetType = UNSET
    secret: str | UnsetType = UNSET
    old_valid_until: Time | None = None
    note: str | None = None
