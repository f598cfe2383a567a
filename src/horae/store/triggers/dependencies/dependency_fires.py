"""The ledger of dependents: it records when dependencies started a job, or caused it to be skipped.

Such fires have no nominal time, so each is recorded with the instant of its decision. Each has an execution.
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
MAX_REASON = 500  # characters

DependencyDisposition = Literal["fired", "skipped-dependency"]


def fired(starts: Iterable[tuple[UUID, Join | None, UUID]], now: Instant) -> Insert:
    """Return the Insert of rows for dependents that were started.

    Each start has the job, the join and the execution; the join is None for a start by the number of ends (`by_count`).
    """
    rows = [(now, execution, job, "fired", _why(join)) for job, join, execution in starts]
    return Insert("dependency_fires", COLUMNS, rows)


def skipped(skips: Iterable[tuple[UUID, str, UUID]], now: Instant) -> Insert:
    """Return the Insert of rows for dependents that were skipped: the job, the reason and the skipped execution."""
    rows = [(now, execution, job, "skipped-dependency", why[:MAX_REASON]) for job, why, execution in skips]
    return Insert("dependency_fires", COLUMNS, rows)


def _why(join: Join | None) -> str:
    if join is None or join.interval is None:
        return "its dependencies were met"
    since, until = map(format_instant, join.interval)
    return f"its dependencies were met for {since}/{until}"


def forget(before: Instant, most: int) -> Script[int]:
    """Delete at most `most` rows of fires that were decided before an instant, and return their number."""
    return len((yield Fetch(OLD, (before, most))))
