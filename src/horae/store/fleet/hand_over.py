"""Hand-over: one statement accepts executions and grants them to waiting exchanges.

If a request has no keys, it can be decided without reading the store whether its executions are granted, queued or
wait. So all rows are prepared in advance, and are written only on three conditions: the jobs have the versions to which
the request was resolved, the lanes of the grants have no hold, and the numbers of the waiting exchanges are still free.
If a condition fails, nothing is written, and the request is submitted the usual way. On an idle server, an execution
begins one commit and five round trips sooner. On a busy server no exchange waits, and acceptance takes one round trip.
"""

import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.model.executions.submission import Submission, SubmitResult
from horae.store.admission.coarse import open_condition
from horae.store.base import shelves
from horae.store.executions.entering.submit import draft_placement
from horae.store.executions.parcels import (
    assign_shelves,
    first_wake,
    insert_parcels,
    insert_timeouts,
    is_keyed,
    least_ranks,
)
from horae.store.fleet.exchange import WaitingExchange
from horae.store.fleet.grants import deal_unqueued, start_running
from horae.store.script import ForEach, Provided, Statement

# The row of the job stays locked until the commit. So a deletion of the job either waits for the commit and then finds
# the executions, or has been committed before and is seen here.
UNMOVED = Statement(
    "unmoved_jobs",
    "SELECT j.id FROM given JOIN jobs j ON j.id = given.id WHERE j.version = given.version AND j.state <> 'deleted'"
    " AND j.rollout IS NULL FOR KEY SHARE OF j",
)
UNHELD = Statement(
    "unheld_lanes", f"SELECT given.lane FROM given WHERE {open_condition('given.lane', 'given.at', 'false')}"
)
# SKIP LOCKED: a session that another transaction has locked has another exchange in progress.
STILL_PARKED = Statement(
    "still_parked",
    "SELECT s.id FROM given JOIN sessions s ON s.id = given.id WHERE s.state = 'live'"
    " AND substr(s.seen, given.place, 8) = given.before FOR NO KEY UPDATE OF s SKIP LOCKED",
)
TAKE_NUMBER = Statement(
    "take_number",
    "UPDATE sessions SET last_seen = given.at, seen = CAST(substr(seen, 1, given.place - 1) || given.n"
    " || substr(seen, given.place + 8) AS bytea) FROM given WHERE sessions.id = given.id",
)
_NUMBER = struct.Struct("<q")
Number = tuple[int, int]  # channel and n


class Draft(Struct, frozen=True):
    """A conditional change that accepts requests, and the answers to them if its conditions are met."""

    change: Provided
    submitted: SubmitResult


def draft(
    submissions: Sequence[Submission],
    takers: Sequence[WaitingExchange],
    paused: Collection[UUID],
    new_id: Callable[[], UUID],
    now: Instant,
) -> Draft | None:
    """Draft the change that accepts these requests and grants due items to `takers`, which are waiting exchanges.

    Return None when the store has to be read first.
    """
    if any(s.idempotency or any(e.patience is not None for e in s.executions) for s in submissions):
        return None
    placed = draft_placement(list(enumerate(submissions)), new_id, now)
    if placed is None or not placed.parcels or any(is_keyed(p) for p, _ in placed.parcels):
        return None
    ready, later = assign_shelves(placed.parcels, now)
    eligible = {taker.want.session: taker.lanes for taker in takers}
    running, left = deal_unqueued(ready, [taker.want for taker in takers], eligible, paused, now)
    versions = sorted({(p.envelope.job, p.envelope.version) for p, _ in placed.parcels})
    lanes = sorted({granted.lane for granted in running})
    taken = {granted.session: (granted.channel, granted.n) for granted in running}
    return Draft(
        Provided(
            [
                ForEach(UNMOVED, (("id", "uuid"), ("version", "int")), versions),
                ForEach(UNHELD, (("lane", "int"), ("at", "bigint")), [(lane, now) for lane in lanes]),
                _if_numbers_are_next(taken),
            ],
            [
                insert_parcels(placed.parcels),
                shelves.put_queued(left),
                shelves.put_waiting(later),
                start_running(running),
                *insert_timeouts(placed.parcels),
                _take_numbers(taken, now),
            ],
        ),
        SubmitResult(
            [placed.answers[i] for i in range(len(submissions))],
            [p for p, _ in placed.parcels],
            least_ranks(left),
            first_wake(later),
            running,
        ),
    )


def _if_numbers_are_next(taken: Mapping[UUID, Number]) -> ForEach:
    """Return the condition that the taken numbers are the next numbers of their sessions and channels."""
    rows = [(session, _place(channel), _NUMBER.pack(n - 1)) for session, (channel, n) in sorted(taken.items())]
    return ForEach(STILL_PARKED, (("id", "uuid"), ("place", "int"), ("before", "bytea")), rows)


def _take_numbers(taken: Mapping[UUID, Number], now: Instant) -> ForEach:
    rows = [(session, _place(channel), _NUMBER.pack(n), now) for session, (channel, n) in sorted(taken.items())]
    return ForEach(TAKE_NUMBER, (("id", "uuid"), ("place", "int"), ("n", "bytea"), ("at", "bigint")), rows)


def _place(channel: int) -> int:
    """Return the position, counted from 1, at which the column `seen` has the last number of a channel."""
    return 1 + channel * _NUMBER.size
