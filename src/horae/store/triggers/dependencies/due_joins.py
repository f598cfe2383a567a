"""Due joins: an upstream failed, so the dependent is skipped, or an execution has waited too long for upstreams."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from msgspec import Struct, field, structs

from horae.env import Instant
from horae.model.admission.keys import KEYED
from horae.model.base.ids import index_of, parcel_of
from horae.model.executions.execution import FAILED, SKIPPED, Extra
from horae.model.executions.settle import FinishedSlice
from horae.model.executions.slice import Slice, part
from horae.model.fleet.protocol import Failure
from horae.model.triggers.dependency import Join, Parts, judge, why_late, why_skipped
from horae.store.base import shelves
from horae.store.executions.entering.placing import place
from horae.store.executions.leaving.effects import Effects, merge_started
from horae.store.executions.parcels import put_ended
from horae.store.executions.state_changes import FinishedItems
from horae.store.script import Among, ForEach, Script, Statement
from horae.store.triggers.dependencies import dependency_fires, dependents, joins
from horae.store.triggers.dependencies.arrivals import DEPENDENTS, EndedItems, arrive
from horae.store.triggers.dependencies.dependents import Dependent
from horae.store.triggers.dependencies.starts import (
    REASON,
    RECHECK_PAUSE,
    Consequences,
    NewId,
    lead_function,
    release,
    still_waiting,
    take,
    upstream_executions,
)
from horae.store.triggers.targets import Target, execution_of, targets

NAMES = Statement("names_of_upstreams", "SELECT id, name FROM jobs WHERE id = ANY($1)")


class CheckedJoins(Struct):
    """The result of `check_due_joins`."""

    joins: int = 0  # the number of due joins; at the limit there may be more
    started: Consequences = field(default_factory=Consequences)
    over: list[tuple[EndedItems, int]] = []  # ended executions, each with its namespace
    freed: set[UUID] = set()  # parcels of these executions that had keys of limits or sequences


class _Ending(Struct, frozen=True):
    """A join whose execution ends without having run."""

    join: Join
    state: str  # the final state of the execution
    error: Failure  # the reason


def check_due_joins(limit: int, new_id: NewId, now: Instant) -> Script[CheckedJoins]:
    """Check at most `limit` due joins: skip dependents of failed upstreams, and end executions that waited too long."""
    due = yield from joins.due(now, limit)
    if not due:
        return CheckedJoins()
    jobs = {join.dependent for join in due}
    below = yield ForEach(DEPENDENTS, (("job", "uuid"),), [(job,) for job in sorted(jobs)])
    # The ends are reported to the jobs below, so their locks are needed, too: all are taken in one order.
    yield from dependents.lock(jobs | {row[0] for row in below})
    found = yield from dependents.lock_and_read(jobs)
    read = yield from joins.read({j.key for j in due})
    current = [(join, parts) for join, parts in read if join.wake_at is not None]  # guard: join-looked-at-once
    aims = yield from targets(jobs)
    names = yield from _names({upstream for d in found.values() for upstream in d.needs})
    checked = CheckedJoins(joins=len(due))
    endings: list[_Ending] = []
    releases: list[Join] = []
    later: list[Join] = []
    for join, parts in current:
        d = found.get(join.dependent) or Dependent(job=join.dependent, needs={}, scheduled=False)
        decided = _decide(join, parts, d, aims[join.dependent], names, now)
        if isinstance(decided, _Ending):
            endings.append(decided)
        elif decided:
            releases.append(join)
        else:
            later.append(structs.replace(join, wake_at=join.deadline if join.execution else None))
    changed = yield from release(releases, now, checked.started)
    changed += yield from _end(endings, aims, found, {j.key: p for j, p in current}, new_id, now, checked)
    yield from joins.save([*changed, *later])
    if checked.over:
        yield from arrive([over for over, _ in checked.over], new_id, now, checked.started)
    return checked


def check_with_effects(limit: int, new_id: NewId, now: Instant) -> Script[tuple[int, Effects]]:
    """Check due joins; return their number, and the effects for the server to publish as hints and to count."""
    checked = yield from check_due_joins(limit, new_id, now)
    effects = Effects()
    merge_started(effects, checked.started)
    effects.ended += [
        FinishedItems(over.parcel, over.lo, over.hi, over.job, namespace, over.state, 0, at=now)
        for over, namespace in checked.over
    ]
    effects.freed |= checked.freed
    return checked.joins, effects


def _names(upstreams: set[UUID]) -> Script[dict[UUID, str]]:
    rows = yield Among(NAMES, sorted(upstreams))
    return {row[0]: row[1] for row in rows}


def _decide(
    join: Join, parts: Parts, d: Dependent, target: Target, names: Mapping[UUID, str], now: Instant
) -> "_Ending | bool":
    """Return the ending of a join, or True if its execution is released, or False if it continues to wait."""
    verdict = judge(join, d.needed, parts, scheduled=d.scheduled)
    if verdict == "skip":
        return _Ending(join, SKIPPED, Failure(type="DependencyFailed", message=why_skipped(d.needed, parts, names)))
    if verdict == "release":
        return True
    if join.execution is None or join.deadline is None or join.deadline > now:
        return False
    late = target.spec.on_dependency_timeout
    if late == "run":
        return True
    message = why_late(d.needed, parts, names, join.interval)
    return _Ending(join, SKIPPED if late == "skip" else FAILED, Failure(type="DependencyTimeout", message=message))


def _end(
    endings: Sequence[_Ending],
    aims: Mapping[UUID, Target],
    found: Mapping[UUID, Dependent],
    parts: Mapping[joins.Key, Parts],
    new_id: NewId,
    now: Instant,
    checked: CheckedJoins,
) -> Script[list[Join]]:
    """End the waiting executions of joins; return the changed joins.

    For a join without an execution, create a skipped execution, so that users can see the skip. Nothing is created for
    a deleted job.
    """
    waited = [ending for ending in endings if ending.join.execution is not None]
    fresh = [
        ending for ending in endings if ending.join.execution is None and aims[ending.join.dependent].state != "deleted"
    ]
    changed = yield from _end_waiting(waited, now, checked)
    if fresh:
        changed += yield from _create_skipped(fresh, aims, found, parts, new_id, now, checked)
    return changed


def _end_waiting(endings: Sequence[_Ending], now: Instant, checked: CheckedJoins) -> Script[list[Join]]:
    if not endings:
        return []
    rows = yield from take([ending.join for ending in endings])
    held = yield from still_waiting([e.join for e in endings if e.join.execution not in rows])
    ended: list[FinishedSlice] = []
    changed: list[Join] = []
    for ending in endings:
        execution_id = ending.join.execution
        if execution_id in held:
            changed.append(structs.replace(ending.join, wake_at=now + RECHECK_PAUSE))
            checked.started.check_by(now + RECHECK_PAUSE)
            continue
        state = "skipped" if execution_id in rows and ending.error.type == "DependencyFailed" else "ended"
        changed.append(structs.replace(ending.join, state=state, wake_at=None))
        if execution_id is not None and execution_id in rows:
            waiting = part(shelves.waiting(rows[execution_id]), index_of(execution_id), index_of(execution_id) + 1)
            ended.append(_finished(waiting, ending, now))
    yield from _put(ended, checked)
    return changed


def _create_skipped(
    endings: Sequence[_Ending],
    aims: Mapping[UUID, Target],
    found: Mapping[UUID, Dependent],
    parts: Mapping[joins.Key, Parts],
    new_id: NewId,
    now: Instant,
    checked: CheckedJoins,
) -> Script[list[Join]]:
    lead = yield from lead_function([aims[ending.join.dependent] for ending in endings], now)
    asked = []
    for ending in endings:
        join = ending.join
        upstream = upstream_executions(found[join.dependent].needs, parts[join.key])
        extra = Extra(origin=REASON, interval=join.interval, upstream=upstream)
        asked.append(execution_of(aims[join.dependent], extra, lead))
    placed, parcels = place(asked, {}, new_id, now)
    yield from put_ended([parcel for parcel, _ in parcels])
    made = {parcel.id: parcel for parcel, _ in parcels}
    ended: list[FinishedSlice] = []
    changed: list[Join] = []
    for ending, receipts in zip(endings, placed, strict=True):
        execution_id = receipts[0].execution_id
        parcel = made[parcel_of(execution_id)]
        e = parcel.envelope
        skipped = Slice(
            parcel=parcel.id,
            lo=index_of(execution_id),
            hi=index_of(execution_id) + 1,
            job=e.job,
            queue=e.queue,
            namespace=e.namespace,
        )
        ended.append(_finished(skipped, ending, now))
        changed.append(structs.replace(ending.join, state="skipped", execution=execution_id, wake_at=None))
    yield from _put(ended, checked)
    rows = ((e.join.dependent, e.error.message, r[0].execution_id) for e, r in zip(endings, placed, strict=True))
    yield dependency_fires.skipped(rows, now)
    return changed


def _finished(ended: Slice, ending: _Ending, now: Instant) -> FinishedSlice:
    return FinishedSlice(slice=ended, state=ending.state, reason=REASON, completed_at=now, error=ending.error)


def _put(ended: Sequence[FinishedSlice], checked: CheckedJoins) -> Script[None]:
    if ended:
        yield shelves.put_finished(ended)
        checked.freed |= {f.slice.parcel for f in ended if f.slice.flags & KEYED}
        checked.over += [
            (EndedItems(f.slice.parcel, f.slice.lo, f.slice.hi, f.slice.job, f.state), f.slice.namespace) for f in ended
        ]
