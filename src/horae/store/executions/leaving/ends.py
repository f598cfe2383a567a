"""Ends: whatever ends executions tells here whoever must hear of it, in the order in which their locks are taken.

First the workflows that they are steps of, and so perhaps the parents of these; then who waits for their keys; then the
jobs that depend on theirs. What waits for other jobs, or for its turn, is never a step: those moves tell by themselves.
"""

from collections.abc import Sequence

from horae.env import Instant
from horae.model.admission.keys import KEYED
from horae.model.executions.settle import Finished, time_worked
from horae.model.executions.slice import Queued, Waiting
from horae.store.admission import holders
from horae.store.base.deferred import Deferred
from horae.store.executions.leaving import dead_letters
from horae.store.executions.leaving.effects import Effects, take_in
from horae.store.executions.told import Ended, FlowEnd, is_step
from horae.store.script import Script
from horae.store.triggers.dependencies.arrivals import Over, arrive
from horae.store.triggers.dependencies.starts import NewId, Started
from horae.store.workflows.advance import follow
from horae.store.workflows.locks import Kin


def tell(ended: Sequence[Finished], new_id: NewId, now: Instant, done: Started) -> Script[None]:
    """Tell everybody of executions that lie on history now; `done` tells what went on."""
    steps = [f for f in ended if is_step(f.slice.flags)]
    parents: list[Finished] = []
    if steps:
        moves = Deferred()
        parents = yield from follow(steps, moves, new_id, now, done)
        yield from moves.make()
        done.ended += [as_ended(f) for f in parents]
    yield from pass_on([*ended, *parents], new_id, now, done)
    yield from dead_letters.reopen(ended)


def pass_on(ended: Sequence[Finished], new_id: NewId, now: Instant, done: Started) -> Script[None]:
    """Tell who waits for the keys of executions that ended, and the jobs that depend on theirs."""
    keyed = {f.slice.parcel for f in ended if f.slice.flags & KEYED}
    if keyed:
        entered = yield from holders.free(keyed, now)
        done.queue(entered.queued)
        done.wake(entered.wake_at)
    over = [Over(f.slice.parcel, f.slice.lo, f.slice.hi, f.slice.job, f.state) for f in ended]
    if over:
        yield from arrive(over, new_id, now, done)


def follow_steps(
    effects: Effects,
    moves: Deferred,
    new_id: NewId,
    now: Instant,
    kin: Kin | None = None,
    *,
    keeps_newborn: bool = False,
) -> Script[None]:
    """Steps that a report ended are told to their workflows. Keys and dependents of parents come with the others'.

    What follows at once goes to the queue, or is left to whoever `keeps_newborn`.
    """
    steps, effects.children = effects.children, []
    done = Started(keeps_newborn=keeps_newborn)
    parents = yield from follow(steps, moves, new_id, now, done, kin)
    effects.newborn += done.newborn
    effects.open |= done.open
    take_in(effects, done)
    effects.ended += [as_ended(f) for f in parents]
    effects.freed |= {f.slice.parcel for f in parents if f.slice.flags & KEYED}
    effects.feeding |= {f.slice.job for f in parents}


def as_ended(finished: Finished) -> Ended:
    """A workflow that has ended, for events and statistics: no worker was busy with it."""
    s, began_at, ended_at = finished.slice, finished.started_at, finished.completed_at
    _, spans = time_worked(began_at, ended_at, None)
    flow = None if began_at is None else FlowEnd(s.attempt, began_at, ended_at, finished.error)
    return Ended(
        s.parcel, s.lo, s.hi, s.job, s.namespace, finished.state, 0, spans=spans, flow=flow, attempt=s.attempt,
        step=is_step(s.flags),
        at=ended_at,
    )  # fmt: skip


def as_cancelled(slice: Waiting | Queued, reason: str, now: Instant) -> Finished:
    """A slice that ends before anybody ran it."""
    queued_at = slice.queued_at if isinstance(slice, Queued) else None
    return Finished(slice=slice, state="cancelled", reason=reason, queued_at=queued_at, completed_at=now)
