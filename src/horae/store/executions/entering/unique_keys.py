"""Unique keys of requests: a key refers to one execution for a given time."""

from collections.abc import Collection, Iterator, Sequence
from uuid import UUID

from horae.env import Instant
from horae.model.executions.submission import NewExecution, NewItems, Receipt, UniqueKey
from horae.store.base import shelves
from horae.store.script import Again, ForEach, Insert, Script, Statement

UNIQUE: shelves.Columns = (("namespace", "int"), ("scope", "text"), ("key", "text"))
FREE_EXPIRED = Statement(
    "free_expired_keys",
    "DELETE FROM unique_keys WHERE (namespace, scope, key) IN (SELECT k.namespace, k.scope, k.key FROM given"
    " JOIN unique_keys k ON k.namespace = given.namespace AND k.scope = given.scope AND k.key = given.key"
    " WHERE k.until <= $4 FOR UPDATE OF k SKIP LOCKED)",
)
READ_KEYS = Statement(
    "read_keys",
    "SELECT k.namespace, k.scope, k.key, k.execution FROM given JOIN unique_keys k"
    " ON k.namespace = given.namespace AND k.scope = given.scope AND k.key = given.key WHERE k.until > $4",
)
NAME_KEYS = Statement(
    "name_keys",
    "UPDATE unique_keys SET execution = given.execution FROM given WHERE unique_keys.namespace = given.namespace"
    " AND unique_keys.scope = given.scope AND unique_keys.key = given.key",
)


def take_keys(executions: Sequence[NewItems], now: Instant) -> Script[dict[UniqueKey, UUID]]:
    """Take the unique keys of requests; return the keys that earlier requests have taken, with their executions."""
    wanted = {e.unique: e for e in executions if isinstance(e, NewExecution) and e.unique}
    if not wanted:
        return {}
    keys = sorted(wanted)  # guard: keys-in-order
    yield ForEach(FREE_EXPIRED, UNIQUE, keys, (now,))
    columns: shelves.Columns = (*UNIQUE, ("execution", "uuid"), ("until", "bigint"))
    rows = yield Insert(
        "unique_keys",
        columns,
        [(*key, UUID(int=0), now + wanted[key].unique_for) for key in keys],
        conflict="ON CONFLICT DO NOTHING",  # guard: key-taken-once
        returning="namespace, scope, key",
    )
    mine = {tuple(row) for row in rows}
    losers = [key for key in keys if key not in mine]
    if not losers:
        return {}
    held = yield ForEach(READ_KEYS, UNIQUE, losers, (now,))
    # Keys were deleted meanwhile, or a transaction that was about to replace them was rolled back: try again.
    if len(held) < len(losers):  # guard: key-gone-meanwhile
        raise Again
    return {(row[0], row[1], row[2]): row[3] for row in held}


def assign_keys(
    asked: Sequence[NewItems], placed: Sequence[Sequence[Receipt]], known: Collection[UniqueKey]
) -> Iterator[ForEach]:
    """Yield the update that sets the execution of each key that was not `known` before."""
    taken = {
        e.unique: mine[0].execution_id
        for e, mine in zip(asked, placed, strict=True)
        if e.unique is not None and e.unique not in known
    }
    rows = [(*unique, execution) for unique, execution in taken.items()]
    if rows:
        columns: shelves.Columns = (*UNIQUE, ("execution", "uuid"))
        yield ForEach(NAME_KEYS, columns, rows)
