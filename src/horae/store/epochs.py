"""The store's epoch: it grows when the store may have gone back in time, so that no old token stays valid.

One backup may be restored many times, in places that know nothing of each other, or be older than restores that came
after it: counting on from what it holds would give an epoch twice. So an epoch that begins is also at least the number
of seconds since 2026: whatever begins later is greater, wherever it is. It fits 31 bits until 2094, and its tokens 63.
"""

from horae.env import SECOND, Instant
from horae.store.moves.sessions import end_old_epochs
from horae.store.script import Fetch, Script, Statement

BEGINNING: Instant = 1_767_225_600 * SECOND  # 2026-01-01

_LAST = Statement("last_epoch", "SELECT value FROM store WHERE key = 'epoch'")
_GROW = Statement(
    "grow_epoch",
    "UPDATE store SET value = CAST(1 + CASE WHEN CAST(value AS int) < $1 THEN $1 ELSE CAST(value AS int) END AS text)"
    " WHERE key = 'epoch' RETURNING value",
)
# A row that was copied as a row, by pg_restore, was written by another transaction than the one it names.
_PLACE = Statement("place", "SELECT value, xmin::text FROM store WHERE key = 'place' FOR UPDATE")
_SET_PLACE = Statement(
    "set_place",
    "INSERT INTO store (key, value) VALUES ('place', $1::text || ' ' || pg_current_xact_id()::xid::text)"
    " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
)
_FORGET_PLACE = Statement("forget_place", "DELETE FROM store WHERE key = 'place'")
_FORGET_SERVERS = Statement("forget_servers", "DELETE FROM servers")


def last() -> Script[int]:
    """The epoch the store is in."""
    return int((yield Fetch(_LAST))[0][0])


def grow(now: Instant, above: int = 0) -> Script[int]:
    """Begin an epoch after the store's, `above` and the present second; end all sessions of old ones, uncharged."""
    epoch = int((yield Fetch(_GROW, (max(above, (now - BEGINNING) // SECOND),)))[0][0])
    yield from end_old_epochs(epoch, now)
    return epoch


def renew(now: Instant, above: int = 0) -> Script[int]:
    """Make a store of its own from one that was restored or copied; tell the epoch that it begins.

    The servers that it names serve the store that it was copied from: workers must not be sent there.
    """
    yield Fetch(_FORGET_PLACE)
    yield Fetch(_FORGET_SERVERS)
    return (yield from grow(now, above))


def on_place(timeline: str, database: str, now: Instant) -> Script[bool]:
    """Remember PostgreSQL's timeline, its cluster and database; begin an epoch when they are others than before.

    Another timeline is a failover or a restore of the cluster. Another cluster or database, or a row that another
    transaction wrote, is a copy: a dump that was restored, or a database made from this one.
    """
    place = f"{timeline} {database}"
    known = yield Fetch(_PLACE)
    if known and known[0][0] == f"{place} {known[0][1]}":
        return False
    if known:
        was_here = known[0][0].partition(" ")[2] == f"{database} {known[0][1]}"
        yield from grow(now) if was_here else renew(now)
    yield Fetch(_SET_PLACE, (place,))
    return bool(known)
