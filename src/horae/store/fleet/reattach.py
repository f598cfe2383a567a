"""Re-attachment: a session continues after a failover of the store.

A worker and the new primary may know different things: with asynchronous replication, the last commits are lost. So the
worker names the items that it holds and the last answered exchange of each channel, and both agree again.
"""

import struct
from collections.abc import Mapping, Sequence
from random import Random
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.model.definitions.retry import RetryPolicy
from horae.model.executions.slice import ItemRange, RunningSlice, gaps, match_ranges
from horae.model.fleet.protocol import CHANNELS, Exchange, Outcome, Range, Reattach, ReportedFailure
from horae.model.fleet.session import DETACHED
from horae.store.base import shelves
from horae.store.base.deferred import Deferred
from horae.store.executions.leaving import report
from horae.store.executions.leaving.effects import Effects
from horae.store.fleet.exchange import IncomingExchange, lock_sessions
from horae.store.fleet.sessions import HOLD_EPOCH
from horae.store.script import Fetch, Script, Statement
from horae.store.triggers.dependencies.starts import NewId

HELD = Statement(
    "held_by_detached",
    f"SELECT {shelves.names(shelves.RUNNING)} FROM running WHERE session = $1 ORDER BY parcel, lo",
)
ATTACH = Statement(
    "attach_session", "UPDATE sessions SET state = $2, epoch = $3, seen = $4, last_seen = $5 WHERE id = $1"
)
_NUMBERS = struct.Struct(f"<{CHANNELS}q")
END_LOST = ReportedFailure(
    type="OutcomeLost",
    message="The outcome of this execution was lost in a failover of the store, and it may run at most once.",
    kind="platform",
)


class Reattachment(Struct, frozen=True):
    """The epoch of the re-attached session, the ranges to stop, and the effects on the other items."""

    epoch: int
    stop: list[Range]
    effects: Effects


def reattach(
    session: UUID,
    body: Reattach,
    policies: Mapping[tuple[UUID, int], RetryPolicy],
    now: Instant,
    rng: Random,
    new_id: NewId,
) -> Script[Reattachment | None]:
    """Make a detached session live again, in the present epoch; return None if it has ended.

    Running items that the worker holds go on. The others go back to the queue, without a charge; those that may run at
    most once and have reached the worker fail. Repeated for a live session, it changes nothing.
    """
    epoch = int((yield Fetch(HOLD_EPOCH))[0][0])
    row = (yield from lock_sessions([session])).get(session)
    if row is None or not row.is_present:  # guard: reattach-present
        return None
    running = [shelves.running(found) for found in (yield Fetch(HELD, (session,)))]
    held = match_ranges(running, [ItemRange(r.parcel, r.lo, r.hi, r.attempt) for r in body.held])
    stop = [Range(parcel=m.parcel, lo=m.lo, hi=m.hi, attempt=m.attempt) for m in held.missed]
    if row.state not in DETACHED:  # guard: reattach-once
        return Reattachment(epoch, stop, Effects())
    missing = _missing(running, held.hits, body.answered)
    entry = IncomingExchange(
        session=session, exchange=Exchange(channel=0, n=1, outcomes=missing), lanes=frozenset(), patient=False
    )
    moves = Deferred()
    effects = yield from report.settle([entry], {session: row}, policies, moves, now, rng, new_id)
    moves.add([effects.queue(effects.newborn)])
    yield from moves.make()
    yield Fetch(ATTACH, (session, DETACHED[row.state], epoch, _NUMBERS.pack(*body.answered), now))
    return Reattachment(epoch, stop, effects)


def _missing(
    running: Sequence[RunningSlice], hits: Sequence[tuple[RunningSlice, int, int, int]], answered: Sequence[int]
) -> list[Outcome]:
    """Return outcomes that hand back the running items that the worker does not hold."""
    kept: dict[tuple[UUID, int], list[tuple[int, int]]] = {}
    for held, _, lo, hi in hits:
        kept.setdefault((held.parcel, held.lo), []).append((lo, hi))
    return [
        _handed_back(one, lo, hi, answered)
        for one in running
        for lo, hi in gaps(one.lo, one.hi, kept.get((one.parcel, one.lo), ()))
    ]


def _handed_back(one: RunningSlice, lo: int, hi: int, answered: Sequence[int]) -> Outcome:
    """Hand back items. If the worker got them, they may have run, so that their start is reported, too."""
    arrived = one.n <= answered[one.channel]
    return Outcome(
        parcel=one.parcel, lo=lo, hi=hi, attempt=one.attempt, outcome="released",
        started_at=[one.granted_at] if arrived else [], error=END_LOST if arrived else None,
    )  # fmt: skip
