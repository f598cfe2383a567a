"""The table of watches: places that are scanned periodically, where each version of each object fires once.

A server leases the row of a watch and scans the place outside any transaction. It writes the objects that it has found
only while the row still has the instant at which its scan began. So if two servers scan a place, for example because
one was frozen and lost its lease, only one of them writes. A remembered object version never fires again.
"""

from collections.abc import Callable, Sequence
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import SECOND, Instant, Micros
from horae.features.events.store.events import IntakeResult, take
from horae.features.events.store.listeners import Check, lock_jobs
from horae.model.triggers.decisions.external import WatchTrigger
from horae.model.triggers.decisions.values import Trigger
from horae.model.triggers.events.values import NewEvent
from horae.store.base.shelves import Columns
from horae.store.script import Fetch, ForEach, Insert, Row, Script, Statement
from horae.store.triggers.refusals import ALL_ROOM, Room
from horae.store.triggers.targets import Lead

DUE = Statement(
    "due_watches",
    "SELECT w.id, w.trigger_id, w.job, w.namespace, g.name, g.definition, w.began_at, w.ready, w.counted_at"
    " FROM watches w JOIN triggers g ON g.id = w.trigger_id JOIN jobs j ON j.id = w.job WHERE w.next_poll_at <= $1"
    " AND g.state = 'active' AND j.state = 'active' ORDER BY w.next_poll_at LIMIT $2 FOR UPDATE OF w SKIP LOCKED",
)
TAKE = Statement(
    "take_watches",
    "UPDATE watches SET polled_at = given.polled_at, next_poll_at = given.next_poll_at FROM given"
    " WHERE watches.id = given.id",
)
NEXT = Statement(
    "next_watch",
    "SELECT min(w.next_poll_at) FROM watches w JOIN triggers g ON g.id = w.trigger_id JOIN jobs j ON j.id = w.job"
    " WHERE g.state = 'active' AND j.state = 'active'",
)
# If the trigger or its job was paused or deleted meanwhile, nothing is written. After a resumption, the objects are
# found again.
LOCK_WATCH = Statement(
    "hold_watch",
    "SELECT w.polled_at FROM watches w JOIN triggers g ON g.id = w.trigger_id JOIN jobs j ON j.id = w.job"
    " WHERE w.id = $1 AND g.state = 'active' AND j.state = 'active' FOR UPDATE OF w",
)
REMEMBERED = Statement(
    "remembered_objects",
    "SELECT o.object FROM given JOIN watched o ON o.watch = given.watch AND o.object = given.object",
)
SEEN = Statement(
    "seen_objects",
    "UPDATE watched SET seen_at = given.seen_at FROM given WHERE watched.watch = given.watch"
    " AND watched.object = given.object",
)
RENEW = Statement("renew_watch", "UPDATE watches SET next_poll_at = $3 WHERE id = $1 AND polled_at = $2 RETURNING id")
FINISH = Statement(
    "finish_watch",
    "UPDATE watches SET next_poll_at = $3, objects = $4, counted_at = $5, ready = true, trouble = $6"
    " WHERE id = $1 AND polled_at = $2 RETURNING trigger_id",
)
FAIL = Statement(
    "fail_watch",
    "UPDATE watches SET next_poll_at = $3, trouble = $4 WHERE id = $1 AND polled_at = $2 RETURNING trigger_id",
)
# This column tells why a trigger of any kind does not fire. It is cleared only if it is set.
SET_TROUBLE = Statement("tell_trouble", "UPDATE timers SET trouble = $2 WHERE trigger_id = $1")
CLEAR_TROUBLE = Statement(
    "untell_trouble", "UPDATE timers SET trouble = NULL WHERE trigger_id = $1 AND trouble IS NOT NULL"
)
FORGET = Statement(
    "forget_objects",
    "WITH gone AS MATERIALIZED (SELECT object FROM watched WHERE watch = $1 AND seen_at < $2 LIMIT $3)"
    " DELETE FROM watched WHERE watch = $1 AND object IN (SELECT object FROM gone) RETURNING 1",
)
TROUBLED = Statement(
    "troubled_watches",
    "SELECT count(*) FROM watches JOIN triggers g ON g.id = watches.trigger_id JOIN jobs j ON j.id = watches.job"
    " WHERE watches.trouble IS NOT NULL AND g.state = 'active' AND j.state = 'active'",
)
WATCHED: Columns = (("watch", "uuid"), ("object", "uuid"), ("seen_at", "bigint"))
LEASE: Micros = 60 * SECOND  # if a scan does not renew its lease for this time, another server scans the place


class Poll(Struct, frozen=True, kw_only=True):
    """One scan of a watched place; the row of the watch must still have its `began_at` when the scan writes."""

    watch: UUID
    job: UUID
    namespace: int
    trigger: str
    place: WatchTrigger
    since: Instant  # when the watch began
    ready: bool  # a first scan has completed, so the objects from before the watch are known
    counted_at: Instant  # the start of the latest scan that marked all objects as seen
    began_at: Instant


class FoundObject(Struct, frozen=True, kw_only=True):
    """An object version to write: its digest, its event, and whether it is remembered without firing (`silent`)."""

    object: UUID
    event: NewEvent
    silent: bool = False


class LeaseLost(Exception):
    """Raised if another server scans the place now, or the watch was paused: this scan must not write."""


def lease_due(limit: int, now: Instant) -> Script[list[Poll]]:
    """Lease watches that are due; no other server scans them during the lease."""
    rows = yield Fetch(DUE, (now, limit))
    polls = [_poll(row, now) for row in rows]
    columns: Columns = (("id", "uuid"), ("polled_at", "bigint"), ("next_poll_at", "bigint"))
    if polls:
        yield ForEach(TAKE, columns, [(poll.watch, now, now + LEASE) for poll in polls])
    return polls


def _poll(row: Row, now: Instant) -> Poll:
    place = msgspec.json.decode(row[5], type=Trigger)
    if not isinstance(place, WatchTrigger):
        raise TypeError(f"trigger {row[1]} is no watch")
    return Poll(
        watch=row[0], job=row[2], namespace=row[3], trigger=row[4], place=place, since=row[6], ready=row[7],
        counted_at=row[8], began_at=now,
    )  # fmt: skip


def next_due() -> Script[Instant | None]:
    """Return the instant at which the earliest watch is due; None without watches."""
    rows = yield Fetch(NEXT)
    value: Instant | None = rows[0][0]
    return value


def remembered_objects(watch: UUID, objects: Sequence[UUID]) -> Script[set[UUID]]:
    """Return those of the object versions that the store remembers."""
    columns: Columns = (("watch", "uuid"), ("object", "uuid"))
    rows = yield ForEach(REMEMBERED, columns, [(watch, object_id) for object_id in objects])
    return {row[0] for row in rows}


def record_found(
    poll: Poll,
    found: Sequence[FoundObject],
    lead: Lead,
    check: Check,
    new_id: Callable[[], UUID],
    now: Instant,
    room: Room = ALL_ROOM,
) -> Script[IntakeResult]:
    """Remember object versions, and fire the new ones. Raises LeaseLost, and OverQuota as `take` does."""
    yield from lock_jobs({poll.job})  # before the watch, as an edit of the job does
    yield from _check_lease(poll)
    rows = [(poll.watch, one.object, now) for one in sorted(found, key=lambda one: one.object)]
    new = yield Insert("watched", WATCHED, rows, conflict="ON CONFLICT DO NOTHING", returning="object")
    fresh = {row[0] for row in new}
    events = [one.event for one in found if one.object in fresh and not one.silent]
    yield Fetch(RENEW, (poll.watch, poll.began_at, now + LEASE))
    if not events:
        return IntakeResult([], [], {}, None)
    only = poll.job, poll.trigger
    return (yield from take(poll.namespace, events, lead, check, new_id, now, only=only, room=room))


def _check_lease(poll: Poll) -> Script[None]:
    rows = yield Fetch(LOCK_WATCH, (poll.watch,))
    if not rows or rows[0][0] != poll.began_at:  # guard: look-not-overtaken
        raise LeaseLost


def mark_seen(poll: Poll, objects: Sequence[UUID], now: Instant) -> Script[None]:
    """Record that remembered object versions still exist, for `forget`. Raises LeaseLost."""
    yield from _check_lease(poll)
    columns: Columns = WATCHED
    yield ForEach(SEEN, columns, [(poll.watch, object_id, now) for object_id in sorted(objects)])


def renew(poll: Poll, now: Instant) -> Script[None]:
    """Renew the lease of a scan. Raises LeaseLost."""
    if not (yield Fetch(RENEW, (poll.watch, poll.began_at, now + LEASE))):
        raise LeaseLost


def forget(poll: Poll, most: int) -> Script[bool]:
    """Delete object versions that this scan has not marked as seen; return true if there may be more."""
    yield from _check_lease(poll)
    return len((yield Fetch(FORGET, (poll.watch, poll.began_at, most)))) == most


def finish(
    poll: Poll, objects: int, counted_at: Instant, next_poll_at: Instant, trouble: str | None = None
) -> Script[bool]:
    """Complete a scan; return false if it has lost its lease. `trouble` tells which parts could not be read."""
    rows = yield Fetch(FINISH, (poll.watch, poll.began_at, next_poll_at, objects, counted_at, trouble))
    for (trigger_id,) in rows:
        if trouble is None:
            yield Fetch(CLEAR_TROUBLE, (trigger_id,))
        else:
            yield Fetch(SET_TROUBLE, (trigger_id, f"{poll.place.url} cannot be watched as a whole: {trouble}"))
    return bool(rows)


def fail(poll: Poll, reason: str, next_poll_at: Instant) -> Script[bool]:
    """Record a failed scan; the reason is shown until a scan succeeds."""
    rows = yield Fetch(FAIL, (poll.watch, poll.began_at, next_poll_at, reason))
    for (trigger_id,) in rows:
        yield Fetch(SET_TROUBLE, (trigger_id, f"{poll.place.url} cannot be watched: {reason}"))
    return bool(rows)


def troubled() -> Script[int]:
    """Count the active watches that cannot be scanned, or not as a whole."""
    rows = yield Fetch(TROUBLED)
    return int(rows[0][0])
