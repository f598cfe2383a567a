"""Dependents: jobs with dependencies, and the lock under which their starts are decided.

Every dependent has one row in `dependents`. A transaction locks this row before it adds an upstream's end to a join,
lets an execution wait for upstreams, or changes the job's dependencies. So of two concurrent transactions the second
sees the changes of the first.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, get_args
from uuid import UUID

from msgspec import Struct

from horae.model.triggers.decisions import values
from horae.model.triggers.dependency import Condition
from horae.store.base.shelves import Columns
from horae.store.script import Among, Fetch, ForEach, Insert, Script, Statement


def _live(kinds: Any) -> str:
    """Return the SQL condition that a trigger `g` is of one of these kinds and has not ended."""
    likes = [f'g.definition LIKE \'{{"kind":"{kind.__struct_config__.tag}"%\'' for kind in get_args(kinds)]
    return f"g.state <> 'ended' AND ({' OR '.join(likes)})"


TIMED = _live(values.Timed)  # the job starts by the clock
RECURRING = _live(values.Recurring)  # the job starts by the clock, and its fires have data intervals
LOCK = Statement("lock_dependents", "SELECT job FROM dependents WHERE job = ANY($1) ORDER BY job FOR NO KEY UPDATE")
BELOW = Statement("jobs_below", "SELECT job FROM dependencies WHERE upstream = ANY($1)")
NEEDED = Statement("needed", "SELECT job, upstream, condition, unused, execution FROM dependencies WHERE job = ANY($1)")
SCHEDULED = Statement("scheduled_jobs", f"SELECT DISTINCT g.job FROM triggers g WHERE g.job = ANY($1) AND {TIMED}")
# Upstreams whose executions have data intervals, from their own schedule or from an upstream's.
SHARING = Statement(
    "sharing_upstreams",
    "WITH RECURSIVE up(dependent, upstream, job) AS (SELECT d.job, d.upstream, d.upstream FROM dependencies d"
    " WHERE d.job = ANY($1) UNION SELECT up.dependent, up.upstream, d.upstream FROM up"
    " JOIN dependencies d ON d.job = up.job)"
    f" SELECT DISTINCT up.dependent, up.upstream FROM up JOIN triggers g ON g.job = up.job WHERE {RECURRING}",
)
USE = Statement(
    "use_dependencies",
    "UPDATE dependencies SET unused = given.unused, execution = given.execution FROM given"
    " WHERE dependencies.job = given.job AND dependencies.upstream = given.upstream",
)
DROP = Statement(
    "drop_some_dependencies",
    "DELETE FROM dependencies WHERE (job, upstream) IN (SELECT job, upstream FROM given)",
)
DROP_DEPENDENT = Statement("drop_dependent", "DELETE FROM dependents WHERE job = $1")
NOBODY = UUID(int=0)
COLUMNS: Columns = (("job", "uuid"), ("upstream", "uuid"))


class Need(Struct, kw_only=True):
    """One dependency of a job on an upstream."""

    condition: Condition
    unused: int = 0  # executions without a data interval that met the condition and have started nothing yet
    execution: UUID = NOBODY  # the newest execution that met the condition before this transaction
    fresh: list[UUID] = []  # the executions that met the condition in this transaction, oldest first
    changed: bool = False  # whether the row must be written

    def add(self, executions: Sequence[UUID]) -> None:
        """Add executions that met the condition."""
        self.unused += len(executions)
        self.fresh += executions
        self.changed |= bool(executions)

    def use(self) -> UUID:
        """Count the oldest unused success as used, and return its execution.

        Of the executions from before this transaction, only the newest id is stored; it stands for all of them.
        """
        older = self.unused > len(self.fresh)
        self.unused, self.changed = self.unused - 1, True
        if older:
            return self.execution
        self.execution = self.fresh.pop(0)
        return self.execution

    def keep_one(self) -> None:
        """Leave at most one success unused."""
        self.changed |= self.unused > 1
        self.unused = min(self.unused, 1)

    @property
    def newest(self) -> UUID:
        return self.fresh[-1] if self.fresh else self.execution


class Dependent(Struct, kw_only=True):
    """A job with dependencies, read under its lock."""

    job: UUID
    needs: dict[UUID, Need]  # upstream -> its need
    scheduled: bool  # whether the job also has a trigger that fires by the clock

    @property
    def needed(self) -> dict[UUID, Condition]:
        return {upstream: need.condition for upstream, need in self.needs.items()}


def lock(jobs: Collection[UUID]) -> Script[None]:
    """Lock dependents in the order of their ids."""
    yield Among(LOCK, sorted(jobs))


def lock_around(jobs: Collection[UUID]) -> Script[None]:
    """Lock jobs and their dependents, because an end of a job's execution is reported to the job's dependents."""
    below = yield Among(BELOW, sorted(jobs))
    yield from lock({*jobs, *(row[0] for row in below)})


def lock_and_read(jobs: Collection[UUID]) -> Script[dict[UUID, Dependent]]:
    """Lock dependents, then read them.

    They are read by later statements, which see the changes of all transactions that held the locks before.
    """
    ordered = sorted(jobs)
    yield from lock(ordered)
    rows = yield Among(NEEDED, ordered)
    scheduled = {row[0] for row in (yield Among(SCHEDULED, ordered))}
    found: dict[UUID, Dependent] = {}
    for job, upstream, condition, unused, execution in rows:
        dependent = found.setdefault(job, Dependent(job=job, needs={}, scheduled=job in scheduled))
        dependent.needs[upstream] = Need(condition=condition, unused=unused, execution=execution or NOBODY)
    return found


def upstreams_with_intervals(jobs: Collection[UUID]) -> Script[dict[UUID, set[UUID]]]:
    """Return, for each dependent, the upstreams whose executions have data intervals."""
    found: dict[UUID, set[UUID]] = {job: set() for job in jobs}
    for job, upstream in (yield Among(SHARING, sorted(jobs))) if jobs else []:
        found[job].add(upstream)
    return found


def save_counts(dependents: Collection[Dependent]) -> Script[None]:
    """Write the numbers of unused successes that have changed."""
    columns: Columns = (*COLUMNS, ("unused", "int"), ("execution", "uuid"))
    rows = [
        (d.job, upstream, need.unused, need.newest)
        for d in dependents
        for upstream, need in sorted(d.needs.items())
        if need.changed
    ]
    if rows:
        yield ForEach(USE, columns, rows)


def define(job: UUID, wanted: Mapping[UUID, Condition]) -> Script[None]:
    """Set the upstreams of a job, each with its condition.

    The unused successes of an upstream are kept if it was an upstream before, with the same condition.
    """
    yield Insert("dependents", (("job", "uuid"),), [(job,)], conflict="ON CONFLICT DO NOTHING")
    yield from lock([job])
    rows = yield Among(NEEDED, [job])
    present = {upstream: condition for _, upstream, condition, _, _ in rows}
    gone = [upstream for upstream in present if wanted.get(upstream) != present[upstream]]
    if gone:
        yield ForEach(DROP, COLUMNS, [(job, upstream) for upstream in gone])
    columns: Columns = (*COLUMNS, ("condition", "text"))
    fresh = [(job, up, condition) for up, condition in sorted(wanted.items()) if present.get(up) != condition]
    if fresh:
        yield Insert("dependencies", columns, fresh)
    if not wanted:
        yield Fetch(DROP_DEPENDENT, (job,))
