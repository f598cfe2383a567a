"""The store's epoch: it grows whenever the store may have returned to an earlier state, so that old tokens are invalid.

One backup may be restored many times, and to several databases. If a restore only added 1 to the stored epoch, two of
them could begin the same epoch. So a new epoch is at least the number of seconds since the start of 2026: of two epochs
that begin in different databases, the later one is greater. An epoch fits into 31 bits until 2094, and the fencing
token of an attempt (the epoch and the attempt number) into 63.
"""

from collections.abc import Callable
from uuid import UUID

from msgspec import Struct

from horae.env import SECOND, Instant
from horae.model.base.installation import Installation
from horae.store.fleet.sessions import detach_old_epochs, end_detached, end_old_epochs
from horae.store.script import Fetch, Script, Statement

BEGINNING: Instant = 1_767_225_600 * SECOND  # 2026-01-01

_EPOCH = Statement("epoch", "SELECT value FROM store WHERE key = 'epoch'")
_IDENTITY = Statement(
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
# The value of the row ends with the id of the transaction that wrote it. If pg_restore copied the row, another
# transaction wrote it, so that its `xmin` differs from this id.
_PLACE = Statement("place", "SELECT value, xmin::text FROM store WHERE key = 'place' FOR UPDATE")
_SET_PLACE = Statement(
    "set_place",
    "INSERT INTO store (key, value) VALUES ('place', $1::text || ' ' || pg_current_xact_id()::xid::text)"
    " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
)
_FORGET_PLACE = Statement("forget_place", "DELETE FROM store WHERE key = 'place'")
_FORGET_SERVERS = Statement("forget_servers", "DELETE FROM servers")


def begin_epoch(now: Instant, above: int = 0, *, detaches: bool = False) -> Script[int]:
    """Begin an epoch greater than the stored one and `above`, and end the sessions of earlier epochs.

    With `detaches`, sessions of workers that can re-attach are detached instead. The loss of ended sessions does not
    count as a loss of their executions.
    """
    epoch = int((yield Fetch(_GROW, (max(above, (now - BEGINNING) // SECOND),)))[0][0])
    yield from detach_old_epochs(epoch) if detaches else end_detached(epoch, now)
    yield from end_old_epochs(epoch, now)
    return epoch


class StoreIdentity(Struct, frozen=True):
    """The epoch of a store, and the id of its installation with the former ids."""

    epoch: int
    installation: Installation


def identity() -> Script[StoreIdentity]:
    """Return the store's epoch and installation."""
    known: dict[str, str] = dict((yield Fetch(_IDENTITY)))
    former = frozenset(
        UUID(installation_id) for installation_id in known.get("former_installations", "").split(",") if installation_id
    )
    return StoreIdentity(int(known["epoch"]), Installation(UUID(known["installation"]), former))


def renew(new_id: Callable[[], UUID], now: Instant, replaced: StoreIdentity | None = None) -> Script[int]:
    """Make a restored or copied store an installation of its own; return its new epoch.

    `replaced` is the identity of the store whose place it takes, if there was one. Its new installation id differs from
    those of the original and of the replaced store. The servers listed in its table `servers` serve the original. They
    are deleted from the table, because workers of this store must not be sent to them.
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
    """Record PostgreSQL's timeline, cluster and database; begin an epoch if they have changed.

    Return the store's epoch. A new epoch is greater than `above`, the last epoch that the caller has seen, because a
    failover may have lost the transaction that began that epoch.

    If only the timeline has changed, there was a failover or a restore of the whole cluster, and sessions may
    re-attach. The store is a copy (a restored dump, or a database created from another one as its template) if the
    cluster or the database has changed, or if the transaction that wrote the row `place` does not have the id that the
    row names.
    """
    place = f"{timeline} {database}"
    known = yield Fetch(_PLACE)
    if known and known[0][0] == f"{place} {known[0][1]}":
        return int((yield Fetch(_EPOCH))[0][0])
    if known:
        was_here = known[0][0].partition(" ")[2] == f"{database} {known[0][1]}"
        yield from begin_epoch(now, above, detaches=True) if was_here else renew(new_id, now)
    yield Fetch(_SET_PLACE, (place,))
    return int((yield Fetch(_EPOCH))[0][0])
