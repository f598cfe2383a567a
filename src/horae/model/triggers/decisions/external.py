"""External triggers: fired by a named event, a webhook, or a new object in a watched place.

They have no nominal instants. When an event arrives, `model/triggers/events` decides which of them it fires.
"""

import hashlib
import posixpath
import re
from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal, get_args
from uuid import UUID

from msgspec import Struct

from horae.env import SECOND, Instant, Micros
from horae.errors import BadInput
from horae.model.base.duration import DAY, format_duration
from horae.model.expressions.meter import MOST_TEXT
from horae.model.fields.kinds import Choice, Custom, Duration, Text
from horae.model.fields.values import kind_of
from horae.model.triggers.decisions.fields import TriggerField
from horae.model.triggers.events.filters import compile_filter
from horae.model.triggers.events.values import EVENT_NAME

Verify = Literal["signature", "none"]
Existing = Literal["ignore", "fire"]

DEFAULT_INTERVAL: Micros = 30 * SECOND
SHORTEST_POLL: Micros = SECOND
MOST_URL = 2048
# A file may still be written to, so it must stay unchanged for a while. Objects in a store appear complete.
FOLDER_SETTLES: Micros = 2 * SECOND

_URL = re.compile(r"(?P<scheme>file|s3|gs)://(?P<place>[^/?#]*)(?P<path>/[^?#]*)?")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,221}")
_EVENT = 'Write {"event": "upload"}; add "filter": "${event.payload.size > 10}" to fire for some events only.'
_WEBHOOK = 'Write "webhook": true, or {"verify": "none"} for senders that cannot sign, such as object stores.'
_WATCH = 'Write {"watch": "file:///srv/inbox"}, "s3://bucket/prefix/" or "gs://bucket/prefix/".'


def _read_event(value: Any, at: str) -> str:
    if not isinstance(value, str) or not EVENT_NAME.fullmatch(value):
        raise BadInput(f"{str(value)[:60]!r} is not a valid name of an event.", _EVENT, field=at)
    return value


def _read_webhook(value: Any, at: str) -> Verify | None:
    if value is False:
        return None
    if value is True:
        return "signature"
    if isinstance(value, dict) and set(value) <= {"verify"}:
        chosen = value.get("verify", "signature")
        if chosen in get_args(Verify):
            return chosen  # type: ignore[no-any-return]
    raise BadInput(f"{at} is not a valid webhook.", _WEBHOOK, field=at)


def _write_webhook(verify: Verify) -> bool | dict[str, str]:
    return True if verify == "signature" else {"verify": verify}


def _read_filter(value: Any, at: str) -> str:
    if not isinstance(value, str):
        raise BadInput(f"{at} is {kind_of(value)}, not a text.", _EVENT, field=at)
    compile_filter(value, at)
    return value


def watch_url(value: Any, field: str) -> str:
    """Return the URL of a watched place in its normal spelling; a path without a scheme is a folder."""
    if isinstance(value, str) and value.startswith("/"):
        value = f"file://{value}"
    found = _URL.fullmatch(value) if isinstance(value, str) and len(value) <= MOST_URL and value.isprintable() else None
    if found is None:
        raise BadInput(f"{str(value)[:60]!r} cannot be watched.", _WATCH, field=field)
    path = found["path"] or ""
    if found["scheme"] == "file":
        if found["place"] not in ("", "localhost") or path in ("", "/"):
            raise BadInput(f"{value[:60]!r} is not the absolute path of a folder.", _WATCH, field=field)
        return f"file://{posixpath.normpath(path)}"
    if not _BUCKET.fullmatch(found["place"]):
        raise BadInput(f"{found['place'][:60]!r} is not a valid name of a bucket.", _WATCH, field=field)
    return f"{found['scheme']}://{found['place']}{path}"


EVENT = Text(128, 1, _read_event)
FILTER = TriggerField(
    Text(MOST_TEXT, 1, _read_filter),
    "Fire only if this condition holds for the event.",
    example="${event.payload.size > 10}",
    metavar="CEL",
)
WEBHOOK = Custom(_read_webhook, bool | dict[str, Any], "bool | Mapping[str, Any]", writes=_write_webhook)
WATCH = Text(MOST_URL, 1, watch_url)


class ExternalTrigger(Struct, frozen=True):
    """A trigger that is fired from outside; it has no instants of its own."""

    wall: ClassVar[None] = None

    def next(self, after: Instant) -> Instant | None:
        return None

    def previous(self, before: Instant) -> Instant | None:
        return None

    def count(self, after: Instant, before: Instant) -> int:
        return 0


class EventTrigger(
    ExternalTrigger, frozen=True, kw_only=True, omit_defaults=True, rename="camel", tag_field="kind", tag="event"
):
    """Fires when an event named `event` arrives and passes the filter.

    `verify` is set if the trigger has its own webhook; it says how calls of the webhook are verified. A trigger without
    an event name is fired by its own webhook only.
    """

    event: Annotated[
        str | None,
        TriggerField(
            EVENT, "Fire when an event with this name arrives.", example="upload", metavar="EVENT", tells="event"
        ),
    ] = None
    filter: Annotated[str | None, FILTER] = None
    verify: Annotated[
        Verify | None,
        TriggerField(
            WEBHOOK,
            "Fire when its own URL is called; calls must be signed by default.",
            name="webhook",
            example={"verify": "none"},
            tells="webhook",
        ),
    ] = None

    @classmethod
    def from_fields(cls, read: dict[str, Any], key: str, created_at: Instant) -> "EventTrigger":
        """Return the trigger with these fields."""
        trigger = cls(**read)
        if trigger.event is None and trigger.verify is None:
            raise BadInput("This trigger would never fire.", f"{_EVENT} {_WEBHOOK}", field="schedule.event")
        return trigger

    @property
    def words(self) -> str:
        """A short description without a full stop."""
        alone = "when its webhook is called" if self.event is None else ", also by webhook"
        by = "" if self.verify is None else alone
        named = "" if self.event is None else f"when the event {self.event} comes"
        return f"{named}{by}{' and passes its filter' if self.filter else ''}"


class WatchTrigger(
    ExternalTrigger, frozen=True, kw_only=True, omit_defaults=True, rename="camel", tag_field="kind", tag="watch"
):
    """Fires once for each version of each object in a folder or under an object store's prefix."""

    url: Annotated[
        str,
        TriggerField(
            WATCH,
            "Fire for each new object in a folder or under an object store's prefix.",
            name="watch",
            example="s3://bucket/inbox/",
            metavar="PLACE",
            tells="watch",
        ),
    ]
    interval: Annotated[
        Micros,
        TriggerField(Duration(SHORTEST_POLL, DAY), "The interval between two checks of a watched place.", null=True),
    ] = DEFAULT_INTERVAL
    existing: Annotated[
        Existing,
        TriggerField(Choice(get_args(Existing)), "The policy for objects that exist when a watch begins."),
    ] = "ignore"
    settle: Annotated[
        Micros,
        TriggerField(
            Duration(0, DAY),
            "How long a watched object must be unchanged; 2s in folders by default.",
            null=True,
        ),
    ] = 0
    filter: Annotated[str | None, FILTER] = None

    @classmethod
    def from_fields(cls, read: dict[str, Any], key: str, created_at: Instant) -> "WatchTrigger":
        """Return the trigger with these fields."""
        settles = FOLDER_SETTLES if read["url"].startswith("file://") else 0
        return cls(**{"settle": settles, **read})

    @property
    def words(self) -> str:
        """A short description without a full stop."""
        return f"for each new object in {self.url}, checked every {format_duration(self.interval)}"

    @property
    def is_folder(self) -> bool:
        return self.url.startswith("file://")

    @property
    def path(self) -> str:
        """The path of a folder, or the prefix in an object store."""
        path = _URL.fullmatch(self.url)["path"] or ""  # type: ignore[index]
        return path if self.is_folder else path.removeprefix("/")

    @property
    def prefix(self) -> str:
        """The prefix of an object store's keys. It ends with a slash, so it matches whole parts of a path."""
        return f"{self.path.rstrip('/')}/" if self.path.strip("/") else ""

    @property
    def bucket(self) -> str:
        return str(_URL.fullmatch(self.url)["place"])  # type: ignore[index]


def watch_id(job: UUID, name: str, url: str) -> UUID:
    """Return the id of a watch's stored state.

    The id depends on the watched place but not on the other fields, so other edits of the trigger keep the state.
    """
    digest = hashlib.sha256(f"{job}\0{name}\0{url}".encode()).digest()
    return UUID(bytes=digest[:16])


def is_within(url: str, roots: Iterable[str]) -> bool:
    """Return whether a URL is inside one of these roots. Only the texts are compared; links are not followed."""
    return any(f"{url}/".startswith(root.rstrip("/") + "/") for root in roots)
