"""Triggers that something outside fires: a named event, a webhook, a new object in a watched place.

They have no nominal instants. Which events fire them is decided when one comes, in `model/triggers/events`.
"""

import hashlib
import posixpath
import re
from collections.abc import Iterable
from typing import Any, Literal, get_args
from uuid import UUID

from msgspec import Struct

from horae.env import SECOND, Instant, Micros
from horae.errors import BadInput
from horae.model.base.duration import DAY, format_duration, parse_duration
from horae.model.triggers.events.filters import compile_filter
from horae.model.triggers.events.values import EVENT_NAME

Verify = Literal["signature", "none"]
Existing = Literal["ignore", "fire"]

EVENT_FIELDS = ("event", "filter", "webhook", "params")
WATCH_FIELDS = ("watch", "interval", "existing", "settle", "filter", "params")
EVENT_RULES = ("overlap", "startAt", "endAt", "maxFires", "within", "calendar", "calendars", "outside")
# What says nothing of an event, and why.
NO_EVENT_RULES = {
    "misfire": "it is decided when it comes, so none is missed",
    "grace": "it is decided when it comes, so none is late",
    "jitter": "it fires when it comes, not at an instant from which it could be moved",
    "spread": "it fires when it comes, not at an instant from which it could be moved",
}
DEFAULT_INTERVAL: Micros = 30 * SECOND
SHORTEST_POLL: Micros = SECOND
FOLDER_SETTLES: Micros = 2 * SECOND  # a file that is still written to is not whole; an object appears at once

_URL = re.compile(r"(?P<scheme>file|s3|gs)://(?P<place>[^/?#]*)(?P<path>/[^?#]*)?")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,221}")
_EVENT = 'Write {"event": "upload"}, with "filter": "${event.payload.size > 10}" if not every one is to fire.'
_WEBHOOK = 'Write "webhook": true, or {"verify": "none"} for senders that cannot sign, as object stores.'
_WATCH = 'Write {"watch": "file:///srv/inbox"}, "s3://bucket/prefix/" or "gs://bucket/prefix/".'


class Event(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", tag_field="kind", tag="event"):
    """Fires when a named event comes that passes the filter; `verify` says that it has a webhook, and how it is signed.

    Without a name only its own webhook fires it.
    """

    event: str | None = None
    filter: str | None = None
    verify: Verify | None = None


class Watch(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", tag_field="kind", tag="watch"):
    """Fires once for each version of each object in a folder or under an object store's prefix."""

    url: str
    interval: Micros = DEFAULT_INTERVAL
    existing: Existing = "ignore"  # what is there when the watch begins
    settle: Micros = 0  # how long an object must have been as it is
    filter: str | None = None

    @property
    def is_folder(self) -> bool:
        return self.url.startswith("file://")

    @property
    def path(self) -> str:
        """A folder's path, or an object store's prefix."""
        path = _URL.fullmatch(self.url)["path"] or ""  # type: ignore[index]
        return path if self.is_folder else path.removeprefix("/")

    @property
    def prefix(self) -> str:
        """What an object store's keys begin with: whole parts of a path, so it ends with a slash."""
        return f"{self.path.rstrip('/')}/" if self.path.strip("/") else ""

    @property
    def bucket(self) -> str:
        return str(_URL.fullmatch(self.url)["place"])  # type: ignore[index]


def watch_id(job: UUID, name: str, url: str) -> UUID:
    """What is remembered of a watched place belongs to this: an edit that leaves the place alone forgets nothing."""
    digest = hashlib.sha256(f"{job}\0{name}\0{url}".encode()).digest()
    return UUID(bytes=digest[:16])


def read_event_trigger(value: dict[str, Any], key: str, created_at: Instant) -> Event:
    """Read an event trigger's own fields."""
    name = value.get("event")
    if name is not None and (not isinstance(name, str) or not EVENT_NAME.fullmatch(name)):
        raise BadInput(f"{str(name)[:60]!r} is not a name of an event.", _EVENT, field="schedule.event")
    verify = _verify(value.get("webhook"))
    if name is None and verify is None:
        raise BadInput("Nothing would ever fire this.", f"{_EVENT} {_WEBHOOK}", field="schedule.event")
    return Event(event=name, filter=_filter(value.get("filter")), verify=verify)


def _verify(value: Any) -> Verify | None:
    if value is None or value is False:
        return None
    if value is True:
        return "signature"
    if isinstance(value, dict) and set(value) <= {"verify"}:
        chosen = value.get("verify", "signature")
        if chosen in get_args(Verify):
            return chosen  # type: ignore[no-any-return]
    raise BadInput("That is no webhook.", _WEBHOOK, field="schedule.webhook")


def _filter(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise BadInput("schedule.filter is a text.", _EVENT, field="schedule.filter")
    compile_filter(value, "schedule.filter")
    return value


def read_watch_trigger(value: dict[str, Any], key: str, created_at: Instant) -> Watch:
    """Read a watch's own fields."""
    url = watch_url(value.get("watch"), "schedule.watch")
    settles = FOLDER_SETTLES if url.startswith("file://") else 0
    existing = value.get("existing", "ignore")
    if existing not in get_args(Existing):
        raise BadInput("schedule.existing cannot be that.", "It is one of: ignore, fire.", field="schedule.existing")
    return Watch(
        url=url,
        interval=_span(value, "interval", DEFAULT_INTERVAL, SHORTEST_POLL),
        existing=existing,
        settle=_span(value, "settle", settles, 0),
        filter=_filter(value.get("filter")),
    )


def watch_url(value: Any, field: str) -> str:
    """A place to watch, in one spelling; a path alone is a folder's."""
    if isinstance(value, str) and value.startswith("/"):
        value = f"file://{value}"
    found = _URL.fullmatch(value) if isinstance(value, str) and len(value) <= 2048 and value.isprintable() else None
    if found is None:
        raise BadInput(f"{str(value)[:60]!r} cannot be watched.", _WATCH, field=field)
    path = found["path"] or ""
    if found["scheme"] == "file":
        if found["place"] not in ("", "localhost") or path in ("", "/"):
            raise BadInput(f"{value[:60]!r} is not a folder's whole path.", _WATCH, field=field)
        return f"file://{posixpath.normpath(path)}"
    if not _BUCKET.fullmatch(found["place"]):
        raise BadInput(f"{found['place'][:60]!r} is not a bucket.", _WATCH, field=field)
    return f"{found['scheme']}://{found['place']}{path}"


def is_within(url: str, roots: Iterable[str]) -> bool:
    """Whether a place lies in one of these, by its spelling."""
    return any(f"{url}/".startswith(root.rstrip("/") + "/") for root in roots)


def _span(value: dict[str, Any], name: str, default: Micros, least: Micros) -> Micros:
    if value.get(name) is None:
        return default
    span = parse_duration(value[name], field=f"schedule.{name}")
    if not least <= span <= DAY:
        shown = f"It runs from {format_duration(least)} to {format_duration(DAY)}."
        raise BadInput(f"schedule.{name} cannot be {format_duration(span)}.", shown, field=f"schedule.{name}")
    return span


def render_event(trigger: Event) -> dict[str, Any]:
    """The fields that read as this trigger."""
    given: dict[str, Any] = {"event": trigger.event, "filter": trigger.filter}
    if trigger.verify is not None:
        given["webhook"] = True if trigger.verify == "signature" else {"verify": trigger.verify}
    return {name: part for name, part in given.items() if part is not None}


def render_watch(trigger: Watch) -> dict[str, Any]:
    """The fields that read as this trigger."""
    given: dict[str, Any] = {
        "watch": trigger.url,
        "interval": format_duration(trigger.interval),
        "existing": trigger.existing,
        "settle": format_duration(trigger.settle),
        "filter": trigger.filter,
    }
    return {name: part for name, part in given.items() if part is not None}


def describe_event(trigger: Event) -> str:
    """One short sentence without a full stop."""
    by = (
        "" if trigger.verify is None else "when its webhook is called" if trigger.event is None else ", also by webhook"
    )
    named = "" if trigger.event is None else f"when the event {trigger.event} comes"
    return f"{named}{by}{' and passes its filter' if trigger.filter else ''}"


def describe_watch(trigger: Watch) -> str:
    """One short sentence without a full stop."""
    return f"for each new object in {trigger.url}, looked at every {format_duration(trigger.interval)}"
