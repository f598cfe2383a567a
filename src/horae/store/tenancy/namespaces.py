"""Namespaces: made with their first queue, changed, and deleted when nothing lives in them any more.

A deleted namespace keeps its row, so that its number never stands for another tenant. Whoever puts something lasting
into a namespace holds its lock together with others; a deletion holds it alone, and finds all that was put there.
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
# Also of deleted ones: what is left of them goes by what they said.
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
    *("sign_in_codes", "enrolments"),  # what lets somebody in
)
_read_spec = msgspec.json.Decoder(NamespaceSpec).decode


class LiveContents(Struct, frozen=True, kw_only=True):
    """What keeps a namespace from being deleted."""

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
    """All namespaces by name."""
    return [_namespace(row) for row in (yield Fetch(ALL))]


def by_name(name: str) -> Script[Namespace | None]:
    """The namespace of this name."""
    rows = yield Fetch(NAMED, (name,))
    return _namespace(rows[0]) if rows else None


def by_id(id: int) -> Script[Namespace | None]:
    """A namespace by its number, also one that was deleted."""
    rows = yield Fetch(ONE, (id,))
    return _namespace(rows[0]) if rows else None


def create(name: str, said: NamespaceDefinition, now: Instant) -> Script[int | None]:
    """Make a namespace, and the queue of jobs that name none; None when the name is taken."""
    rows = yield Fetch(ADD, (name, *_row(said), now))
    if not rows:
        return None
    id: int = rows[0][0]
    yield Fetch(lanes.ADD_QUEUE, (id, DEFAULT_QUEUE, lanes.PLAIN, now))
    return id


def change(name: str, make: Callable[[Namespace], NamespaceDefinition], now: Instant) -> Script[Namespace | None]:
    """Change a namespace by what it is under its lock; what it was, or None when there is none."""
    rows = yield Fetch(LOCKED, (name,))
    if not rows:
        return None
    before = _namespace(rows[0])
    yield Fetch(SAVE, (before.id, *_row(make(before)), now))
    return before


def _row(said: NamespaceDefinition) -> Row:
    policy = None if said.queue_policy is None else msgspec.json.encode(said.queue_policy).decode()
    return said.weight, policy, msgspec.json.encode(said.spec).decode()


def is_open(namespace: int) -> Script[bool]:
    """Whether something lasting may be put into a namespace; asked under its lock."""
    rows = yield Fetch(STATE, (namespace,))
    return not rows or rows[0][0] == "active"


def retentions() -> Script[dict[int, Mapping[Outcome, int]]]:
    """How long namespaces keep ended executions that do not keep them as long as all others."""
    found = {id: _read_spec(spec).retention for id, spec in (yield Fetch(RETENTIONS))}
    return {id: rules for id, rules in found.items() if rules}


def archived_outcomes() -> Script[dict[int, tuple[Outcome, ...]]]:
    """Which outcomes go to the archive, of namespaces of which some do."""
    found = {id: _read_spec(spec).archive for id, spec in (yield Fetch(ARCHIVED))}
    return {id: outcomes for id, outcomes in found.items() if outcomes}


def live_contents(id: int) -> Script[LiveContents]:
    """What lives in a namespace."""
    ((jobs, workers),) = yield Fetch(LIVE, (id,))
    return LiveContents(jobs=jobs, executions=sum((yield from quotas.usage_now(id))), workers=workers)


def delete(id: int, now: Instant) -> Script[LiveContents | None]:
    """End a namespace with its keys and all that is defined in it, unless something lives there; tells what does.

    What has ended stays for as long as it would have been kept; nobody can read it.
    """
    yield from locks.take(locks.of_namespace(id))
    found = yield from live_contents(id)
    if found:
        return found
    for statement in (
        END,
        REVOKE,
        END_HOLDS,
        END_CALENDARS,
        *(one for holdings in all_holdings() for one in holdings.ends),
    ):
        yield Fetch(statement, (id, now))
    yield Fetch(LIMITS, (id, namespace_limit(id)))
    for statement in (*DROPS, *(one for holdings in all_holdings() for one in holdings.drops)):
        yield Fetch(statement, (id,))
    return None
