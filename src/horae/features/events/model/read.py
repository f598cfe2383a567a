"""Readers of events in requests to the API."""

from typing import Any

from horae.errors import BadInput
from horae.model.fields.values import a_list, a_text, an_object, refuse_unknown, shallow
from horae.model.triggers.events.values import EVENT_NAME, MOST_ID, NewEvent, encode_payload

_EXAMPLE = 'Send {"name": "upload", "payload": {"key": "a.csv"}}; with an "id", a repeated event is recognized.'
_FIELDS = ("name", "payload", "id")
MOST_EVENTS = 1000  # events in one request


def event_name(value: Any, field: str) -> str:
    """Check the name of an event and return it; names may be grouped with dots, colons and slashes."""
    text = a_text(value, field, most=1000, least=1)
    if not EVENT_NAME.fullmatch(text):
        rule = "Use 1 to 128 letters, digits, dots, colons, slashes, dashes and underscores."
        raise BadInput(f"{text[:60]!r} is not a valid name of an event.", rule, field=field)
    return text


def read_events(value: Any) -> list[NewEvent]:
    """Read a list of events. An error names the position of the wrong event."""
    given = an_object(value, "body", _EXAMPLE)
    refuse_unknown(given, ("events",), "This request")
    listed = a_list(given["events"], "events", _EXAMPLE, MOST_EVENTS)
    if not listed:
        raise BadInput("There are no events.", _EXAMPLE, field="events")
    return [read_event(one, f"events[{i}]") for i, one in enumerate(listed)]


def read_event(value: Any, field: str = "") -> NewEvent:
    """Read one event. Raises BadInput, which names `field`, the position of the event in a list."""
    prefix = f"{field}." if field else ""
    given = an_object(value, field or "body", _EXAMPLE)
    shallow(given, field or "body")
    refuse_unknown(given, _FIELDS, "An event", prefix)
    if given.get("name") is None:
        raise BadInput("An event needs a name.", _EXAMPLE, field=f"{prefix}name")
    event_id = given.get("id")
    return NewEvent(
        name=event_name(given["name"], f"{prefix}name"),
        payload=encode_payload(given.get("payload"), f"{prefix}payload"),
        id=None if event_id is None else a_text(event_id, f"{prefix}id", most=MOST_ID, least=1),
    )
