"""Limits of queues and namespaces: the number of executions that a claim may take from their lanes, and changes of
limits.

The use of a limit is the number of running executions. No counter is stored: they are counted after the limit was
locked, by a later statement, which sees the changes of all transactions that held the lock before.

A server caches which lanes have limits. If a claim assumes that a lane has none, the statement that picks slices checks
this, and thereby locks the table `limits` before it takes its snapshot. A change of a limit therefore waits for claims
under way, and later claims see the new limit.
"""

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.model.admission.limits import NO_LIMIT, UNLIMITED, Limit, namespace_limit, queue_limit
from horae.model.admission.rate import UNUSED
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


# A flag marks executions that run under a limit, which makes counting fast. Executions that ran before the limit was
# set get the flag later. Until then the limit is not `ready`, and all running executions of the queue or namespace are
# counted.
USE = {
    ("queue", True): _use("use_of_queues", "queue", True),
    ("queue", False): _use("whole_use_of_queues", "queue", False),
    ("namespace", True): _use("use_of_namespaces", "namespace", True),
    ("namespace", False): _use("whole_use_of_namespaces", "namespace", False),
}
# For queues that are sequences. BEGUN finds those with a waiting item that has begun and not ended, such as a retry.
# FIRST finds the first slice in each of their lanes.
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
    """Return the SQL condition that claims may take from a lane: it has no hold, and no limit or `limited` is true.

    The parameters are SQL expressions. `limited` is true if the claim has locked the limits of the lane and enforces
    them.
    """
    of_queue = f"SELECT 1 FROM lanes l JOIN limits m ON m.queue = l.queue WHERE l.id = {lane} FOR KEY SHARE OF m"
    of_namespace = (
        f"SELECT 1 FROM lanes l JOIN limits m ON m.namespace = l.namespace WHERE l.id = {lane} FOR KEY SHARE OF m"
    )
    unlimited = f"NOT EXISTS ({of_queue}) AND NOT EXISTS ({of_namespace})"
    return f"NOT EXISTS ({hold_query(lane, now)}) AND ({limited} OR ({unlimited}))"


class _Bound(Struct):
    """A limit, and the number of executions that one transaction may still start under it."""

    limit: Limit
    room: int  # how many executions may start below the maximum of running ones
    pace: Instant  # the pace of the limit's rate: when the next start would be exactly on schedule
    taken: int = 0  # executions that this transaction has taken
    first: int | None = None  # the only lane from which to take, if the queue is a sequence


class Rooms:
    """The number of executions that one claim may still take under each limit."""

    def __init__(self, bounds: Mapping[str, _Bound], now: Instant) -> None:
        self._bounds, self._now = bounds, now
        self.paces = KeyRates(now)

    def available(self, names: Sequence[str], lane: int) -> int:
        """Return the number of executions that may be taken from a lane with these limits."""
        return min((self._room(self._bounds[name], lane) for name in names if name in self._bounds), default=UNLIMITED)

    def _room(self, bound: _Bound, lane: int) -> int:
        if bound.first is not None and bound.first != lane:
            return 0
        rate = bound.limit.rate
        paced = UNLIMITED if rate is None else rate.room(bound.pace, self._now)
        return min(bound.room, paced)

    def take(self, names: Sequence[str], count: int) -> None:
        """Record that executions under these limits were taken: less room is left, and they count for the rates."""
        for bound in (self._bounds[name] for name in names if count and name in self._bounds):
            bound.room -= count
            bound.taken += count
            if bound.limit.rate is not None:
                bound.pace = bound.limit.rate.after(bound.pace, count, self._now)

    def opens_at(self, names: Sequence[str]) -> Instant | None:
        """Return the time at which the rates of these limits allow the next start; None if they allow one now."""
        paced = [b for name in names if (b := self._bounds.get(name)) is not None and b.limit.rate is not None]
        waits = [
            b.limit.rate.opens_at(b.pace) for b in paced if b.limit.rate and not b.limit.rate.room(b.pace, self._now)
        ]
        return max(waits, default=None)

    def changes(self) -> list[Insert]:
        """Return the changes that write the new paces of rates."""
        rows = [(name, b.pace) for name, b in sorted(self._bounds.items()) if b.taken and b.limit.rate is not None]
        charged = Insert("rates", RATES, rows, conflict="ON CONFLICT (name) DO UPDATE SET pace = excluded.pace")
        return [*([charged] if rows else []), *self.paces.changes()]


def lock_rooms(names: Collection[str], now: Instant) -> Script[Rooms]:
    """Lock these limits, in the order of their names, and return the room under them."""
    yield Lock(tuple(sorted(names)))  # guard: limits-lock
    return (yield from read_rooms(names, now))


def read_rooms(names: Collection[str], now: Instant) -> Script[Rooms]:
    """Return the room under these limits without their locks; it may change at any moment."""
    given = sorted(names)
    bounds: dict[str, _Bound] = {}
    scopes: dict[tuple[str, bool], dict[int, str]] = {}
    for name, queue, namespace, spec, ready, pace in (yield ForEach(LIMITS, NAME, [(name,) for name in given])):
        limit = msgspec.json.decode(spec, type=Limit)
        bounds[name] = _Bound(limit, limit.most, UNUSED if pace is None else pace)
        if limit.most < UNLIMITED:
            kind, scope_id = ("namespace", namespace) if queue is None else ("queue", queue)
            scopes.setdefault((kind, bool(ready)), {})[scope_id] = name
    for scope, names_by_id in scopes.items():
        for scope_id, use in (
            yield ForEach(USE[scope], (("id", "int"),), [(scope_id,) for scope_id in sorted(names_by_id)])
        ):
            bounds[names_by_id[scope_id]].room -= int(use)
    ordered = {
        scope_id: name
        for names_by_id in scopes.values()
        for scope_id, name in names_by_id.items()
        if bounds[name].limit.sequence
    }
    if ordered:
        yield from _restrict_sequences(ordered, bounds)
    return Rooms(bounds, now)


def _restrict_sequences(queues: Mapping[int, str], bounds: Mapping[str, _Bound]) -> Script[None]:
    """Restrict claims from queues that are sequences, whose executions run one at a time.

    A claim may take only from the lane that has the first slice of the queue. It may take nothing while an execution of
    the queue has begun and waits, for example for a retry.
    """
    given = [(queue,) for queue in sorted(queues)]
    for (queue,) in (yield ForEach(BEGUN, (("id", "int"),), given)):
        bounds[queues[queue]].room = 0
    firsts: dict[int, tuple[int, UUID, int, int]] = {}
    for queue, lane, rank, parcel, lo in (yield ForEach(FIRST, (("id", "int"),), given)):
        if rank is not None:
            firsts[queue] = min((rank, parcel, lo, lane), firsts.get(queue, (rank, parcel, lo, lane)))
    for queue, (_, _, _, lane) in firsts.items():
        bounds[queues[queue]].first = lane


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
    """Set the limit of a queue or a namespace. All servers enforce it from the commit on."""
    name = queue_limit(queue) if queue is not None else namespace_limit(namespace or 0)
    if limit == NO_LIMIT:
        yield Fetch(DROP, (name,))
        yield Fetch(DROP_PACE, (name,))
        return
    yield Lock(table="limits")  # guard: limit-locks-claims
    spec = msgspec.json.encode(limit).decode()
    yield Insert("limits", LIMIT_ROWS, [(name, queue, namespace, spec, False)], conflict=PUT)


def limit_of(name: str) -> Script[Limit]:
    """Return the limit of a queue or a namespace."""
    rows = yield Fetch(READ, (name,))
    return msgspec.json.decode(rows[0][0], type=Limit) if rows else NO_LIMIT


def all_limits() -> Script[dict[str, Limit]]:
    """Return all limits of queues and namespaces, by name."""
    return {name: msgspec.json.decode(spec, type=Limit) for name, spec in (yield Fetch(ALL_LIMITS))}


Unready = tuple[str, str, int]  # the name of a limit, "queue" or "namespace", and its id


def unready() -> Script[list[Unready]]:
    """Return limits under which executions may run that have no flag yet."""
    rows = yield Fetch(UNREADY)
    return [(n, "namespace", namespace) if queue is None else (n, "queue", queue) for n, queue, namespace in rows]


def unmarked_sessions(kind: str, scope_id: int) -> Script[list[UUID]]:
    """Return sessions that run executions of a queue or a namespace without the flag."""
    return [row[0] for row in (yield Fetch(UNMARKED[kind], (scope_id,)))]


def mark(session: UUID, kind: str, scope_id: int) -> Script[None]:
    """Set the flag of the running executions of a session that are of a queue or a namespace.

    The caller has locked the session.
    """
    yield Fetch(MARK[kind], (session, scope_id))


def set_ready(name: str) -> Script[None]:
    """Record that all executions that run under a limit have the flag."""
    yield Fetch(SET_READY, (name,))


def hold_query(lane: str, now: str) -> str:
    """Return an SQL query that finds a row while a hold applies to the lane's queue or namespace.

    It is part of the statement that picks slices. Its FOR KEY SHARE makes PostgreSQL lock the table `holds` before the
    statement takes its snapshot. A transaction that opens a hold needs a conflicting lock of the table. So it waits for
    claims under way, and later claims see the hold.

    A hold applies until its `ended_at` is set, even if its planned end has passed by the clock of a claiming server.
    """
    return (
        "SELECT 1 FROM lanes l JOIN holds h ON h.namespace = l.namespace AND h.ended_at IS NULL"
        f" AND (h.queue IS NULL OR h.queue = l.queue) WHERE l.id = {lane} AND h.from_at <= {now} FOR KEY SHARE OF h"
    )
