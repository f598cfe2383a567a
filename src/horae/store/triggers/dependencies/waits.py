"""Waits: executions that already exist, on `waiting`, begin to wait for the dependencies of their job."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.model.triggers.dependency import NO_INTERVAL, Join, Parts
from horae.store.script import Script
from horae.store.triggers.dependencies import dependents, joins
from horae.store.triggers.dependencies.arrivals import NewParts, by_count, settle, used
from horae.store.triggers.dependencies.dependents import Dependent
from horae.store.triggers.dependencies.starts import Consequences, NewId, release


class Wait(Struct, frozen=True, kw_only=True):
    """An execution on `waiting` that may run when the dependencies of its job are met."""

    dependent: UUID  # the job
    execution: UUID
    interval: tuple[Instant, Instant] | None  # the data interval
    deadline: Instant  # when it has waited too long
    own: bool  # whether the job's schedule started it for this interval; False if a user requested it in addition


Hints = tuple[dict[int, int], Instant | None]  # lanes with their least new rank, and the time of the next check


def begin(waits: Sequence[Wait], new_id: NewId, now: Instant, consequences: Consequences) -> Script[Hints]:
    """Add joins for executions that are already on `waiting`.

    An execution is released at once if its dependencies are met or its job has none.
    """
    found = yield from dependents.lock_and_read({wait.dependent for wait in waits})
    own = yield from joins.read({_own(wait) for wait in waits if wait.interval is not None})
    known = {join.key: (join, parts) for join, parts in own}
    taken: dict[joins.Key, Join] = {}
    parts: NewParts = {}
    for wait in waits:
        join = _join_of(wait, known, taken)
        taken[join.key] = join
        if join.step and _own(wait) in known:
            parts |= {(join.key, p.upstream): p for p in known[_own(wait)][1].values()}
    there = yield from joins.put([taken[key] for key in sorted(taken)], now)
    yield from joins.save(taken[key] for key in sorted(taken.keys() - there))
    yield from _fill(found, taken, {key: parts for key, (_, parts) in known.items()}, parts)
    yield from joins.add_parts([(key, parts[key, upstream]) for key, upstream in sorted(parts)], now)
    yield from dependents.save_counts(found.values())
    consequences.check_by(min(wait.deadline for wait in waits))
    gone = [join for join in taken.values() if join.dependent not in found]
    yield from joins.save((yield from release(gone, now, consequences)))
    yield from settle(
        found, [key for key in taken if key[0] in found], new_id, now, consequences
    )  # guard: fire-settles-waits
    return consequences.lanes, consequences.next


def _own(wait: Wait) -> joins.Key:
    return wait.dependent, "", wait.interval[0] if wait.interval else NO_INTERVAL


def _join_of(wait: Wait, known: Mapping[joins.Key, tuple[Join, Parts]], taken: Mapping[joins.Key, Join]) -> Join:
    """Return the join for an execution that waits.

    This is the job's own join of the interval, unless that has ended or has another execution, or the execution was
    requested in addition: then it is a join for this execution alone.
    """
    start, end = wait.interval or (NO_INTERVAL, None)
    key = _own(wait)
    present = known[key][0] if key in known else None
    free = present is None or (present.state == "open" and present.execution is None)
    step = "" if wait.own and wait.interval and free and key not in taken else str(wait.execution)
    return Join(
        dependent=wait.dependent, step=step, start=start, end=end, execution=wait.execution, deadline=wait.deadline,
        wake_at=wait.deadline,
    )  # fmt: skip


def _fill(
    found: Mapping[UUID, Dependent],
    taken: Mapping[joins.Key, Join],
    known: Mapping[joins.Key, Parts],
    parts: NewParts,
) -> Script[None]:
    """Use unused successes of upstreams as parts of new joins; `parts` collects the parts.

    A join with an interval can only use successes of upstreams whose executions have no intervals.
    """
    stocked = {job for job, d in found.items() if any(need.unused for need in d.needs.values())}
    shared = yield from dependents.upstreams_with_intervals(stocked)
    for key in sorted(key for key in taken if key[0] in stocked):
        for upstream, need in found[key[0]].needs.items():
            wanted = key[2] == NO_INTERVAL or upstream not in shared[key[0]]
            if wanted and need.unused and (key, upstream) not in parts and upstream not in known.get(key, {}):
                parts[key, upstream] = used(upstream, need)


def reconsider(
    job: UUID, new_id: NewId, now: Instant, consequences: Consequences, *, edited: bool = False
) -> Script[None]:
    """Judge all open joins of a job again, because an edit of its dependencies may have completed some of them.

    With `edited`, at most one unused success of each upstream is kept. The reason: while one upstream was missing,
    another may have succeeded many times. The edit shall start the job once, not once for each of these successes.
    """
    found = yield from dependents.lock_and_read({job})
    open_ = yield from joins.open_of(job)
    if job in found:
        for need in found[job].needs.values() if edited else ():
            need.keep_one()
        fired = by_count(found.values())
        yield from dependents.save_counts(found.values())
        yield from settle(found, [join.key for join in open_], new_id, now, consequences, fired)
    else:
        freed = yield from release([join for join in open_ if join.execution is not None], now, consequences)
        yield from joins.save(freed)
