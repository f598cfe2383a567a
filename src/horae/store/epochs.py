"""The store's epoch: it grows whenever the store may have returned to an earlier state, so that old tokens are invalid.

One backup may be restored many times and in several independent places. Counting up from the stored epoch could
therefore give the same epoch twice. So a new epoch is at least the number of seconds since 2026: an epoch that begins
later is greater, wherever it begins. It fits into 31 bits until 2094, and its tokens into 63.
"""

from collections.abc import Callable
from uuid import UUID

from msgspec import Struct

from horae.env import SECOND, Instant
from horae.model.base.installation import Installation
from horae.store.fleet.sessions import end_old_epochs
from horae.store.script import Fetch, Script, Statement

BEGINNING: Instant = 1_767_225_600 * SECOND  # 2026-01-01

_EPOCH = Statement("epoch", "SELECT value FROM store WHERE key = 'epoch'")
_STANDING = Statement(
    "standing", "SELECT key, value FROM store WHERE key IN ('epoch', 'installation', 'former_installations')"
)
_SET = Statement(
    "set_of_store",
    "INSERT INTO store (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
)
_GROW = Statement(
    "grow_epoch",
    "UPDATE store SET value = CAST(1 + CASE WHEN CAST(value AS int) < $1 THEN $1 ELSE CAST(value AS int) END AS text)"
    " WHERE key = 'epoch' RETURNING value",
)
# In a row that pg_restore copied, the transaction that wrote the row differs from the one that the row names.
_PLACE = Statement("place", "SELECT value, xmin::text FROM store WHERE key = 'place' FOR UPDATE")
_SET_PLACE = Statement(
    "set_place",
    "INSERT INTO store (key, value) VALUES ('place', $1::text || ' ' || pg_current_xact_id()::xid::text)"
    " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
)
_FORGET_PLACE = Statement("forget_place", "DELETE FROM store WHERE key = 'place'")
_FORGET_SERVERS = Statement("forget_servers", "DELETE FROM servers")


def begin_epoch(now: Instant, above: int = 0) -> Script[int]:
    """Begin an epoch greater than the store's, `above` and the current second; end all older sessions.

    The executions of these sessions are not charged with a loss.
    """
    epoch = int((yield Fetch(_GROW, (max(above, (now - BEGINNING) // SECOND),)))[0][0])
    yield from end_old_epochs(epoch, now)
    return epoch


class StoreIdentity(Struct, frozen=True):
    """A store's epoch and installation."""

    epoch: int
    installation: Installation


def identity() -> Script[StoreIdentity]:
    """Return the store's epoch and installation."""
    known: dict[str, str] = dict((yield Fetch(_STANDING)))
    former = frozenset(
        UUID(installation_id) for installation_id in known.get("former_installations", "").split(",") if installation_id
    )
    return StoreIdentity(int(known["epoch"]), Installation(UUID(known["installation"]), former))


def renew(new_id: Callable[[], UUID], now: Instant, replaced: StoreIdentity | None = None) -> Script[int]:
    """Make a restored or copied store an installation of its own; return its new epoch.

    Its installation differs from that of the copied store and from that of the replaced store. The servers that it
    lists serve the original. They are removed, because workers must not be sent there.
    """
    before = yield from identity()
    former = before.installation.former | {before.installation.id}
    if replaced is not None:
        former |= replaced.installation.former | {replaced.installation.id}
    yield Fetch(_FORGET_PLACE)
    yield Fetch(_FORGET_SERVERS)
    yield Fetch(_SET, ("installation", str(new_id())))
    yield Fetch(_SET, ("former_installations", ",".join(sorted(map(str, former)))))
    return (yield from begin_epoch(now, 0 if replaced is None else replaced.epoch))


def check_place(timeline: str, database: str, new_id: Callable[[], UUID], now: Instant, above: int = 0) -> Script[int]:
    """Record PostgreSQL's timeline, cluster and database; begin an epoch when they have changed.

    Return the store's epoch. A new epoch is greater than `above`, the last epoch that the caller saw, because a
    failover may have lost that one.

    Another timeline means a failover or a restore of the cluster. Another cluster or database, or a row that another
    transaction wrote, means a copy: a restored dump, or a database created from this one.
    """
    place = f"{timeline} {database}"
    known = yield Fetch(_PLACE)
    if known and known[0][0] == f"{place} {known[0][1]}":
        return int((yield Fetch(_EPOCH))[0][0])
    if known:
        was_here = known[0][0].partition(" ")[2] == f"{database} {known[0][1]}"
        yield from begin_epoch(now, above) if was_here else renew(new_id, now)
    yield Fetch(_SET_PLACE, (place,))
    return int((yield Fetch(_EPOCH))[0][0])
