"""Hand over: one statement accepts executions and grants them to waiting exchanges.

For a request without keys, the place of its executions can be decided without reading the store. So everything is
decided in advance, and written on three conditions: the jobs have the resolved versions, the lanes of the grants have
no hold, and the numbers of the waiting exchanges are still free. If one of them fails, nothing is written, and the
request is submitted the usual way. On an idle server, an execution begins one commit and five round trips sooner. On a
busy server no exchange waits, and accepting takes one round trip.
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

# Held until the commit: a deletion of the job waits for it and then finds the executions, or it is seen here.
UNMOVED = Statement(
    "unmoved_jobs",
    "SELECT j.id FROM given JOIN jobs j ON j.id = given.id WHERE j.version = given.version AND j.state <> 'deleted'"
    " AND j.rollout IS NULL FOR KEY SHARE OF j",
)
UNHELD = Statement(
    "unheld_lanes", f"SELECT given.lane FROM given WHERE {open_condition('given.lane', 'given.at', 'false')}"
)
# A session that another transaction has locked has an exchange under way.
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
    """A change that accepts requests, and their answers if it is made."""

    change: Provided
    submitted: SubmitResult


def draft(
    submissions: Sequence[Submission],
    takers: Sequence[WaitingExchange],
    paused: Collection[UUID],
    new_id: Callable[[], UUID],
    now: Instant,
) -> Draft | None:
    """Draft the change that accepts these requests and grants due items to the takers.

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
                _before(taken),
            ],
            [
                insert_parcels(placed.parcels),
                shelves.put_queued(left),
                shelves.put_waiting(later),
                start_running(running),
                *insert_timeouts(placed.parcels),
                _after(taken, now),
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


def _before(taken: Mapping[UUID, Number]) -> ForEach:
    """Return the condition that the taken numbers are the next ones of their sessions' channels."""
    rows = [(session, _place(channel), _NUMBER.pack(n - 1)) for session, (channel, n) in sorted(taken.items())]
    return ForEach(STILL_PARKED, (("id", "uuid"), ("place", "int"), ("before", "bytea")), rows)


def _after(taken: Mapping[UUID, Number], now: Instant) -> ForEach:
    rows = [(session, _place(channel), _NUMBER.pack(n), now) for session, (channel, n) in sorted(taken.items())]
    return ForEach(TAKE_NUMBER, (("id", "uuid"), ("place", "int"), ("n", "bytea"), ("at", "bigint")), rows)


def _place(channel: int) -> int:
    return 1 + channel * _NUMBER.size
