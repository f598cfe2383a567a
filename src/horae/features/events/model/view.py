"""Events, webhooks and watches as the API shows them."""

from uuid import UUID

from msgspec import UNSET, Raw, UnsetType

from horae.model.base.view import Time, View


class EventFired(View, frozen=True, kw_only=True):
    """An execution that an event started; the disposition `moved` says that it is due when a calendar opens."""

    job: str
    job_id: UUID
    trigger: str
    execution_id: UUID
    disposition: str
    cause: str


class EventSkipped(View, frozen=True, kw_only=True):
    """What a trigger that hears an event does without an execution to show for it, and why."""

    job: str
    job_id: UUID
    trigger: str
    disposition: str
    cause: str


class EventView(View, frozen=True, kw_only=True):
    """An event and what became of it; `repeated` says that it had come before, and that nothing fired again."""

    event_id: str
    name: str
    source: str
    type: str | None = None
    received_at: Time
    fired: list[EventFired]
    skipped: list[EventSkipped]
    repeated: bool = False
    note: str | None = None
    payload: Raw | UnsetType = UNSET


class EventsTaken(View, frozen=True, kw_only=True):
    """What became of many events, in their order."""

    items: list[EventView]
    fired: int
    repeated: int


class EventPlan(View, frozen=True, kw_only=True):
    """What an event would come to if it came now: which triggers would fire, and why others would not."""

    name: str
    fires: list[EventSkipped]
    skipped: list[EventSkipped]
    repeated: bool = False
    note: str | None = None


class Delivered(View, frozen=True, kw_only=True):
    """What a webhook came to: which events it was, and how many executions they started."""

    event_ids: list[str]
    fired: int
    repeated: bool
    note: str | None = None


class HookView(View, frozen=True, kw_only=True):
    """A trigger's webhook. `url` and `secret` are told once, when they are made."""

    job: str
    trigger: str
    verify: str
    created_at: Time
    url: str | UnsetType = UNSET
    secret: str | UnsetType = UNSET
    old_until: Time | None = None
    note: str | None = None
