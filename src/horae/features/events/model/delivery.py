"""Readers of webhook bodies: an object store's notification has an event for each object; any other JSON is one event.

A form is read, too, if its field `payload` has JSON.
"""

import hashlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

import msgspec

from horae.errors import BadInput
from horae.features.events.model.notifications import ObjectChange, ObjectStoreNotice, read_notification
from horae.model.base.webhook_signature import SignedMessage
from horae.model.executions.parcel import is_deep
from horae.model.triggers.events.values import NewEvent, encode_payload

Headers = Mapping[bytes, bytes]

_FORM = b"application/x-www-form-urlencoded"
_TYPES = (b"x-github-event", b"x-gitea-event", b"x-gitlab-event", b"ce-type")
_REMEDY = "Send one JSON document, or a form as GitHub sends it."


def read_delivery(
    headers: Headers, body: bytes, signed: SignedMessage | None, *, name: str, scope: str
) -> list[NewEvent] | ObjectStoreNotice:
    """Return the events in a body, with this name and with ids that are unique in `scope`. Raises BadInput.

    The id of an object store's event is computed from the object version. Any other event has the id of its signed
    message or, if the message is not signed, the id in the sender's headers. An event without an id is new each time,
    even if the same body was sent before.
    """
    content = _content(headers, body)
    found = read_notification(content)
    if isinstance(found, ObjectStoreNotice):
        return found
    if found is not None:
        return [_event(one, name, scope) for one in found]
    event_id = signed.id if signed is not None else _sent_id(headers)
    kind = _type(headers, content)
    return [NewEvent(name=name, payload=encode_payload(content), id=event_id, source="webhook", type=kind, scope=scope)]


def _event(change: ObjectChange, name: str, scope: str) -> NewEvent:
    payload = encode_payload(change.payload)
    return NewEvent(name=name, payload=payload, id=change.id, source=change.source, type=change.type, scope=scope)


def _content(headers: Headers, body: bytes) -> Any:
    if not body.strip():
        return None
    if headers.get(b"content-type", b"").startswith(_FORM) and not body.lstrip().startswith((b"{", b"[")):
        body = _form(body)  # only if it does not look like JSON: curl declares any body as a form
    try:
        content = msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise BadInput(f"The body is not valid JSON: {error}.", _REMEDY) from None
    except (UnicodeDecodeError, RecursionError):
        raise BadInput("The body is not UTF-8, or nested too deep.", _REMEDY) from None
    if is_deep(content):
        raise BadInput("The body is nested too deep.", "Flatten it.")
    return content


def _form(body: bytes) -> bytes:
    """Return the JSON in the field `payload` of a form, as GitHub sends it."""
    try:
        found = parse_qs(body, max_num_fields=10).get(b"payload")
    except ValueError:
        found = None
    if not found:
        raise BadInput("The form has no field `payload`.", _REMEDY)
    return found[0]


def _sent_id(headers: Headers) -> str | None:
    """Return the id in the sender's headers, if any. It is not authenticated, because the message is not signed."""
    for header in (b"webhook-id", b"svix-id", b"x-github-delivery", b"ce-id"):
        if text := headers.get(header, b"").decode("latin-1"):
            return text if len(text) <= 256 and text.isprintable() else hashlib.sha256(text.encode()).hexdigest()
    return None


def _type(headers: Headers, content: Any) -> str:
    """Return the sender's name for this type of event, or "" if it gives none."""
    for header in _TYPES:
        if text := headers.get(header, b"").decode("latin-1"):
            return text[:256]
    kind = content.get("type") if isinstance(content, dict) else None
    return kind.replace("\0", "")[:256] if isinstance(kind, str) else ""
