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

        The clock of the place may be ahead, by less than `settle`. A later modification time proves nothing, so an
        object with such a time counts as unchanged.
        """
        return abs(now - self.modified) >= place.settle

    def is_silent(self, poll: Poll) -> bool:
        """Return whether the scan remembers this version without firing.

        The first scan does so with versions from before the watch, if the place ignores existing objects.
        """
        before = self.modified < poll.since // SECOND * SECOND  # object stores report whole seconds
        return poll.place.existing == "ignore" and not poll.ready and before


def found_object(version: ObjectVersion, poll: Poll) -> FoundObject:
    """Return the object version to write."""
    return FoundObject(object=version.digest, event=_event(version, poll), silent=version.is_silent(poll))


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
