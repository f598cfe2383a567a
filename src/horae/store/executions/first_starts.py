"""First starts of executions that are or were suspended (durable functions and workflows).

Each later attempt replaces the start that a slice stores, so the first one is stored apart.
"""

from collections.abc import Iterable, Mapping
from uuid import UUID

from msgspec import structs

from horae.env import Instant
from horae.model.base.ids import index_of, parcel_of
from horae.model.executions.execution import Execution
from horae.model.executions.settle import FirstStart
from horae.store.base import shelves
from horae.store.script import ForEach, Insert, Script, Statement

BEGAN = "@began"  # the name under which the first start of an execution is stored among its steps
STEPS: shelves.Columns = (
    *shelves.ITEM, ("name", "text"), ("attempt", "int"), ("result", "bytea"), ("at", "bigint"),
)  # fmt: skip
FIRST = Statement(
    "first_starts",
    "SELECT given.parcel, given.item, coalesce((SELECT s.at FROM steps s WHERE s.parcel = given.parcel"
    f" AND s.item = given.item AND s.name = '{BEGAN}'), (SELECT f.began_at FROM flows f WHERE f.parcel = given.parcel"
    " AND f.item = given.item)) FROM given",
)
SUSPENDED = frozenset({"sleep", "signal", "children"})


def insert_starts(starts: Iterable[FirstStart]) -> Insert:
    """Insert the first starts of suspended executions; a first start that is already stored stays."""
    rows = [(parcel, item, BEGAN, attempt, b"null", at) for parcel, item, attempt, at in starts]
    return Insert("steps", STEPS, rows, conflict="ON CONFLICT DO NOTHING")


def read(executions: Iterable[Execution]) -> Script[Mapping[UUID, Instant]]:
    """Return the first starts of executions that may have been suspended, by execution."""
    asked = [e.id for e in executions if e.reason in SUSPENDED or (e.attempt > 1 and e.started_at is not None)]
    if not asked:
        return {}
    given = {(parcel_of(execution), index_of(execution)): execution for execution in asked}
    rows = yield ForEach(FIRST, shelves.ITEM, list(given))
    return {given[parcel, item]: at for parcel, item, at in rows if at is not None}


def with_start(execution: Execution, starts: Mapping[UUID, Instant]) -> Execution:
    """Return an execution with its first start as `started_at`, if the first start is known."""
    at = starts.get(execution.id)
    return execution if at is None else structs.replace(execution, started_at=at)
