"""Rescue: the running slices of a session that has ended are queued again, or end."""

from random import Random
from uuid import UUID

from horae.env import Instant
from horae.model.admission.keys import LIMITED
from horae.model.executions.parcel import AT_MOST_ONCE
from horae.model.executions.settle import Settler, lost_outcome
from horae.model.executions.slice import RunningSlice, part
from horae.model.fleet.session import DETACHED, PRESENT
from horae.model.fleet.suspects import Loss
from horae.store.base import shelves
from horae.store.base.deferred import Deferred
from horae.store.definitions.jobs import definitions
from horae.store.executions.leaving import report
from horae.store.executions.leaving.effects import Effects, put_settled
from horae.store.executions.leaving.leave import follow_attempts
from horae.store.executions.leaving.stop_requests import Cancels, settle_cancelled, stops_of
from horae.store.fleet.exchange import lock_sessions
from horae.store.script import Fetch, ForEach, Script, Statement, Together
from horae.store.triggers.dependencies.starts import NewId

HELD_BY_SESSION = Statement(
    "held_by_session",
    f"SELECT {shelves.names(shelves.RUNNING, 'r.')}, {report.FEEDS}, p.job, p.version, p.delivery"
    " FROM running r JOIN parcels p ON p.id = r.parcel"
    " WHERE r.session = $1 ORDER BY r.parcel, r.lo LIMIT $2",
)
# `owns` reads the session's first slice in the order of the index. With a bare EXISTS, PostgreSQL may read all of
# `running` for a worker without slices.
WATCHED = Statement(
    "watched_sessions",
    "SELECT id, state, last_seen, owns FROM (SELECT s.id, s.state, s.last_seen, (SELECT r.lo FROM running r"
    " WHERE r.session = s.id ORDER BY r.parcel, r.lo LIMIT 1) IS NOT NULL AS owns FROM sessions s) AS watched"
    " WHERE state IN ('live', 'draining', 'detached', 'detached-draining') OR owns",
)
_LO, _HI = 1, 2  # positions of these columns in the row of a slice
END_SESSION = Statement("end_session", "UPDATE sessions SET state = $2, ended_at = $3 WHERE id = $1")


def mark_lost(session: UUID, last_seen: Instant, now: Instant) -> Script[bool]:
    """End a session that was silent for a full timeout; return False if it has ended or was seen since `last_seen`.

    A detached session is closed instead of lost, so that no loss is counted.
    """
    rows = yield ForEach(LOCK_SILENT, (("id", "uuid"),), [(session,)])
    if (
        not rows
        or rows[0][1] not in PRESENT  # guard: lost-once
        or rows[0][2] != last_seen  # guard: silent-since
    ):
        return False
    yield Fetch(END_SESSION, (session, "closed" if rows[0][1] in DETACHED else "lost", now))
    return True


LOCK_SILENT = Statement(
    "lock_silent_session",
    "SELECT s.id, s.state, s.last_seen FROM sessions s JOIN given ON s.id = given.id FOR NO KEY UPDATE OF s",
)


def rescue(
    session: UUID, limit: int, now: Instant, rng: Random, new_id: NewId, *, charge: bool = True
) -> Script[Effects | None]:
    """Take one batch of slices back from a session that has ended; return None while it is live.

    With `charge`, a loss is counted for each item. After a new epoch, or after the worker closed its session, no loss
    is counted.
    """
    locked = yield from lock_sessions([session])  # guard: rescue-locks-session
    row = locked.get(session)
    if row is None or row.is_present:  # guard: rescue-of-ended-session
        return None
    rows = yield Fetch(HELD_BY_SESSION, (session, limit + 2))
    alone = len(rows) == 1 and rows[0][_HI] - rows[0][_LO] == 1
    if len(rows) == limit + 2:  # leave at least two for the next batch: a single slice there would seem to be alone
        rows = rows[:limit]
    effects = Effects()
    if not rows:
        return effects
    cancels = (yield from stops_of(session)).cancels
    settler = Settler(row.worker, now, rng)
    held = [shelves.running(r) for r in rows]
    tries = yield from _loss_limits({(r[-3], r[-2]) for r in rows})
    for lost, r in zip(held, rows, strict=True):
        loss = Loss(slots=row.concurrency, alone=alone, tries=tries.get((r[-3], r[-2])))
        _give_up(settler, lost, r[-1], loss, cancels, charge)
        if lost.flags & LIMITED:
            effects.may_claim(lost)
        if r[report.FEEDS_AT]:
            effects.jobs_with_dependents.add(lost.job)
    fates = put_settled(settler.fates, row.worker, session, effects)
    gone = ForEach(report.FORGET_REQUESTS, report.RANGE, [(s.parcel, s.lo, s.hi) for s in held])
    yield Together([shelves.take("running", held), *fates, gone])  # guard: rescue-forgets-requests
    moves = Deferred()
    yield from follow_attempts(effects, moves, new_id, now)
    yield from moves.make()
    return effects


def _loss_limits(versions: set[tuple[UUID, int]]) -> Script[dict[tuple[UUID, int], int | None]]:
    """Return the number of retries after a lost worker, by version of a job; None if the job does not set it."""
    specs = yield from definitions(sorted(versions))
    return {version: report.policy_of(spec.decode()).budgets.lost for version, spec in specs.items()}


def _give_up(settler: Settler, lost: RunningSlice, delivery: int, loss: Loss, cancels: Cancels, charge: bool) -> None:
    """Settle a slice of an ended session: cancel items for which this was requested; the others are lost or released.

    Items that may run at most once are settled as lost even without `charge`.
    """
    nothing = lost_outcome(lost)
    for lo, hi in settle_cancelled(settler, lost, lost.lo, lost.hi, nothing, cancels):
        if charge or delivery == AT_MOST_ONCE:  # guard: lost-runs-once
            settler.lose(part(lost, lo, hi), delivery, loss)
        else:
            settler.release(lost, lo, hi, nothing)


def watched_sessions() -> Script[list[tuple[UUID, str, Instant, bool]]]:
    """Return the sessions that have not ended, and ended ones that still own slices: (id, state, last_seen, owns)."""
    rows = yield Fetch(WATCHED)
    return [(r[0], r[1], r[2], bool(r[3])) for r in rows]


def close(session: UUID, now: Instant) -> Script[bool]:
    """End the session of a worker that leaves; return False if it had ended before.

    The rescuer takes back slices that the session still holds, without counting a loss.
    """
    locked = yield from lock_sessions([session])  # guard: close-locks-session
    row = locked.get(session)
    if row is None or row.state not in PRESENT:  # guard: close-once
        return False
    yield Fetch(END_SESSION, (session, "closed", now))
    return True
