"""What people tell a workflow: signals, yes or no, and that a step is to be taken as done, or left out."""

from collections.abc import Callable, Sequence
from typing import Literal
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.model.executions.signal_waits import MOST_KEPT, Signal
from horae.model.workflows.decisions.flow import FINAL, Ended
from horae.model.workflows.decisions.waits import approvals_before, may_answer
from horae.model.workflows.waits import Approval
from horae.store.base.deferred import Deferred
from horae.store.executions.durable.awaits import COUNT, SENT, SIGNALS
from horae.store.executions.durable.signals import Sent
from horae.store.script import Fetch, Insert, Script, Statement
from horae.store.triggers.dependencies.starts import Consequences, NewId
from horae.store.workflows import locks as flow_locks
from horae.store.workflows import rows as flow_rows
from horae.store.workflows import waits as flow_waits
from horae.store.workflows.advance import Board
from horae.store.workflows.cancel import settle
from horae.store.workflows.workflow_run import Course

Verdict = Literal["done", "ended", "unknown", "final", "idle", "early", "nothing", "several", "forbidden"]


class Told(Struct, frozen=True):
    """What became of it: the step that it was about, or those it may have been about."""

    verdict: Verdict
    steps: Sequence[str] = ()


def send(execution: UUID, signal: Signal, new_id: NewId, now: Instant, done: Consequences) -> Script[Sent | None]:
    """Deliver a signal to the step of a workflow that waits for it, or keep it; None when it is no workflow under way.

    The same signal, by its id, is delivered once.
    """
    board = yield from _board(execution, new_id, now, done)
    if board is None:
        return None
    course = board.courses[execution]
    if course.is_over:
        return Sent("final")
    place = course.held.place
    known = yield Fetch(SENT, (*place, signal.id))
    if known:
        return Sent("kept" if known[0][0] is None else "delivered")
    waits = yield from flow_waits.waits_of(place)
    step = next((s for s, kind, name, _ in waits if kind in ("signal", "callback") and name == signal.name), None)
    ((all, gone),) = yield Fetch(COUNT, place)
    if step is None and all - gone >= MOST_KEPT:
        return Sent("full")
    yield Insert("signals", SIGNALS, [(*place, signal.id, signal.name, signal.payload, all, step, now)])
    if step is None:
        return Sent("kept")
    yield from settle(board, {execution: [Ended(step=step, result=signal.payload)]}, new_id, now, done)
    return Sent("delivered")


def answer(
    execution: UUID, step: str | None, role: str, make: Callable[[str], Ended], new_id: NewId, now: Instant,
    done: Consequences,
) -> Script[Told]:  # fmt: skip
    """Say yes or no to a step that waits for it; without a name, to the only one that does."""
    board = yield from _board(execution, new_id, now, done)
    if board is None or board.courses[execution].is_over:
        return Told("ended" if board is not None else "unknown")
    waits = yield from flow_waits.waits_of(board.courses[execution].held.place)
    open = {name: wait for name, _, _, wait in waits if isinstance(wait, Approval)}
    chosen = list(open) if step is None else [step] if step in open else []
    if len(chosen) > 1:
        return Told("several", sorted(open))
    if not chosen:
        return (yield from _not_asked(board.courses[execution], step))
    (name,) = chosen
    if not may_answer(open[name], role):
        return Told("forbidden", open[name].roles)
    yield from settle(board, {execution: [make(name)]}, new_id, now, done)
    return Told("done", [name])


def _not_asked(course: Course, step: str | None) -> Script[Told]:
    """Why nobody can answer a step, or any."""
    if step is None:
        return Told("idle")
    rows = yield from flow_rows.steps_of([(*course.held.place, step, False)])
    if not rows:
        return Told("idle" if step in course.plan.nodes else "nothing", [step])
    return Told("final" if all(row.is_final for row, _ in rows.values()) else "idle", [step])


def decide(execution: UUID, ended: Ended, role: str, new_id: NewId, now: Instant, done: Consequences) -> Script[Told]:
    """Take a step as done, or leave it out, whatever it is doing: what it runs is cancelled.

    An approval is passed by so only by who may give it, also if the step comes after it.
    """
    board = yield from _board(execution, new_id, now, done)
    if board is None or board.courses[execution].is_over:
        return Told("ended" if board is not None else "unknown")
    course = board.courses[execution]
    rows = yield from flow_rows.steps_of([(*course.held.place, ended.step, False)])
    if not rows:
        return Told("early" if ended.step in course.plan.nodes else "nothing", [ended.step])
    course.learn(rows.values())
    if course.rows[ended.step].state in FINAL:
        return Told("final", [ended.step])
    barred = yield from _barred(course, ended.step, role)
    if barred:
        return Told("forbidden", barred)
    yield from settle(board, {execution: [ended]}, new_id, now, done)
    return Told("done", [ended.step])


def _barred(course: Course, step: str, role: str) -> Script[Sequence[str]]:
    """The roles that are asked for before a step by an approval that is open and not for this role; none otherwise."""
    asked = {name: wait for name, wait in approvals_before(course.plan, step).items() if not may_answer(wait, role)}
    if not asked:
        return ()
    rows = yield from flow_rows.steps_of([(*course.held.place, name, False) for name in sorted(asked)])
    ended = {row.step for row, _ in rows.values() if row.is_final}
    return next((wait.roles for name, wait in sorted(asked.items()) if name not in ended), ())


def _board(execution: UUID, new_id: NewId, now: Instant, done: Consequences) -> Script[Board | None]:
    """A workflow under way, locked and known."""
    if execution not in (yield from flow_locks.lock([execution])):
        return None
    board = Board(Deferred(), new_id, now, done)
    yield from board.load([execution])
    return board


OPEN = Statement(
    "open_approvals",
    "SELECT w.at, w.parcel, w.item, w.step, w.wait, f.execution, j.id, j.name FROM flow_waits w"
    " JOIN flows f ON f.parcel = w.parcel AND f.item = w.item JOIN jobs j ON j.id = f.job"
    " WHERE w.namespace = $1 AND w.kind = 'approval' AND (w.at, w.parcel, w.item, w.step) > ($2, $3, $4, $5)"
    " ORDER BY w.at, w.parcel, w.item, w.step LIMIT $6",
)
Place = tuple[Instant, UUID, int, str]


class Asked(Struct, frozen=True):
    """A step that waits for a word."""

    place: Place
    execution: UUID
    job: UUID
    job_name: str
    approval: Approval

    @property
    def at(self) -> Instant:
        return self.place[0]

    @property
    def step(self) -> str:
        return self.place[3]


def asked(namespace: int, after: Place, limit: int) -> Script[list[Asked]]:
    """Those after a place."""
    rows = yield Fetch(OPEN, (namespace, *after, limit))
    return [
        Asked((row[0], row[1], row[2], row[3]), row[5], row[6], row[7], msgspec.json.decode(row[4], type=Approval))
        for row in rows
    ]
