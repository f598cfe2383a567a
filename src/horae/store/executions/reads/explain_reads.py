"""Reads of `explain`: the position of an execution, the executions ahead of it, and the latest fires of a job."""

from collections.abc import Collection, Sequence
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.model.base.ids import execution_id
from horae.model.fleet.suspects import SUSPECT
from horae.store.base import shelves
from horae.store.script import Among, Fetch, Script, Statement

MOST_ROWS = 5_000  # slices ahead of an execution that are read at most


def _slice(shelf: str, alias: str) -> str:
    first = f"SELECT max(x.lo) FROM {shelf} x WHERE x.parcel = p.id AND x.lo <= $2"
    return f" LEFT JOIN {shelf} {alias} ON {alias}.parcel = p.id AND {alias}.lo = ({first}) AND {alias}.hi > $2"


PLACE = Statement(
    "place_of_execution",
    "SELECT p.lane, p.keys, w.gate, q.lane, q.rank, q.lo FROM parcels p"
    f"{_slice('waiting', 'w')}{_slice('queued', 'q')} WHERE p.id = $1",
)
AHEAD = Statement(
    "queued_before",
    "SELECT a.job, sum(a.items), count(*) FROM (SELECT q.job, q.hi - q.lo AS items FROM queued q WHERE q.lane = $1"
    " AND q.rank <= $2 AND (q.rank < $2 OR (q.parcel, q.lo) < ($3, $4)) ORDER BY q.lane, q.rank, q.parcel, q.lo"
    " LIMIT $5) a GROUP BY a.job",
)
HELD_BY = Statement(
    "running_of_sessions", "SELECT job, hi - lo, granted_at FROM running WHERE session = ANY($1) LIMIT 5000"
)
SUSPECTS = Statement(
    "suspects_held", "SELECT session, sum(hi - lo), max(losses) FROM running WHERE session = ANY($1)"
    f" AND losses >= {SUSPECT} GROUP BY session",
)  # fmt: skip
HOLDER = Statement(
    "holder_of_turn",
    f"SELECT h.parcel, h.lo FROM holders h WHERE h.key = $1 AND {shelves.is_live('h.parcel', 'h.lo')}",
)
LAST_DECISION = Statement(
    "last_decision_of_job",
    "SELECT g.name, f.last, f.disposition, f.cause FROM triggers g JOIN fires f ON f.trigger_id = g.id"
    " AND f.last = (SELECT max(x.last) FROM fires x WHERE x.trigger_id = g.id) WHERE g.job = $1 AND f.last > $2"
    " ORDER BY f.last DESC LIMIT 1",
)
LAST_EVENT_DECISION = Statement(
    "last_event_decision_of_job",
    "SELECT g.name, f.at, f.disposition, f.cause FROM event_fires f JOIN triggers g ON g.id = f.trigger_id"
    " WHERE f.job = $1 AND f.at > $2 ORDER BY f.at DESC LIMIT 1",
)
OLDEST = Statement(
    "pending_of_job",
    "SELECT parcel, lo FROM queued WHERE job = $1 UNION ALL SELECT parcel, lo FROM waiting WHERE job = $1"
    " ORDER BY 1, 2 LIMIT $2",
)


class ExecutionPosition(Struct, frozen=True, kw_only=True):
    """The position of an execution: its lane, and the gate at which it waits or its rank in the queue."""

    lane: int
    keys: str | None = None
    gate: str | None = None
    rank: int | None = None  # None when it is not queued
    lo: int = 0  # the first item of its slice, when it is queued


class FireDecision(Struct, frozen=True):
    """A fire in the ledger: its trigger and instant, the decision about it, and the cause of the decision."""

    trigger: str
    at: Instant
    disposition: str
    cause: str


class QueueAhead(Struct, frozen=True):
    """The number of executions ahead of an execution, by job; `whole` is false when there are more than were read."""

    jobs: dict[UUID, int]
    whole: bool = True

    @property
    def count(self) -> int:
        return sum(self.jobs.values())


def position_of(parcel: UUID, item: int) -> Script[ExecutionPosition]:
    """Return the present position of an execution; an empty one if the execution was deleted meanwhile."""
    rows = yield Fetch(PLACE, (parcel, item))
    if not rows:
        return ExecutionPosition(lane=0)
    lane, keys, gate, queued_lane, rank, lo = rows[0]
    return ExecutionPosition(
        lane=lane if queued_lane is None else queued_lane, keys=keys, gate=gate, rank=rank, lo=lo or 0
    )


def queue_ahead(lanes: Collection[int], rank: int, parcel: UUID, lo: int) -> Script[QueueAhead]:
    """Return the executions that are ahead of a slice in these lanes, because their rank is lower."""
    jobs: dict[UUID, int] = {}
    left = MOST_ROWS
    for lane in sorted(lanes):
        for job, items, rows in (yield Fetch(AHEAD, (lane, rank, parcel, lo, left))):
            jobs[job] = jobs.get(job, 0) + int(items)
            left -= rows
        if left <= 0:
            return QueueAhead(jobs, whole=False)
    return QueueAhead(jobs)


def held_by(sessions: Sequence[UUID]) -> Script[list[tuple[UUID, int, Instant]]]:
    """Return the slices that sessions hold: (job, number of items, instant of the grant)."""
    rows = yield Among(HELD_BY, sorted(sessions))
    return [(row[0], int(row[1]), row[2]) for row in rows]


def suspects_in(sessions: Sequence[UUID]) -> Script[dict[UUID, tuple[int, int]]]:
    """Return, for each session that holds suspects, the number of the suspects and the most losses of one."""
    rows = yield Among(SUSPECTS, sorted(sessions))
    return {row[0]: (int(row[1]), row[2]) for row in rows}


def holder_of(key: str) -> Script[UUID | None]:
    """Return the execution that has the turn of a key and has not ended; None if there is none."""
    rows = yield Fetch(HOLDER, (key,))
    return execution_id(rows[0][0], rows[0][1]) if rows else None


def last_decision(job: UUID, since: Instant) -> Script[FireDecision | None]:
    """Return the newest fire of a job's triggers after an instant, by time or by an event."""
    found = []
    for statement in (LAST_DECISION, LAST_EVENT_DECISION):
        found += yield Fetch(statement, (job, since))
    return max((FireDecision(*row) for row in found), key=lambda one: one.at, default=None)


def pending_of(job: UUID, limit: int) -> Script[list[tuple[UUID, int]]]:
    """Return the first item (parcel, lo) of each of a job's oldest slices on `queued` and `waiting`."""
    rows = yield Fetch(OLDEST, (job, limit))
    return [(row[0], row[1]) for row in rows]
