"""Versions of objects in watched places, and their events."""

import hashlib
from uuid import UUID

from msgspec import Struct

from horae.env import SECOND, Instant
from horae.features.events.store.watches import FoundObject, Poll
from horae.model.base.instant import format_instant
from horae.model.triggers.decisions.external import WatchTrigger
from horae.model.triggers.events.values import MOST_ID, NewEvent, encode_payload


class ObjectVersion(Struct, frozen=True, kw_only=True):
    """One version of an object; `key` is relative to the watched place."""

    key: str
    version: str
    size: int
    modified: Instant
    etag: str | None = None
    raw: bytes = b""  # the key as bytes: the names of files need not be text

    @property
    def digest(self) -> UUID:
        """The digest of key and version, under which the store remembers the object version."""
        whole = hashlib.sha256(self.raw or self.key.encode()).digest() + self.version.encode()
        return UUID(bytes=hashlib.sha256(whole).digest()[:16])

    def is_settled(self, place: WatchTrigger, now: Instant) -> bool:
        """Return whether the object has been unchanged for the time `settle` of its place.

        A modification time in the future proves nothing, so an object with such a time counts as unchanged.
        """
        return not now - place.settle < self.modified <= now


def found_object(version: ObjectVersion, poll: Poll) -> FoundObject:
    """Return the object version to write.

    If the place ignores existing objects, the first scan remembers versions from before the watch without firing.
    """
    place = poll.place
    before = version.modified < poll.since // SECOND * SECOND  # object stores report whole seconds
    silent = place.existing == "ignore" and not poll.ready and before
    return FoundObject(object=version.digest, event=_event(version, poll), silent=silent)


def _event(version: ObjectVersion, poll: Poll) -> NewEvent:
    place = poll.place
    base = place.url if place.url.endswith("/") else f"{place.url}/"
    payload = {
        "action": "created",
        "url": f"{base}{version.key}",
        "path": f"{place.path}/{version.key}" if place.is_folder else None,
        "bucket": None if place.is_folder else place.bucket,
        "key": version.key if place.is_folder else f"{place.prefix}{version.key}",
        "size": version.size,
        "etag": version.etag,
        "version": version.version,
        "modified": format_instant(version.modified),
    }
    key = f"{version.key}#{version.version}"
    return NewEvent(
        name=poll.trigger,
        payload=encode_payload(payload),
        id=key if len(key) <= MOST_ID and "\0" not in key else str(version.digest),
        source="watch",
        type="created",
        scope=f"watch:{poll.watch}",
    )
