"""The ledger of dependents: when their dependencies started them, or let them be skipped, and for which interval.

Such fires have no nominal instant. Each stands at the instant at which it was decided, and has an execution.
"""

from collections.abc import Iterable
from typing import Literal
from uuid import UUID

from horae.env import Instant
from horae.model.base.instant import format_instant
from horae.model.triggers.dependency import Join
from horae.store.base.shelves import Columns
from horae.store.script import Fetch, Insert, Script, Statement

COLUMNS: Columns = (
    ("at", "bigint"), ("execution", "uuid"), ("job", "uuid"), ("disposition", "text"), ("cause", "text"),
)  # fmt: skip
OLD = Statement(
    "expire_dependency_fires",
    "WITH old AS MATERIALIZED (SELECT at, execution FROM dependency_fires WHERE at < $1 ORDER BY at LIMIT $2)"
    " DELETE FROM dependency_fires WHERE (at, execution) IN (SELECT at, execution FROM old) RETURNING 1",
)
MOST_TOLD = 500  # characters of why

DependencyDisposition = Literal["fired", "skipped-dependency"]


def fired(made: Iterable[tuple[UUID, Join | None, UUID]], now: Instant) -> Insert:
    """Rows of dependents that were started: the job, the join it was started for unless by count, the execution."""
    rows = [(now, execution, job, "fired", _why(join)) for job, join, execution in made]
    return Insert("dependency_fires", COLUMNS, rows)


def skipped(made: Iterable[tuple[UUID, str, UUID]], now: Instant) -> Insert:
    """Rows of dependents that do not run, and why: the job, the reason, the execution that says so."""
    rows = [(now, execution, job, "skipped-dependency", why[:MOST_TOLD]) for job, why, execution in made]
    return Insert("dependency_fires", COLUMNS, rows)


def _why(join: Join | None) -> str:
    if join is None or join.interval is None:
        return "its dependencies were met"
    since, until = map(format_instant, join.interval)
    return f"its dependencies were met for {since}/{until}"


def forget(before: Instant, most: int) -> Script[int]:
    """Forget what was decided before an instant; how many there were."""
    return len((yield Fetch(OLD, (before, most))))
