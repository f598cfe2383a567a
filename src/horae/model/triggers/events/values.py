"""Events: a name, a payload, and an id that identifies repeated deliveries."""

import re
from typing import Any

import msgspec
from msgspec import Struct, structs

from horae.env import Instant
from horae.errors import TooLarge
from horae.model.base.instant import format_instant

EVENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}")
MOST_PAYLOAD = 256 * 1024
MOST_ID = 256


class NewEvent(Struct, frozen=True, kw_only=True):
    """A received event.

    `id` comes from the sender; an event without an id is never a repeated delivery. `scope` is the range within which
    the id is unique: one webhook or watch, because its events reach only its own trigger, or empty for an event that is
    sent by name.
    """

    name: str
    payload: bytes = b"null"  # JSON
    id: str | None = None
    source: str = "api"
    type: str = ""  # the sender's name for this kind of event
    scope: str = ""

    @property
    def id_scope(self) -> str:
        """The range within which the id is unique: `scope`, or the event's name."""
        return self.scope or f"event:{self.name}"


def with_id(event: NewEvent, event_id: str) -> NewEvent:
    """Return the event with this id, unless it has one already."""
    return event if event.id is not None else structs.replace(event, id=event_id)


def encode_payload(payload: Any, field: str = "payload") -> bytes:
    """Encode a payload for storage, or refuse one that is too large."""
    encoded = msgspec.json.encode(payload)
    if len(encoded) > MOST_PAYLOAD:
        remedy = f"At most {MOST_PAYLOAD} are allowed; keep large values elsewhere and send a reference."
        raise TooLarge(f"{field} has {len(encoded)} bytes.", remedy, field=field)
    return encoded


def event_scope(event: NewEvent, event_id: str, at: Instant) -> dict[str, Any]:
    """Return the value that expressions see as `event`."""
    return {
        "id": event_id,
        "name": event.name,
        "type": event.type,
        "source": event.source,
        "receivedAt": format_instant(at),
        "payload": msgspec.json.decode(event.payload),
    }
