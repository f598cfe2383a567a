"""Arrivals: the transaction that ends an execution reports this to the jobs that depend on its job.

Every script that ends executions calls `arrive` with them. It records each end in joins, under the lock of the
dependent. It does not look up whether executions of other upstreams have ended: if two upstreams end at the same time,
each transaction would see the other execution as unfinished, and none would start the dependent.
"""

from collections.abc import Collection, Iterable, Sequence
from uuid import UUID

from msgspec import Struct, structs

from horae.env import Instant
from horae.model.base.ids import execution_id
from horae.model.executions.parcel import extras_of
from horae.model.triggers.dependency import NO_INTERVAL, Condition, Join, JoinPart, judge, meets
from horae.store.script import ForEach, Script, Statement
from horae.store.triggers.dependencies import joins
from horae.store.triggers.dependencies.dependents import (
    Dependent,
    Need,
    lock_and_read,
    save_counts,
    upstreams_with_intervals,
)
from horae.store.triggers.dependencies.starts import (
    Consequences,
    DependentStart,
    NewId,
    release,
    start,
    upstream_executions,
)

DEPENDENTS = Statement(
    "dependents_of",
    "SELECT d.job, d.upstream FROM given JOIN dependencies d ON d.upstream = given.job"
    " JOIN jobs j ON j.id = d.job WHERE j.state <> 'deleted'",
)
EXTRAS = Statement("extras_of", "SELECT p.id, p.extras FROM given JOIN parcels p ON p.id = given.parcel")

Interval = tuple[Instant, Instant]
Ends = dict[str, list[UUID]]  # final state -> executions


class EndedItems(Struct, frozen=True):
    """Items of a parcel that have ended in the same state."""

    parcel: UUID
    lo: int
    hi: int
    job: UUID
    state: str


class Arrivals(Struct):
    """The ended executions of one upstream."""

    intervals: dict[Interval, Ends] = {}  # data interval -> the ends of executions with it
    plain: Ends = {}  # the ends of executions without a data interval


def arrive(ended: Sequence[EndedItems], new_id: NewId, now: Instant, consequences: Consequences) -> Script[None]:
    """Report ended executions to the dependents of their jobs, and start dependents whose dependencies are met now."""
    rows = yield ForEach(DEPENDENTS, (("job", "uuid"),), [(job,) for job in sorted({one.job for one in ended})])
    if not rows:
        return
    upstreams = {row[1] for row in rows}
    arrivals = yield from _arrivals([one for one in ended if one.job in upstreams])
    jobs = {job for job, upstream in rows if upstream in arrivals}
    if not jobs:
        return
    dependents = yield from lock_and_read(jobs)
    touched = yield from _add_ends_with_interval(dependents, arrivals, now)
    touched |= yield from _add_ends_without_interval(dependents, arrivals, now)
    fired = by_count(dependents.values())
    yield from save_counts(dependents.values())
    yield from settle(dependents, touched, new_id, now, consequences, fired)


def _arrivals(ended: Sequence[EndedItems]) -> Script[dict[UUID, Arrivals]]:
    """Group ended executions by their job, without those that were submitted with the option to start no dependents."""
    rows = yield ForEach(EXTRAS, (("parcel", "uuid"),), [(parcel,) for parcel in sorted({one.parcel for one in ended})])
    extras: dict[UUID, bytes | None] = {row[0]: row[1] for row in rows}
    found: dict[UUID, Arrivals] = {}
    for one in sorted(ended, key=lambda one: (one.parcel, one.lo)):
        for item, extra in enumerate(extras_of(extras.get(one.parcel), one.lo, one.hi), one.lo):
            if extra.propagate:
                arrivals = found.setdefault(one.job, Arrivals())
                ends = arrivals.plain if extra.interval is None else arrivals.intervals.setdefault(extra.interval, {})
                ends.setdefault(one.state, []).append(execution_id(one.parcel, item))
    return found


def _add_ends_with_interval(
    dependents: dict[UUID, Dependent], arrivals: dict[UUID, Arrivals], now: Instant
) -> Script[set[joins.Key]]:
    """Add ends of executions with a data interval as parts to joins; create a join for the interval if there is none.

    Joins for the same interval get every end. Joins without an interval get only ends that meet the condition.
    Return the keys of the changed joins.
    """
    brought: dict[tuple[UUID, Instant], list[JoinPart]] = {}
    own: dict[joins.Key, Join] = {}
    for d in dependents.values():
        for upstream in d.needs.keys() & arrivals.keys():
            for (since, until), ends in arrivals[upstream].intervals.items():
                part = _part(upstream, ends, d.needs[upstream].condition)
                join = Join(dependent=d.job, start=since, end=until)
                own[join.key] = join
                brought.setdefault((d.job, since), []).append(part)
                if part.met:
                    brought.setdefault((d.job, NO_INTERVAL), []).append(part)
    made = yield from joins.put([own[key] for key in sorted(own)], now)
    waiting = yield from joins.of_intervals(brought)
    parts = {(j.key, p.upstream): p for j in waiting for p in brought[j.dependent, j.start]}
    parts |= yield from _fill(dependents, made, parts)
    yield from joins.add_parts([(key, parts[key, upstream]) for key, upstream in sorted(parts)], now)
    return {key for key, _ in parts}


def _part(upstream: UUID, ends: Ends, condition: Condition) -> JoinPart:
    """Return the part that an upstream adds to a join, from its ends for the same interval.

    It is an end that meets the condition, if there is one, otherwise an end that does not.
    """
    state = next((state for state in ends if meets(condition, state)), next(iter(ends)))
    return JoinPart(upstream=upstream, met=meets(condition, state), state=state, execution=ends[state][-1])


NewParts = dict[tuple[joins.Key, UUID], JoinPart]


def _fill(dependents: dict[UUID, Dependent], made: Collection[joins.Key], known: NewParts) -> Script[NewParts]:
    """Return parts for new joins from the unused successes of upstreams whose executions have no data intervals."""
    stocked = {key[0] for key in made if any(need.unused for need in dependents[key[0]].needs.values())}
    if not stocked:
        return {}
    shared = yield from upstreams_with_intervals(stocked)
    filled: NewParts = {}
    for key in sorted(made):
        for upstream, need in dependents[key[0]].needs.items():
            if key[0] in stocked and need.unused and upstream not in shared[key[0]] and (key, upstream) not in known:
                filled[key, upstream] = used(upstream, need)
    return filled


def used(upstream: UUID, need: Need) -> JoinPart:
    """Return an unused success of an upstream as a part, and count it as used."""
    state = "failed" if need.condition == "failure" else "success"
    return JoinPart(upstream=upstream, met=True, state=state, execution=need.use())


def _add_ends_without_interval(
    dependents: dict[UUID, Dependent], arrivals: dict[UUID, Arrivals], now: Instant
) -> Script[set[joins.Key]]:
    """Add ends of executions without a data interval as parts to joins that lack a part of this upstream.

    Joins without an interval come first, then the oldest. Ends that no join needs are counted as unused. Return the
    keys of the changed joins.
    """
    plain = {
        (d.job, upstream): met
        for d in dependents.values()
        for upstream in d.needs.keys() & arrivals.keys()
        if (met := _met(arrivals[upstream].plain, d.needs[upstream].condition))
    }
    waiting = yield from joins.with_open({job for job, _ in plain})
    shared = yield from upstreams_with_intervals(waiting)
    parts: NewParts = {}
    for job, upstream in sorted(plain):
        met = plain[job, upstream]
        if job in waiting:
            intervals = upstream not in shared[job]
            for join in (yield from joins.lacking(job, upstream, len(met), intervals=intervals)):
                state, execution = met.pop(0)
                parts[join.key, upstream] = JoinPart(upstream=upstream, met=True, state=state, execution=execution)
        dependents[job].needs[upstream].add([execution for _, execution in met])
    yield from joins.add_parts([(key, parts[key, upstream]) for key, upstream in sorted(parts)], now)
    return {key for key, _ in parts}


def _met(ends: Ends, condition: Condition) -> list[tuple[str, UUID]]:
    return [(state, execution) for state, ids in ends.items() if meets(condition, state) for execution in ids]


def by_count(dependents: Iterable[Dependent]) -> list[DependentStart]:
    """Return the starts of dependents for which every upstream has an unused end; each start uses one end of each.

    Dependents with a schedule are left out: their unused ends are kept for the executions that the schedule starts.
    """
    starts = []
    for d in dependents:
        if d.scheduled:
            continue
        for _ in range(min(need.unused for need in d.needs.values())):
            ids = [d.needs[upstream].use() for upstream in sorted(d.needs)]
            starts.append(DependentStart(dependent=d.job, upstream=tuple(ids)))
    return starts


def settle(
    dependents: dict[UUID, Dependent],
    keys: Collection[joins.Key],
    new_id: NewId,
    now: Instant,
    consequences: Consequences,
    more: Sequence[DependentStart] = (),
) -> Script[None]:
    """Judge joins, and start or release their executions; `more` has further executions to start.

    A join to be skipped only becomes due, and `check_due_joins` skips it in another transaction. The reason: a skip is
    reported to the dependents of the skipped job, whose locks must be taken together with those of the joins, in order.
    """
    starts, releases, skips = list(more), [], []
    for join, parts in (yield from joins.read(keys)):
        d = dependents[join.dependent]
        verdict = judge(join, d.needed, parts, scheduled=d.scheduled)
        if verdict == "start":
            starts.append(DependentStart(dependent=d.job, upstream=upstream_executions(d.needs, parts), join=join))
        elif verdict == "release":
            releases.append(join)
        elif verdict == "skip" and join.wake_at != now:
            skips.append(structs.replace(join, wake_at=now))
            consequences.check_by(now)
    changed = yield from start(starts, new_id, now, consequences)
    changed += yield from release(releases, now, consequences)
    yield from joins.save([*changed, *skips])
