"""Namespaces: created with a default queue, changed, and deleted if they have no jobs, executions or workers.

The row of a deleted namespace stays, so that its id is never reused for another tenant. Transactions that add lasting
data to a namespace hold its lock in shared mode, and a deletion holds it exclusively. So a deletion finds all data that
was added.
"""

from collections.abc import Callable, Mapping

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.model.admission.limits import namespace_limit
from horae.model.admission.policy import decode_policy
from horae.model.admission.queue import DEFAULT_QUEUE
from horae.model.tenancy.namespace import Namespace, NamespaceDefinition, NamespaceSpec, Outcome
from horae.store.admission import lanes, quotas
from horae.store.base import locks
from horae.store.script import Fetch, Row, Script, Statement
from horae.store.tenancy.holdings import all_holdings, drops

_COLUMNS = "id, name, weight, policy, spec, state, created_at, updated_at"
ALL = Statement("namespaces", f"SELECT {_COLUMNS} FROM namespaces WHERE state <> 'deleted' ORDER BY name")
NAMED = Statement("namespace_as_it_is", f"SELECT {_COLUMNS} FROM namespaces WHERE name = $1 AND state <> 'deleted'")
ONE = Statement("namespace_by_id", f"SELECT {_COLUMNS} FROM namespaces WHERE id = $1")
LOCKED = Statement(
    "lock_namespace", f"SELECT {_COLUMNS} FROM namespaces WHERE name = $1 AND state <> 'deleted' FOR UPDATE"
)
ADD = Statement(
    "add_namespace",
    "INSERT INTO namespaces (name, weight, policy, spec, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $5)"
    " ON CONFLICT DO NOTHING RETURNING id",
)
SAVE = Statement(
    "save_namespace", "UPDATE namespaces SET weight = $2, policy = $3, spec = $4, updated_at = $5 WHERE id = $1"
)
# Deleted namespaces are included, because their retention still applies to their ended executions.
RETENTIONS = Statement("retentions", "SELECT id, spec FROM namespaces WHERE spec LIKE '%\"retention\"%'")
ARCHIVED = Statement(
    "archived_namespaces", "SELECT id, spec FROM namespaces WHERE spec LIKE '%\"archive\"%' AND state = 'active'"
)
STATE = Statement("namespace_state", "SELECT state FROM namespaces WHERE id = $1")
LIVE = Statement(
    "alive_in_namespace",
    "SELECT (SELECT count(*) FROM jobs WHERE namespace = $1 AND state <> 'deleted' AND owner IS NULL),"
    " (SELECT count(*) FROM sessions WHERE namespace = $1 AND ended_at IS NULL)",
)
END = Statement("end_namespace", "UPDATE namespaces SET state = 'deleted', updated_at = $2 WHERE id = $1")
REVOKE = Statement(
    "revoke_keys_of_namespace", "UPDATE keys SET revoked_at = $2 WHERE namespace = $1 AND revoked_at IS NULL"
)
END_HOLDS = Statement(
    "end_holds_of_namespace", "UPDATE holds SET ended_at = $2 WHERE namespace = $1 AND ended_at IS NULL"
)
END_CALENDARS = Statement(
    "end_calendars_of_namespace", "UPDATE calendars SET valid_to = $2 WHERE namespace = $1 AND valid_to IS NULL"
)
LIMITS = Statement(
    "drop_limits_of_namespace",
    "DELETE FROM limits WHERE name = $2 OR queue IN (SELECT id FROM queues WHERE namespace = $1)",
)
DROPS = drops(
    *("secrets", "quotas", "lanes", "queues", "unique_keys", "idempotency"),
    *("sign_in_codes", "enrolments"),  # these could be exchanged for a key
)
_read_spec = msgspec.json.Decoder(NamespaceSpec).decode


class LiveContents(Struct, frozen=True, kw_only=True):
    """The numbers of jobs, executions and workers of a namespace, which cannot be deleted while it has any."""

    jobs: int
    executions: int
    workers: int

    def __bool__(self) -> bool:
        return bool(self.jobs or self.executions or self.workers)


def _namespace(row: Row) -> Namespace:
    return Namespace(
        id=row[0], name=row[1], weight=row[2], policy=None if row[3] is None else decode_policy(row[3]),
        spec=_read_spec(row[4]), state=row[5], created_at=row[6], updated_at=row[7] or row[6],
    )  # fmt: skip


def all_namespaces() -> Script[list[Namespace]]:
    """Return all namespaces in the order of their names, without deleted ones."""
    return [_namespace(row) for row in (yield Fetch(ALL))]


def by_name(name: str) -> Script[Namespace | None]:
    """Return the namespace with a name, unless it is deleted."""
    rows = yield Fetch(NAMED, (name,))
    return _namespace(rows[0]) if rows else None


def by_id(namespace: int) -> Script[Namespace | None]:
    """Return a namespace by its id, also if it is deleted."""
    rows = yield Fetch(ONE, (namespace,))
    return _namespace(rows[0]) if rows else None


def create(name: str, definition: NamespaceDefinition, now: Instant) -> Script[int | None]:
    """Create a namespace and its default queue; return its id, or None if the name is taken."""
    rows = yield Fetch(ADD, (name, *_row(definition), now))
    if not rows:
        return None
    namespace: int = rows[0][0]
    yield Fetch(lanes.ADD_QUEUE, (namespace, DEFAULT_QUEUE, lanes.DEFAULT_POLICY, now))
    return namespace


def change(name: str, make: Callable[[Namespace], NamespaceDefinition], now: Instant) -> Script[Namespace | None]:
    """Lock a namespace and set its definition to the result of `make`, which gets the current state.

    Return the former state, or None if there is no such namespace.
    """
    rows = yield Fetch(LOCKED, (name,))
    if not rows:
        return None
    before = _namespace(rows[0])
    yield Fetch(SAVE, (before.id, *_row(make(before)), now))
    return before


def _row(definition: NamespaceDefinition) -> Row:
    policy = None if definition.queue_policy is None else msgspec.json.encode(definition.queue_policy).decode()
    return definition.weight, policy, msgspec.json.encode(definition.spec).decode()


def is_open(namespace: int) -> Script[bool]:
    """Return whether jobs may be added to a namespace. The caller holds its lock."""
    rows = yield Fetch(STATE, (namespace,))
    return not rows or rows[0][0] == "active"


def retentions() -> Script[dict[int, Mapping[Outcome, int]]]:
    """Return how long ended executions are retained, by outcome, for namespaces with a retention of their own."""
    found = {namespace: _read_spec(spec).retention for namespace, spec in (yield Fetch(RETENTIONS))}
    return {namespace: rules for namespace, rules in found.items() if rules}


def archived_outcomes() -> Script[dict[int, tuple[Outcome, ...]]]:
    """Return the outcomes of executions to archive, for namespaces that archive any."""
    found = {namespace: _read_spec(spec).archive for namespace, spec in (yield Fetch(ARCHIVED))}
    return {namespace: outcomes for namespace, outcomes in found.items() if outcomes}


def live_contents(namespace: int) -> Script[LiveContents]:
    """Count the jobs, the executions that have not ended, and the workers in a namespace."""
    ((jobs, workers),) = yield Fetch(LIVE, (namespace,))
    return LiveContents(jobs=jobs, executions=sum((yield from quotas.count_live(namespace))), workers=workers)


def delete(namespace: int, now: Instant) -> Script[LiveContents | None]:
    """Delete a namespace, revoke its keys, and end or delete its definitions.

    If it has jobs, executions or workers, nothing is deleted, and their numbers are returned. Ended executions stay
    until their retention is over, but users cannot read them.
    """
    yield from locks.take(locks.of_namespace(namespace))
    found = yield from live_contents(namespace)
    if found:
        return found
    for statement in (
        END,
        REVOKE,
        END_HOLDS,
        END_CALENDARS,
        *(one for holdings in all_holdings() for one in holdings.ends),
    ):
        yield Fetch(statement, (namespace, now))
    yield Fetch(LIMITS, (namespace, namespace_limit(namespace)))
    for statement in (*DROPS, *(one for holdings in all_holdings() for one in holdings.drops)):
        yield Fetch(statement, (namespace,))
    return None
