"""Dependents: what jobs depend on, and the lock under which somebody looks whether they may start.

Every dependent has one row in `dependents`. Whoever brings an upstream's end, lets an execution wait, or changes what
the job depends on holds it, so that of two that come together the second sees what the first did.
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
    """The condition that one of a job's triggers `g` is of these kinds and has not ended."""
    likes = [f'g.definition LIKE \'{{"kind":"{kind.__struct_config__.tag}"%\'' for kind in get_args(kinds)]
    return f"g.state <> 'ended' AND ({' OR '.join(likes)})"


TIMED = _live(values.Timed)  # it starts by the clock
RECURRING = _live(values.Recurring)  # and its fires have data intervals
LOCK = Statement("lock_dependents", "SELECT job FROM dependents WHERE job = ANY($1) ORDER BY job FOR NO KEY UPDATE")
BELOW = Statement("jobs_below", "SELECT job FROM dependencies WHERE upstream = ANY($1)")
NEEDED = Statement("needed", "SELECT job, upstream, condition, unused, execution FROM dependencies WHERE job = ANY($1)")
SCHEDULED = Statement("scheduled_jobs", f"SELECT DISTINCT g.job FROM triggers g WHERE g.job = ANY($1) AND {TIMED}")
# Upstreams whose executions have data intervals: their own schedule's, or one they inherit.
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
    """One dependency: what it asks for, and how often that was met without an interval and not used yet."""

    condition: Condition
    unused: int = 0
    execution: UUID = NOBODY  # the newest that met it
    fresh: list[UUID] = []  # those that met it just now
    touched: bool = False

    def add(self, executions: Sequence[UUID]) -> None:
        """These met it."""
        self.unused += len(executions)
        self.fresh += executions
        self.touched |= bool(executions)

    def use(self) -> UUID:
        """Use it once; the execution that met it, or of several before this transaction the newest."""
        older = self.unused > len(self.fresh)
        self.unused, self.touched = self.unused - 1, True
        if older:
            return self.execution
        self.execution = self.fresh.pop(0)
        return self.execution

    def keep_one(self) -> None:
        """Leave at most one unused."""
        self.touched |= self.unused > 1
        self.unused = min(self.unused, 1)

    @property
    def newest(self) -> UUID:
        return self.fresh[-1] if self.fresh else self.execution


class Dependent(Struct, kw_only=True):
    """A job that depends on others, as it stands under its lock."""

    job: UUID
    needs: dict[UUID, Need]
    scheduled: bool

    @property
    def needed(self) -> dict[UUID, Condition]:
        return {upstream: need.condition for upstream, need in self.needs.items()}


def lock(jobs: Collection[UUID]) -> Script[None]:
    """Hold dependents, in the order of their ids."""
    yield Among(LOCK, sorted(jobs))


def lock_around(jobs: Collection[UUID]) -> Script[None]:
    """Hold jobs and all that depend on them: what ends of the ones is told to the others."""
    below = yield Among(BELOW, sorted(jobs))
    yield from lock({*jobs, *(row[0] for row in below)})


def locked(jobs: Collection[UUID]) -> Script[dict[UUID, Dependent]]:
    """Hold dependents, and read them afterwards: whoever held them before has committed."""
    ids = sorted(jobs)
    yield from lock(ids)
    rows = yield Among(NEEDED, ids)
    scheduled = {row[0] for row in (yield Among(SCHEDULED, ids))}
    found: dict[UUID, Dependent] = {}
    for job, upstream, condition, unused, execution in rows:
        dependent = found.setdefault(job, Dependent(job=job, needs={}, scheduled=job in scheduled))
        dependent.needs[upstream] = Need(condition=condition, unused=unused, execution=execution or NOBODY)
    return found


def sharing(jobs: Collection[UUID]) -> Script[dict[UUID, set[UUID]]]:
    """Of each dependent the upstreams whose executions have data intervals."""
    found: dict[UUID, set[UUID]] = {job: set() for job in jobs}
    for job, upstream in (yield Among(SHARING, sorted(jobs))) if jobs else []:
        found[job].add(upstream)
    return found


def save_counts(dependents: Collection[Dependent]) -> Script[None]:
    """Write down what was met and used."""
    columns: Columns = (*COLUMNS, ("unused", "int"), ("execution", "uuid"))
    rows = [
        (d.job, upstream, need.unused, need.newest)
        for d in dependents
        for upstream, need in sorted(d.needs.items())
        if need.touched
    ]
    if rows:
        yield ForEach(USE, columns, rows)


def define(job: UUID, wanted: Mapping[UUID, Condition]) -> Script[None]:
    """Let a job depend on these. What it met of those that stay is kept, unless it asks for something else now."""
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
