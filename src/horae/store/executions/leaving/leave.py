"""The way into history: executions leave their shelves, and everybody who must hear of it does, in the order of locks.

First the workflows that they are steps of, and so perhaps the parents of these; then the executions that wait for their
keys; then the jobs that depend on theirs. `leave` is for what no worker runs, `follow_attempts` for what workers
reported or lost. The few ways around them are listed in docs/decisions/0019-doors.md, with the reason of each.
"""

from collections.abc import Iterable, Sequence
from uuid import UUID

from horae.env import Instant
from horae.model.admission.keys import KEYED
from horae.model.executions.settle import FinishedSlice, time_worked
from horae.model.executions.slice import Queued, Waiting, gaps, part
from horae.store.admission import holders
from horae.store.base import shelves
from horae.store.base.deferred import Change, Deferred
from horae.store.executions.leaving import dead_letters
from horae.store.executions.leaving.effects import Effects, advance_dependents, free_keys, merge_started
from horae.store.executions.state_changes import FinishedItems, WorkflowEnd, is_step
from horae.store.script import Script, Together
from horae.store.triggers.dependencies.arrivals import EndedItems, arrive
from horae.store.triggers.dependencies.starts import Consequences, NewId
from horae.store.workflows.advance import follow
from horae.store.workflows.locks import ChildCache


def leave(
    held: Sequence[Waiting | Queued],
    ended: Sequence[FinishedSlice],
    new_id: NewId,
    now: Instant,
    done: Consequences,
    *more: Change,
) -> Script[None]:
    """Move what `ended` of waiting or queued slices to history, and tell everybody who must hear of it.

    The caller has locked the `held` slices; what of them has not ended stays where it is. `more` changes are made
    together with the move. `done` gathers what goes on.
    """
    changes = _off([s for s in held if isinstance(s, Waiting)], [s for s in held if isinstance(s, Queued)])
    rest = _rest(held, ended)
    if rest:  # guard: cancel-keeps-neighbours
        yield Together(changes)  # before the rest is put down: it may have the key of the slice that it is a part of
        changes = [
            shelves.put_waiting(s for s in rest if isinstance(s, Waiting)),
            shelves.put_queued(s for s in rest if isinstance(s, Queued)),
        ]
    yield Together([*changes, shelves.put_finished(ended), *more])
    steps = [f for f in ended if is_step(f.slice.flags)]
    parents: list[FinishedSlice] = []
    if steps:
        moves = Deferred()
        parents = yield from follow(steps, moves, new_id, now, done)
        yield from moves.make()
        done.ended += [as_ended(f) for f in parents]
    yield from advance_waiting([*ended, *parents], new_id, now, done)
    yield from dead_letters.reopen(ended)


def _off(waiting: Sequence[Waiting], queued: Sequence[Queued]) -> list[Change]:
    return [shelves.take("waiting", waiting), shelves.take("queued", queued)]


def _rest(held: Iterable[Waiting | Queued], ended: Iterable[FinishedSlice]) -> list[Waiting | Queued]:
    """The parts of slices that have not ended."""
    gone: dict[UUID, list[tuple[int, int]]] = {}
    for f in ended:
        gone.setdefault(f.slice.parcel, []).append((f.slice.lo, f.slice.hi))
    return [
        part(s, lo, hi)
        for s in held
        for lo, hi in gaps(s.lo, s.hi, [(a, b) for a, b in gone.get(s.parcel, ()) if a < s.hi and b > s.lo])
    ]


def advance_waiting(ended: Sequence[FinishedSlice], new_id: NewId, now: Instant, done: Consequences) -> Script[None]:
    """Tell who waits for the keys of executions that ended, and the jobs that depend on theirs."""
    keyed = {f.slice.parcel for f in ended if f.slice.flags & KEYED}
    if keyed:
        entered = yield from holders.free(keyed, now)
        done.queue(entered.queued)
        done.wake_by(entered.wake_at)
    over = [EndedItems(f.slice.parcel, f.slice.lo, f.slice.hi, f.slice.job, f.state) for f in ended]
    if over:
        yield from arrive(over, new_id, now, done)


def follow_attempts(
    effects: Effects,
    moves: Deferred,
    new_id: NewId,
    now: Instant,
    child_cache: ChildCache | None = None,
    *,
    keeps_newborn: bool = False,
) -> Script[None]:
    """Tell everybody of the executions that a batch of reports, or a rescue, has moved; the last moves are not made.

    Keys and dependents of workflows that end by it come with those of the others. Steps that follow at once go to the
    queue, or are left to a caller that `keeps_newborn`.
    """
    if effects.children:
        yield from _follow_steps(effects, moves, new_id, now, child_cache, keeps_newborn=keeps_newborn)
    if effects.freed:
        yield from moves.make()
        yield from free_keys(effects, now)  # guard: end-frees-keys
    if effects.feeding:
        yield from moves.make()
        yield from advance_dependents(effects, new_id, now)
    if effects.given_up:
        yield from dead_letters.reopen(effects.given_up)


def _follow_steps(
    effects: Effects,
    moves: Deferred,
    new_id: NewId,
    now: Instant,
    child_cache: ChildCache | None,
    *,
    keeps_newborn: bool,
) -> Script[None]:
    steps, effects.children = effects.children, []
    done = Consequences(keeps_newborn=keeps_newborn)
    parents = yield from follow(steps, moves, new_id, now, done, child_cache)
    effects.newborn += done.newborn
    effects.open |= done.open
    merge_started(effects, done)
    effects.ended += [as_ended(f) for f in parents]
    effects.freed |= {f.slice.parcel for f in parents if f.slice.flags & KEYED}
    effects.feeding |= {f.slice.job for f in parents}


def as_ended(finished: FinishedSlice) -> FinishedItems:
    """A workflow that has ended, for events and statistics: no worker was busy with it."""
    s, began_at, ended_at = finished.slice, finished.started_at, finished.completed_at
    _, spans = time_worked(began_at, ended_at, None)
    flow = None if began_at is None else WorkflowEnd(s.attempt, began_at, ended_at, finished.error)
    return FinishedItems(
        s.parcel, s.lo, s.hi, s.job, s.namespace, finished.state, 0, spans=spans, flow=flow, attempt=s.attempt,
        step=is_step(s.flags),
        at=ended_at,
    )  # fmt: skip


def as_cancelled(unstarted: Waiting | Queued, reason: str, now: Instant) -> FinishedSlice:
    """A slice that ends before anybody ran it."""
    queued_at = unstarted.queued_at if isinstance(unstarted, Queued) else None
    return FinishedSlice(slice=unstarted, state="cancelled", reason=reason, queued_at=queued_at, completed_at=now)
