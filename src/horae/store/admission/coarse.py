"""Limits of queues and namespaces: what a claim may still take of their lanes, and who sets them.

Use is what runs, counted under the limit's lock in a statement of its own; nothing is counted aside. A claim that
believes a lane to be without limits asks so in the statement that picks, which takes the table's lock before its
snapshot: whoever sets a limit waits for the claims under way, and the next ones see it.
"""

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.model.admission.limits import NO_LIMIT, UNLIMITED, Limit, namespace_limit, queue_limit
from horae.model.admission.rate import NEVER
from horae.store.admission.key_rates import KeyRates
from horae.store.base import shelves
from horae.store.script import Fetch, ForEach, Insert, Lock, Script, Statement

NAME: shelves.Columns = (("name", "text"),)
RATES: shelves.Columns = (("name", "text"), ("pace", "bigint"))
FLAGGED = "(r.flags & 2) <> 0"
LIMITS = Statement(
    "limits_named",
    "SELECT m.name, m.queue, m.namespace, m.spec, m.ready, p.pace FROM given JOIN limits m ON m.name = given.name"
    " LEFT JOIN rates p ON p.name = m.name",
)
ALL_LIMITS = Statement("limits", "SELECT name, spec FROM limits WHERE job IS NULL")


def _use(name: str, column: str, flagged: bool) -> Statement:
    only = f" AND {FLAGGED}" if flagged else ""
    return Statement(
        name,
        f"SELECT given.id, coalesce(sum(r.hi - r.lo), 0) FROM given JOIN running r ON r.{column} = given.id{only}"
        " GROUP BY given.id",
    )


# What runs since before a limit was set has no flag until it is marked; until then all that runs is looked at.
USE = {
    ("queue", True): _use("use_of_queues", "queue", True),
    ("queue", False): _use("whole_use_of_queues", "queue", False),
    ("namespace", True): _use("use_of_namespaces", "namespace", True),
    ("namespace", False): _use("whole_use_of_namespaces", "namespace", False),
}
# What a sequence has begun and not ended; what stands first in each of its lanes.
BEGUN = Statement(
    "begun_of_queues",
    "SELECT DISTINCT given.id FROM given JOIN waiting w ON w.queue = given.id AND (w.flags & 2) <> 0"
    " WHERE w.attempt > 0",
)
_HEAD = "FROM queued q WHERE q.lane = l.id ORDER BY q.lane, q.rank, q.parcel, q.lo LIMIT 1"
FIRST = Statement(
    "first_in_queues",
    f"SELECT given.id, l.id, (SELECT q.rank {_HEAD}), (SELECT q.parcel {_HEAD}), (SELECT q.lo {_HEAD})"
    " FROM given JOIN lanes l ON l.queue = given.id",
)


def open_condition(lane: str, now: str, limited: str) -> str:
    """A condition: a lane is not held, and has no limits unless the claim knows and looks after them."""
    of_queue = f"SELECT 1 FROM lanes l JOIN limits m ON m.queue = l.queue WHERE l.id = {lane} FOR KEY SHARE OF m"
    of_namespace = (
        f"SELECT 1 FROM lanes l JOIN limits m ON m.namespace = l.namespace WHERE l.id = {lane} FOR KEY SHARE OF m"
    )
    unlimited = f"NOT EXISTS ({of_queue}) AND NOT EXISTS ({of_namespace})"
    return f"NOT EXISTS ({hold_query(lane, now)}) AND ({limited} OR ({unlimited}))"


class _Bound(Struct):
    """A limit, as one transaction uses it up."""

    limit: Limit
    room: int
    pace: Instant
    taken: int = 0
    first: int | None = None  # of a sequence: the only lane that may be taken from


class Rooms:
    """What may still be taken under limits, as a claim goes on."""

    def __init__(self, bounds: Mapping[str, _Bound], now: Instant) -> None:
        self._bounds, self._now = bounds, now
        self.paces = KeyRates(now)

    def available(self, names: Sequence[str], lane: int) -> int:
        """How many executions a lane with these limits may give."""
        return min((self._room(self._bounds[name], lane) for name in names if name in self._bounds), default=UNLIMITED)

    def _room(self, bound: _Bound, lane: int) -> int:
        if bound.first is not None and bound.first != lane:
            return 0
        rate = bound.limit.rate
        paced = UNLIMITED if rate is None else rate.room(bound.pace, self._now)
        return min(bound.room, paced)

    def take(self, names: Sequence[str], count: int) -> None:
        """So many were taken."""
        for bound in (self._bounds[name] for name in names if count and name in self._bounds):
            bound.room -= count
            bound.taken += count
            if bound.limit.rate is not None:
                bound.pace = bound.limit.rate.after(bound.pace, count, self._now)

    def opens_at(self, names: Sequence[str]) -> Instant | None:
        """When a rate lets the next one start, if it is a rate that does not."""
        paced = [b for name in names if (b := self._bounds.get(name)) is not None and b.limit.rate is not None]
        waits = [
            b.limit.rate.opens_at(b.pace) for b in paced if b.limit.rate and not b.limit.rate.room(b.pace, self._now)
        ]
        return max(waits, default=None)

    def changes(self) -> list[Insert]:
        """What starts are charged to rates."""
        rows = [(name, b.pace) for name, b in sorted(self._bounds.items()) if b.taken and b.limit.rate is not None]
        charged = Insert("rates", RATES, rows, conflict="ON CONFLICT (name) DO UPDATE SET pace = excluded.pace")
        return [*([charged] if rows else []), *self.paces.changes()]


def lock_rooms(names: Collection[str], now: Instant) -> Script[Rooms]:
    """Lock these limits, in one order, and see what room they have."""
    yield Lock(tuple(sorted(names)))  # guard: limits-lock
    return (yield from read_rooms(names, now))


def read_rooms(names: Collection[str], now: Instant) -> Script[Rooms]:
    """See what room these limits have; without their locks it may be another a moment later."""
    given = sorted(names)
    bounds: dict[str, _Bound] = {}
    scopes: dict[tuple[str, bool], dict[int, str]] = {}
    for name, queue, namespace, spec, ready, pace in (yield ForEach(LIMITS, NAME, [(name,) for name in given])):
        limit = msgspec.json.decode(spec, type=Limit)
        bounds[name] = _Bound(limit, limit.most, NEVER if pace is None else pace)
        if limit.most < UNLIMITED:
            kind, id = ("namespace", namespace) if queue is None else ("queue", queue)
            scopes.setdefault((kind, bool(ready)), {})[id] = name
    for scope, ids in scopes.items():
        for id, use in (yield ForEach(USE[scope], (("id", "int"),), [(id,) for id in sorted(ids)])):
            bounds[ids[id]].room -= int(use)
    ordered = {id: name for ids in scopes.values() for id, name in ids.items() if bounds[name].limit.sequence}
    if ordered:
        yield from _look_at_sequences(ordered, bounds)
    return Rooms(bounds, now)


def _look_at_sequences(queues: Mapping[int, str], bounds: Mapping[str, _Bound]) -> Script[None]:
    """A queue that is a sequence gives what stands first in all its lanes, unless something of it has not ended."""
    given = [(id,) for id in sorted(queues)]
    for (id,) in (yield ForEach(BEGUN, (("id", "int"),), given)):
        bounds[queues[id]].room = 0
    firsts: dict[int, tuple[int, UUID, int, int]] = {}
    for id, lane, rank, parcel, lo in (yield ForEach(FIRST, (("id", "int"),), given)):
        if rank is not None:
            firsts[id] = min((rank, parcel, lo, lane), firsts.get(id, (rank, parcel, lo, lane)))
    for id, (_, _, _, lane) in firsts.items():
        bounds[queues[id]].first = lane


# Setting limits

PUT = "ON CONFLICT (name) DO UPDATE SET spec = excluded.spec"
LIMIT_ROWS: shelves.Columns = (
    ("name", "text"), ("queue", "int"), ("namespace", "int"), ("spec", "text"), ("ready", "bool"),
)  # fmt: skip
DROP = Statement("drop_limit", "DELETE FROM limits WHERE name = $1")
DROP_PACE = Statement("drop_pace", "DELETE FROM rates WHERE name = $1")
READ = Statement("limit_named", "SELECT spec FROM limits WHERE name = $1")
UNREADY = Statement("limits_not_ready", "SELECT name, queue, namespace FROM limits WHERE NOT ready AND job IS NULL")
UNMARKED = {
    "queue": Statement(
        "unmarked_of_queue", f"SELECT DISTINCT r.session FROM running r WHERE r.queue = $1 AND NOT {FLAGGED}"
    ),
    "namespace": Statement(
        "unmarked_of_namespace", f"SELECT DISTINCT r.session FROM running r WHERE r.namespace = $1 AND NOT {FLAGGED}"
    ),
}
MARK = {
    column: Statement(
        f"mark_running_of_{column}", f"UPDATE running SET flags = flags | 2 WHERE session = $1 AND {column} = $2"
    )
    for column in UNMARKED
}
SET_READY = Statement("limit_ready", "UPDATE limits SET ready = true WHERE name = $1")


def put(limit: Limit, *, queue: int | None = None, namespace: int | None = None) -> Script[None]:
    """Limit a queue or a namespace from now on, on all servers."""
    name = queue_limit(queue) if queue is not None else namespace_limit(namespace or 0)
    if limit == NO_LIMIT:
        yield Fetch(DROP, (name,))
        yield Fetch(DROP_PACE, (name,))
        return
    yield Lock(table="limits")  # guard: limit-locks-claims
    spec = msgspec.json.encode(limit).decode()
    yield Insert("limits", LIMIT_ROWS, [(name, queue, namespace, spec, False)], conflict=PUT)


def limit_of(name: str) -> Script[Limit]:
    """What a queue or a namespace is limited to."""
    rows = yield Fetch(READ, (name,))
    return msgspec.json.decode(rows[0][0], type=Limit) if rows else NO_LIMIT


def all_limits() -> Script[dict[str, Limit]]:
    """All limits of queues and namespaces, by name."""
    return {name: msgspec.json.decode(spec, type=Limit) for name, spec in (yield Fetch(ALL_LIMITS))}


Unready = tuple[str, str, int]  # the name of a limit, and what it is about


def unready() -> Script[list[Unready]]:
    """Limits under which something may run that is not marked yet."""
    rows = yield Fetch(UNREADY)
    return [(n, "namespace", namespace) if queue is None else (n, "queue", queue) for n, queue, namespace in rows]


def unmarked_sessions(kind: str, id: int) -> Script[list[UUID]]:
    """Sessions that run something under a limit that is not marked."""
    return [row[0] for row in (yield Fetch(UNMARKED[kind], (id,)))]


def mark(session: UUID, kind: str, id: int) -> Script[None]:
    """Mark what a locked session runs as being under a limit."""
    yield Fetch(MARK[kind], (session, id))


def set_ready(name: str) -> Script[None]:
    """All that runs under a limit is marked."""
    yield Fetch(SET_READY, (name,))


def hold_query(lane: str, now: str) -> str:
    """A query that finds a row while the queue of this lane, or its whole namespace, is held.

    It stands in the statement that picks, and takes the table's lock before its snapshot by selecting FOR KEY SHARE.
    Whoever opens a hold locks the table against that: claims under way end first, and the next ones see the hold.

    What has `ended_at` holds nothing; before that a hold lasts, whatever a claiming server's clock says of its end.
    """
    return (
        "SELECT 1 FROM lanes l JOIN holds h ON h.namespace = l.namespace AND h.ended_at IS NULL"
        f" AND (h.queue IS NULL OR h.queue = l.queue) WHERE l.id = {lane} AND h.from_at <= {now} FOR KEY SHARE OF h"
    )
