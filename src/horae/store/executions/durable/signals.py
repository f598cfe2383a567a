"""Signals: each is delivered once, to a step that waits for it or begins to wait later.

A transaction that sends a signal holds a lock that keeps the execution on its shelf: the lock of its slice, or of the
session that runs it. A report of the execution, and a step that begins to wait, take the same lock. So if a signal
arrives while the execution is being suspended, one of the two transactions comes first, and the other sees its result.
"""

from typing import Literal
from uuid import UUID

from msgspec import Raw, Struct

from horae.env import Instant
from horae.model.executions.signal_waits import (
    MOST_KEPT,
    TIMED_OUT,
    Signal,
    WaitingStep,
    first_signal_for,
    first_wait_for,
    signal_result,
)
from horae.model.fleet.protocol import Await, Awaited
from horae.store.executions.durable import awaits, steps
from horae.store.executions.durable.awaits import COUNT, SENT, SIGNALS, TAKE, kept_of
from horae.store.executions.leaving.cancel import EXISTS, ON_HISTORY, ON_QUEUED, ON_RUNNING, ON_WAITING
from horae.store.fleet.exchange import lock_sessions
from horae.store.script import Fetch, Insert, Script, Statement, Together

STEP = Statement("step_result", "SELECT s.result FROM steps s WHERE s.parcel = $1 AND s.item = $2 AND s.name = $3")
WAKE = Statement(
    "wake_for_signal",
    "UPDATE waiting SET wake_at = $3 WHERE parcel = $1 AND lo <= $2 AND hi > $2 AND reason = 'signal'"
    " AND (wake_at IS NULL OR wake_at > $3) RETURNING lo",
)

# "kept": stored, as no step waits for it yet; "final": the execution has ended; "full": too many signals are stored
SignalVerdict = Literal["delivered", "kept", "final", "full", "moving", "unknown"]


class SignalResult(Struct, frozen=True):
    """The verdict on a signal; `wake_at` is set when it has woken its execution."""

    verdict: SignalVerdict
    wake_at: Instant | None = None


def wait(session: UUID, body: Await, now: Instant) -> Script[Awaited | None]:
    """Let a step wait for a signal.

    If a signal has arrived, or the deadline of the wait is over, return the result of the step at once. Return None
    when the session does not hold the execution. A repeated call keeps the deadline of the first call.
    """
    sessions = yield from lock_sessions([session])  # guard: await-locks-session
    live = session in sessions and sessions[session].is_present
    if not live or not (yield from steps.is_held(session, body.parcel, body.item, body.attempt)):
        return None
    place = body.parcel, body.item
    known = yield Fetch(STEP, (*place, body.step))
    if known:
        return Awaited(result=Raw(known[0][0]))
    open_waits = {wait.step: wait for _, wait in (yield from awaits.of_item(*place))}
    begun = open_waits.get(body.step)
    kept = yield from kept_of(*place, body.signal)
    signal = first_signal_for(body.filter, kept)
    if signal is not None:
        yield Fetch(TAKE, (*place, signal.id, body.step))
        return (yield from _end(body, signal_result(signal), now))
    deadline = begun.deadline if begun is not None else None if body.timeout is None else now + body.timeout
    if deadline is not None and deadline <= now:
        return (yield from _end(body, TIMED_OUT, now))
    if begun is None:
        yield awaits.put(*place, body.signal, WaitingStep(step=body.step, filter=body.filter, deadline=deadline), now)
    return Awaited(deadline=deadline)


def _end(body: Await, result: bytes, now: Instant) -> Script[Awaited]:
    """End a wait by storing its result as the result of the step."""
    place = body.parcel, body.item
    yield Together([steps.put(*place, body.step, body.attempt, result, now), awaits.drop(*place, body.step)])
    return Awaited(result=Raw(result))


def send(parcel: UUID, item: int, signal: Signal, now: Instant) -> Script[SignalResult]:
    """Deliver a signal to the step that waits for it, or store it. After the verdict `moving` the caller tries again.

    A signal that is sent again, with the same id, is not delivered again. An execution that has ended takes no signals.
    """
    where = yield from _hold(parcel, item)
    if where == "final" or where == "moving" or where == "unknown":
        return SignalResult(where)
    known = yield Fetch(SENT, (parcel, item, signal.id))
    if known:
        return SignalResult("kept" if known[0][0] is None else "delivered")
    waits = [wait for name, wait in (yield from awaits.of_item(parcel, item)) if name == signal.name]
    chosen = first_wait_for(waits, signal)
    ((total, gone),) = yield Fetch(COUNT, (parcel, item))
    if chosen is None and total - gone >= MOST_KEPT:
        return SignalResult("full")
    row = (parcel, item, signal.id, signal.name, signal.payload, total, None if chosen is None else chosen.step, now)
    yield Insert("signals", SIGNALS, [row])
    if chosen is None:
        return SignalResult("kept")
    kept = steps.put(parcel, item, chosen.step, 0, signal_result(signal), now)
    yield Together([kept, awaits.drop(parcel, item, chosen.step)])
    woken = (yield Fetch(WAKE, (parcel, item, now))) if where == "waiting" else []
    return SignalResult("delivered", now if woken else None)


Location = Literal["waiting", "queued", "running", "final", "moving", "unknown"]


def _hold(parcel: UUID, item: int) -> Script[Location]:
    """Lock an execution on its shelf and return the shelf; return `moving` if another transaction is moving it."""
    for shelf, find in (("waiting", ON_WAITING), ("queued", ON_QUEUED)):
        if (yield Fetch(find, (parcel, item))):  # guard: signal-holds-execution
            return "waiting" if shelf == "waiting" else "queued"
    rows = yield Fetch(ON_RUNNING, (parcel, item))
    if rows:
        session = rows[0][0]
        yield from lock_sessions([session])  # guard: signal-locks-session
        rows = yield Fetch(ON_RUNNING, (parcel, item))
        return "running" if rows and rows[0][0] == session else "moving"  # guard: signal-looks-again
    if (yield Fetch(ON_HISTORY, (parcel, item))):
        return "final"
    return "moving" if (yield Fetch(EXISTS, (parcel, item))) else "unknown"
