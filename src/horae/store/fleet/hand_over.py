"""Hand over: what is accepted goes at once to exchanges that wait for it, in the one statement that accepts it.

A request without keys needs no answer of the store to decide where its executions come to lie. So everything is decided
beforehand, and changed on condition that nothing has moved: the jobs have the versions that were resolved, nobody holds
the lanes that something would be given out of, and the waiting exchanges' numbers are still free. Otherwise nothing
happens, and the request goes the long way. At rest an execution begins a commit and five round trips sooner; under load
nobody waits, and accepting is one round trip.
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

# Held until the commit: a deletion waits for it and then finds what was accepted, or comes first and is seen here.
UNMOVED = Statement(
    "unmoved_jobs",
    "SELECT j.id FROM given JOIN jobs j ON j.id = given.id WHERE j.version = given.version AND j.state <> 'deleted'"
    " AND j.rollout IS NULL FOR KEY SHARE OF j",
)
UNHELD = Statement(
    "unheld_lanes", f"SELECT given.lane FROM given WHERE {open_condition('given.lane', 'given.at', 'false')}"
)
# A session that somebody else holds has an exchange of its own under way.
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
    """A change that accepts requests, and what they are answered if it is made."""

    change: Provided
    submitted: SubmitResult


def draft(
    submissions: Sequence[Submission],
    takers: Sequence[WaitingExchange],
    paused: Collection[UUID],
    new_id: Callable[[], UUID],
    now: Instant,
) -> Draft | None:
    """Accept these requests and give what is due to the takers; None when something must be looked up first."""
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
    """The numbers before those that are taken, where they stand in each session's record."""
    rows = [(session, _place(channel), _NUMBER.pack(n - 1)) for session, (channel, n) in sorted(taken.items())]
    return ForEach(STILL_PARKED, (("id", "uuid"), ("place", "int"), ("before", "bytea")), rows)


def _after(taken: Mapping[UUID, Number], now: Instant) -> ForEach:
    rows = [(session, _place(channel), _NUMBER.pack(n), now) for session, (channel, n) in sorted(taken.items())]
    return ForEach(TAKE_NUMBER, (("id", "uuid"), ("place", "int"), ("n", "bytea"), ("at", "bigint")), rows)


def _place(channel: int) -> int:
    return 1 + channel * _NUMBER.size
