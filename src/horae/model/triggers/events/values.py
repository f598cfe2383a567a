"""An event: a name, a payload, and an id by which it is known when it comes again."""

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
    """An event as it came in.

    `id` is the sender's; without one the event is new whenever it comes. `scope` is what the id is unique in: the
    event's name, or one webhook or watch of which nobody else hears.
    """

    name: str
    payload: bytes = b"null"  # JSON
    id: str | None = None
    source: str = "api"
    type: str = ""  # what the sender calls this kind of event
    scope: str = ""

    @property
    def within(self) -> str:
        """In what the id is unique."""
        return self.scope or f"event:{self.name}"


def with_id(event: NewEvent, id: str) -> NewEvent:
    """An event with an id, unless it has one."""
    return event if event.id is not None else structs.replace(event, id=id)


def encode_payload(payload: Any, field: str = "payload") -> bytes:
    """A payload as it is kept; one over its bound is refused."""
    encoded = msgspec.json.encode(payload)
    if len(encoded) > MOST_PAYLOAD:
        remedy = f"At most {MOST_PAYLOAD} are allowed; keep large values elsewhere and send a reference."
        raise TooLarge(f"{field} has {len(encoded)} bytes.", remedy, field=field)
    return encoded


def event_scope(event: NewEvent, id: str, at: Instant) -> dict[str, Any]:
    """What expressions see as `event`."""
    return {
        "id": id,
        "name": event.name,
        "type": event.type,
        "source": event.source,
        "receivedAt": format_instant(at),
        "payload": msgspec.json.decode(event.payload),
    }
