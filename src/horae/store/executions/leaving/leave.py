"""The way into history: executions leave their shelves, and the consequences follow in the order of locks.

First the workflows of ended steps advance, and perhaps the workflows above them. Then executions that wait for released
keys advance, and then the joins of dependent jobs. `leave` is for executions that no worker runs, `follow_attempts` for
attempts that workers reported or lost. docs/decisions/0019-doors.md lists the few scripts that use neither, and why.
"""

from collections.abc import Iterable, Sequence
from uuid import UUID

from horae.env import Instant
from horae.model.admission.keys import KEYED
from horae.model.executions.settle import FinishedSlice, time_worked
from horae.model.executions.slice import QueuedSlice, WaitingSlice, gaps, part
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
    held: Sequence[WaitingSlice | QueuedSlice],
    ended: Sequence[FinishedSlice],
    new_id: NewId,
    now: Instant,
    consequences: Consequences,
    *more: Change,
) -> Script[None]:
    """Move the `ended` parts of waiting or queued slices to history, with all consequences.

    The caller has locked the `held` slices. Their parts that have not ended stay on their shelf. The changes `more` are
    written together with the move. `consequences` collects the executions that were started as a consequence.
    """
    changes = _off([s for s in held if isinstance(s, WaitingSlice)], [s for s in held if isinstance(s, QueuedSlice)])
    rest = _rest(held, ended)
    if rest:  # guard: cancel-keeps-neighbours
        yield Together(changes)  # separately, because a part that is inserted next may have the key of a deleted slice
        changes = [
            shelves.put_waiting(s for s in rest if isinstance(s, WaitingSlice)),
            shelves.put_queued(s for s in rest if isinstance(s, QueuedSlice)),
        ]
    yield Together([*changes, shelves.put_finished(ended), *more])
    steps = [f for f in ended if is_step(f.slice.flags)]
    parents: list[FinishedSlice] = []
    if steps:
        moves = Deferred()
        parents = yield from follow(steps, moves, new_id, now, consequences)
        yield from moves.make()
        consequences.ended_workflows += [as_ended(f) for f in parents]
    yield from advance_waiting([*ended, *parents], new_id, now, consequences)
    yield from dead_letters.reopen(ended)


def _off(waiting: Sequence[WaitingSlice], queued: Sequence[QueuedSlice]) -> list[Change]:
    return [shelves.take("waiting", waiting), shelves.take("queued", queued)]


def _rest(
    held: Iterable[WaitingSlice | QueuedSlice], ended: Iterable[FinishedSlice]
) -> list[WaitingSlice | QueuedSlice]:
    """Return the parts of slices that have not ended and stay on their shelf."""
    gone: dict[UUID, list[tuple[int, int]]] = {}
    for f in ended:
        gone.setdefault(f.slice.parcel, []).append((f.slice.lo, f.slice.hi))
    return [
        part(s, lo, hi)
        for s in held
        for lo, hi in gaps(s.lo, s.hi, [(a, b) for a, b in gone.get(s.parcel, ()) if a < s.hi and b > s.lo])
    ]


def advance_waiting(
    ended: Sequence[FinishedSlice], new_id: NewId, now: Instant, consequences: Consequences
) -> Script[None]:
    """Queue executions that waited for the keys of ended executions, and advance joins that wait for their jobs."""
    keyed = {f.slice.parcel for f in ended if f.slice.flags & KEYED}
    if keyed:
        entered = yield from holders.free(keyed, now)
        consequences.queue(entered.queued)
        consequences.wake_by(entered.wake_at)
    over = [EndedItems(f.slice.parcel, f.slice.lo, f.slice.hi, f.slice.job, f.state) for f in ended]
    if over:
        yield from arrive(over, new_id, now, consequences)


def follow_attempts(
    effects: Effects,
    moves: Deferred,
    new_id: NewId,
    now: Instant,
    child_cache: ChildCache | None = None,
    *,
    keeps_newborn: bool = False,
) -> Script[None]:
    """Advance workflows, keys and joins after a batch of reports or a rescue.

    If a workflow ends because of this, its keys and dependents are handled together with those of the reported
    executions. Steps that may run at once are queued, or with `keeps_newborn` left to the caller. The caller also
    writes the changes that are still in `moves`.
    """
    if effects.ended_steps:
        yield from _follow_steps(effects, moves, new_id, now, child_cache, keeps_newborn=keeps_newborn)
    if effects.freed:
        yield from moves.make()
        yield from free_keys(effects, now)  # guard: end-frees-keys
    if effects.jobs_with_dependents:
        yield from moves.make()
        yield from advance_dependents(effects, new_id, now)
    if effects.cancelled_retries:
        yield from dead_letters.reopen(effects.cancelled_retries)


def _follow_steps(
    effects: Effects,
    moves: Deferred,
    new_id: NewId,
    now: Instant,
    child_cache: ChildCache | None,
    *,
    keeps_newborn: bool,
) -> Script[None]:
    steps, effects.ended_steps = effects.ended_steps, []
    consequences = Consequences(keeps_newborn=keeps_newborn)
    parents = yield from follow(steps, moves, new_id, now, consequences, child_cache)
    effects.newborn += consequences.newborn
    effects.open_lanes |= consequences.open_lanes
    merge_started(effects, consequences)
    effects.ended += [as_ended(f) for f in parents]
    effects.freed |= {f.slice.parcel for f in parents if f.slice.flags & KEYED}
    effects.jobs_with_dependents |= {f.slice.job for f in parents}


def as_ended(finished: FinishedSlice) -> FinishedItems:
    """Return an ended workflow for events and statistics; its busy time is 0, because no worker executed it."""
    s, began_at, ended_at = finished.slice, finished.started_at, finished.completed_at
    _, spans = time_worked(began_at, ended_at, None)
    workflow = None if began_at is None else WorkflowEnd(s.attempt, began_at, ended_at, finished.error)
    return FinishedItems(
        s.parcel, s.lo, s.hi, s.job, s.namespace, finished.state, 0, spans=spans, workflow=workflow, attempt=s.attempt,
        step=is_step(s.flags),
        at=ended_at,
    )  # fmt: skip


def as_cancelled(unstarted: WaitingSlice | QueuedSlice, reason: str, now: Instant) -> FinishedSlice:
    """Return the finished slice of a waiting or queued slice that is cancelled."""
    queued_at = unstarted.queued_at if isinstance(unstarted, QueuedSlice) else None
    return FinishedSlice(slice=unstarted, state="cancelled", reason=reason, queued_at=queued_at, completed_at=now)
