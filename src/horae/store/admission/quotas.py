"""Quotas: how many more executions a queue or a namespace accepts; also the stored quotas, and the recorded usage.

The bound is on queued executions and on executions that wait for their first attempt. They are counted while the
bounded queue or namespace is locked. Accepted executions are never refused later, so executions that return to the
queue may exceed the bound.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from horae.env import Instant
from horae.model.admission.limits import namespace_limit
from horae.model.admission.quota import Quota, QuotaBounds, QuotaRoom, QuotaUsage
from horae.model.admission.rate import UNUSED
from horae.model.executions.parcel import Envelope
from horae.store.admission import coarse
from horae.store.base.shelves import Columns
from horae.store.script import Fetch, Insert, Lock, Script, Statement

# LIMIT is the room that is left. Each row has at least one execution, so reading that many rows shows whether the bound
# is reached.
QUEUED = Statement(
    "room_in_queue",
    "SELECT COALESCE(sum(n), 0) FROM (SELECT q.hi - q.lo AS n FROM lanes l JOIN queued q ON q.lane = l.id"
    " WHERE l.queue = $1 LIMIT $2) AS counted",
)
WAITING = Statement(
    "room_to_wait",
    "SELECT COALESCE(sum(n), 0) FROM (SELECT w.hi - w.lo AS n FROM waiting w WHERE w.queue = $1 AND w.attempt = 0"
    " LIMIT $2) AS counted",
)
QUEUES_OF = Statement("queues_of_namespace", "SELECT id FROM queues WHERE namespace = $1 ORDER BY id")
PACE = Statement("pace_of_submissions", "SELECT name, pace FROM rates WHERE name = $1")
RATES: Columns = (("name", "text"), ("pace", "bigint"))
QUOTAS = Statement("quotas", "SELECT namespace, spec FROM quotas")
SET_QUOTA = Statement(
    "set_quota",
    "INSERT INTO quotas (namespace, spec, updated_at) VALUES ($1, $2, $3)"
    " ON CONFLICT (namespace) DO UPDATE SET spec = excluded.spec, updated_at = excluded.updated_at",
)
USAGE: Columns = (
    ("namespace", "int"), ("day", "int"), ("server", "uuid"), ("executions", "bigint"), ("busy_micros", "bigint"),
    ("stored_bytes", "bigint"), ("refused", "bigint"),
)  # fmt: skip
_SUMS = ", ".join(f"{name} = usage_days.{name} + excluded.{name}" for name, _ in USAGE[3:])
_ADDED = "sum(executions), sum(busy_micros), sum(stored_bytes), sum(refused)"
USAGE_OF_DAY = Statement(
    "usage_of_day", f"SELECT namespace, {_ADDED} FROM usage_days WHERE day = $1 GROUP BY namespace"
)
USAGE_OF_DAYS = Statement(
    "usage_of_days",
    f"SELECT day, {_ADDED} FROM usage_days WHERE namespace = $1 AND day >= $2 AND day <= $3 GROUP BY day ORDER BY day",
)
COUNT_LIVE = Statement(
    "count_live",
    "SELECT (SELECT COALESCE(sum(hi - lo), 0) FROM queued WHERE namespace = $1),"
    " (SELECT COALESCE(sum(hi - lo), 0) FROM waiting WHERE namespace = $1),"
    " (SELECT COALESCE(sum(hi - lo), 0) FROM running WHERE namespace = $1)",
)
EXPIRE_USAGE = Statement(
    "expire_usage",
    "WITH old AS MATERIALIZED (SELECT namespace, day, server FROM usage_days WHERE day < $1 LIMIT $2)"
    " DELETE FROM usage_days WHERE (namespace, day, server) IN (SELECT namespace, day, server FROM old) RETURNING 1",
)
NAMESPACE_NAMED = Statement("namespace_named", "SELECT id FROM namespaces WHERE name = $1 AND state <> 'deleted'")
QuotaScope = tuple[int, int]  # namespace and queue


def lock_room(bounds: QuotaBounds, places: Iterable[QuotaScope], now: Instant) -> Script[QuotaRoom]:
    """Lock the bounds of these namespaces and queues, and return how many more executions each accepts.

    The numbers stay valid until the transaction ends.
    """
    wanted = [(namespace, queue) for namespace, queue in set(places) if bounds.touch(namespace, queue)]
    queues = sorted({queue for _, queue in wanted if queue in bounds.queues})
    namespaces = sorted({namespace for namespace, _ in wanted if namespace in bounds.quotas})
    full = {scope: most for scope in namespaces if (most := bounds.quotas[scope].queued) is not None}
    paced = [scope for scope in namespaces if bounds.quotas[scope].rate is not None]
    names = [f"quota:queue:{scope}" for scope in queues] + [f"quota:namespace:{scope}" for scope in {*full, *paced}]
    found = QuotaRoom(bounds, now)
    if not names:
        return found
    yield Lock(tuple(sorted(names)))  # guard: quota-locks
    for scope in queues:
        most = bounds.queues[scope][1]
        found.queues[scope] = most - (yield from _count([scope], most))
    for scope, most in full.items():
        rows = yield Fetch(QUEUES_OF, (scope,))
        found.namespaces[scope] = most - (yield from _count([row[0] for row in rows], most))
    for scope in paced:
        rows = yield Fetch(PACE, (_pace_name(scope),))
        found.paces[scope] = rows[0][1] if rows else UNUSED
    return found


def _pace_name(namespace: int) -> str:
    return f"submissions:{namespace}"


def _count(queues: Sequence[int], most: int) -> Script[int]:
    """Count the executions of queues that are queued or wait for their first attempt, up to about `most`."""
    total = 0
    for queue in queues:
        for statement in (QUEUED, WAITING):
            if total < most:
                total += int((yield Fetch(statement, (queue, most - total)))[0][0])
    return total


def save_pace(found: QuotaRoom) -> Iterable[Insert]:
    """Yield the changes that store the new pace (see rate.py) of each namespace whose submissions count in a rate."""
    rows = [(_pace_name(namespace), found.paces[namespace]) for namespace in sorted(found.paced)]
    if rows:
        yield Insert("rates", RATES, rows, conflict="ON CONFLICT (name) DO UPDATE SET pace = excluded.pace")


def admit(
    bounds: QuotaBounds, submissions: Iterable[tuple[int, int]], created: Iterable[tuple[Envelope, int]], now: Instant
) -> Script[list[Insert]]:
    """Check that the quotas have room for new executions; raises OverQuota if not.

    `submissions` are pairs of a namespace and a number of submitted executions; they count in the namespace's rate of
    submissions. `created` are pairs of an envelope (the common fields of a parcel's executions) and a number of new
    executions. Fewer are created than submitted if deduplication answers submissions with existing executions. The
    caller writes the returned changes in the same transaction.
    """
    made: dict[QuotaScope, int] = {}
    for envelope, count in created:
        place = envelope.namespace, envelope.queue
        made[place] = made.get(place, 0) + count
    submitted = dict(submissions)
    found = yield from lock_room(bounds, [*made, *((namespace, 0) for namespace in submitted)], now)
    for namespace, count in sorted(submitted.items()):
        refused = found.pace(namespace, count)
        if refused is not None:
            raise refused
    for (namespace, queue), count in sorted(made.items()):
        refused = found.take(namespace, queue, count)
        if refused is not None:
            raise refused
    return list(save_pace(found))


# Quotas and usage


def all_quotas() -> Script[dict[int, Quota]]:
    """Return the quotas of all namespaces that have one."""
    rows = yield Fetch(QUOTAS)
    return {namespace: msgspec.json.decode(spec, type=Quota) for namespace, spec in rows}


def set_quota(namespace: int, quota: Quota, now: Instant) -> Script[None]:
    """Set the quota of a namespace, and the limit on its running executions that is part of it."""
    yield Fetch(SET_QUOTA, (namespace, msgspec.json.encode(quota).decode(), now))
    if (yield from coarse.limit_of(namespace_limit(namespace))) != quota.limit:
        yield from coarse.put(quota.limit, namespace=namespace)


def add_usage(server: object, uses: Mapping[tuple[int, int], QuotaUsage]) -> Script[None]:
    """Add usage to this server's rows; the keys of `uses` are namespaces and days."""
    rows = [
        (namespace, day, server, use.executions, use.busy, use.stored, use.refused)
        for (namespace, day), use in sorted(uses.items())
    ]
    yield Insert("usage_days", USAGE, rows, conflict=f"ON CONFLICT (namespace, day, server) DO UPDATE SET {_SUMS}")


def used_on(day: int) -> Script[dict[int, QuotaUsage]]:
    """Return the usage of namespaces on a day, as far as servers have reported it."""
    return {row[0]: QuotaUsage(*map(int, row[1:])) for row in (yield Fetch(USAGE_OF_DAY, (day,)))}


def used_between(namespace: int, first: int, last: int) -> Script[dict[int, QuotaUsage]]:
    """Return the usage of a namespace by day, from `first` to `last`."""
    return {row[0]: QuotaUsage(*map(int, row[1:])) for row in (yield Fetch(USAGE_OF_DAYS, (namespace, first, last)))}


def count_live(namespace: int) -> Script[tuple[int, int, int]]:
    """Count the queued, waiting and running executions of a namespace."""
    ((queued, waiting, running),) = yield Fetch(COUNT_LIVE, (namespace,))
    return int(queued), int(waiting), int(running)


def forget_usage(before: int, most: int) -> Script[bool]:
    """Delete at most `most` rows of usage before a day; return True when there may be more."""
    return len((yield Fetch(EXPIRE_USAGE, (before, most)))) == most


def namespace_named(name: str) -> Script[int | None]:
    """Return the id of the namespace with this name."""
    rows = yield Fetch(NAMESPACE_NAMED, (name,))
    return rows[0][0] if rows else None
