"""Arrivals: an execution has ended, and jobs that depend on its job hear of it in the same transaction.

Whatever ends executions calls `arrive` with them. No start is decided by reading another execution's shelf: two
upstreams that end at the same time would each see the other unfinished.
"""

from collections.abc import Collection, Iterable, Sequence
from uuid import UUID

from msgspec import Struct, structs

from horae.env import Instant
from horae.model.base.ids import execution_id
from horae.model.executions.parcel import extras_of
from horae.model.triggers.dependency import NO_INTERVAL, Condition, Join, Part, judge, meets
from horae.store.script import ForEach, Script, Statement
from horae.store.triggers.dependencies import joins
from horae.store.triggers.dependencies.dependents import Dependent, Need, locked, save_counts, sharing
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
Ends = dict[str, list[UUID]]  # how they ended -> which executions


class EndedItems(Struct, frozen=True):
    """Items of a parcel that have ended alike."""

    parcel: UUID
    lo: int
    hi: int
    job: UUID
    state: str


class Arrivals(Struct):
    """What one upstream's executions came to: by their data interval, and those that have none."""

    intervals: dict[Interval, Ends] = {}
    plain: Ends = {}


def arrive(over: Sequence[EndedItems], new_id: NewId, now: Instant, done: Consequences) -> Script[None]:
    """Tell dependents of executions that have ended, and start those whose last upstream this was."""
    rows = yield ForEach(DEPENDENTS, (("job", "uuid"),), [(job,) for job in sorted({one.job for one in over})])
    if not rows:
        return
    upstreams = {row[1] for row in rows}
    arrivals = yield from _arrivals([one for one in over if one.job in upstreams])
    jobs = {job for job, upstream in rows if upstream in arrivals}
    if not jobs:
        return
    dependents = yield from locked(jobs)
    touched = yield from _bring(dependents, arrivals, now)
    touched |= yield from _count(dependents, arrivals, now)
    fired = by_count(dependents.values())
    yield from save_counts(dependents.values())
    yield from settle(dependents, touched, new_id, now, done, fired)


def _arrivals(over: Sequence[EndedItems]) -> Script[dict[UUID, Arrivals]]:
    """By upstream; what was asked not to tell its dependents is left out."""
    rows = yield ForEach(EXTRAS, (("parcel", "uuid"),), [(id,) for id in sorted({one.parcel for one in over})])
    extras: dict[UUID, bytes | None] = {row[0]: row[1] for row in rows}
    found: dict[UUID, Arrivals] = {}
    for one in sorted(over, key=lambda one: (one.parcel, one.lo)):
        for item, extra in enumerate(extras_of(extras.get(one.parcel), one.lo, one.hi), one.lo):
            if extra.propagate:
                mine = found.setdefault(one.job, Arrivals())
                ends = mine.plain if extra.interval is None else mine.intervals.setdefault(extra.interval, {})
                ends.setdefault(one.state, []).append(execution_id(one.parcel, item))
    return found


def _bring(dependents: dict[UUID, Dependent], arrivals: dict[UUID, Arrivals], now: Instant) -> Script[set[joins.Key]]:
    """Ends of an interval go to all that waits for it, and what met a condition to what waits without one."""
    brought: dict[tuple[UUID, Instant], list[Part]] = {}
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


def _part(upstream: UUID, ends: Ends, condition: Condition) -> Part:
    """What an upstream brings: of several ends that which meets the condition, the newest of its kind."""
    state = next((state for state in ends if meets(condition, state)), next(iter(ends)))
    return Part(upstream=upstream, met=meets(condition, state), state=state, execution=ends[state][-1])


NewParts = dict[tuple[joins.Key, UUID], Part]


def _fill(dependents: dict[UUID, Dependent], made: Collection[joins.Key], known: NewParts) -> Script[NewParts]:
    """A new join takes what upstreams without intervals have left unused."""
    stocked = {key[0] for key in made if any(need.unused for need in dependents[key[0]].needs.values())}
    if not stocked:
        return {}
    shared = yield from sharing(stocked)
    filled: NewParts = {}
    for key in sorted(made):
        for upstream, need in dependents[key[0]].needs.items():
            if key[0] in stocked and need.unused and upstream not in shared[key[0]] and (key, upstream) not in known:
                filled[key, upstream] = used(upstream, need)
    return filled


def used(upstream: UUID, need: Need) -> Part:
    """One of what an upstream has left unused, as a part."""
    state = "failed" if need.condition == "failure" else "success"
    return Part(upstream=upstream, met=True, state=state, execution=need.use())


def _count(dependents: dict[UUID, Dependent], arrivals: dict[UUID, Arrivals], now: Instant) -> Script[set[joins.Key]]:
    """Ends without an interval go to what waits for such, the oldest first; the rest is kept to be used."""
    plain = {
        (d.job, upstream): met
        for d in dependents.values()
        for upstream in d.needs.keys() & arrivals.keys()
        if (met := _met(arrivals[upstream].plain, d.needs[upstream].condition))
    }
    waiting = yield from joins.with_open({job for job, _ in plain})
    shared = yield from sharing(waiting)
    parts: NewParts = {}
    for job, upstream in sorted(plain):
        met = plain[job, upstream]
        if job in waiting:
            intervals = upstream not in shared[job]
            for join in (yield from joins.lacking(job, upstream, len(met), intervals=intervals)):
                state, execution = met.pop(0)
                parts[join.key, upstream] = Part(upstream=upstream, met=True, state=state, execution=execution)
        dependents[job].needs[upstream].add([execution for _, execution in met])
    yield from joins.add_parts([(key, parts[key, upstream]) for key, upstream in sorted(parts)], now)
    return {key for key, _ in parts}


def _met(ends: Ends, condition: Condition) -> list[tuple[str, UUID]]:
    return [(state, id) for state, ids in ends.items() if meets(condition, state) for id in ids]


def by_count(dependents: Iterable[Dependent]) -> list[DependentStart]:
    """One of each is used per start; a job with a schedule of its own keeps them for its executions."""
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
    done: Consequences,
    more: Sequence[DependentStart] = (),
) -> Script[None]:
    """Judge joins, and do what follows. What is to be skipped is left to whoever looks at due joins: its own
    dependents come then, in a transaction that locks them in order.
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
            done.look(now)
    changed = yield from start(starts, new_id, now, done)
    changed += yield from release(releases, now, done)
    yield from joins.save([*changed, *skips])
