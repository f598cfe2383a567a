"""Queues and lanes: where executions stand in line."""

from uuid import UUID

import msgspec
from msgspec import Struct, structs

from horae.env import Instant
from horae.model.policy import Policy
from horae.model.queue import Queue, QueueSpec
from horae.store.script import Fetch, Row, Script, Statement

_QUEUE = "id, namespace, name, policy, spec, state, is_default, revision, ranked"
QUEUES = Statement("queues", f"SELECT {_QUEUE} FROM queues ORDER BY id")
LANES = Statement("lanes", "SELECT id, namespace, queue, needs, share FROM lanes ORDER BY id")
ADD_QUEUE = Statement(
    "add_queue",
    "INSERT INTO queues (namespace, name, policy, state, created_at) VALUES ($1, $2, $3, 'active', $4)"
    " ON CONFLICT (namespace, name) DO NOTHING",
)
ADD_LANE = Statement(
    "add_lane",
    "INSERT INTO lanes (namespace, queue, needs, share) VALUES ($1, $2, $3, $4)"
    " ON CONFLICT (queue, needs, share) DO NOTHING",
)
QUEUE = Statement("queue", f"SELECT {_QUEUE} FROM queues WHERE namespace = $1 AND name = $2")
LANE = Statement(
    "lane", "SELECT id, namespace, queue, needs, share FROM lanes WHERE queue = $1 AND needs = $2 AND share = $3"
)
REVISIONS = Statement("queue_revisions", "SELECT count(*), coalesce(sum(revision), 0) FROM queues")
# A skip scan: one index probe per lane that has something, however long the lanes are.
OCCUPIED = Statement(
    "occupied_lanes",
    "WITH RECURSIVE heads(lane) AS (SELECT min(lane) FROM queued UNION ALL"
    " SELECT (SELECT min(q.lane) FROM queued q WHERE q.lane > heads.lane) FROM heads WHERE heads.lane IS NOT NULL)"
    " SELECT lane, (SELECT min(q.rank) FROM queued q WHERE q.lane = heads.lane) FROM heads WHERE lane IS NOT NULL",
)
PAUSED_JOBS = Statement("paused_jobs", "SELECT id FROM jobs WHERE state = 'paused'")


class Lane(Struct, frozen=True):
    """The part of a queue that every claim treats alike."""

    id: int
    namespace: int
    queue: int
    needs: frozenset[str]
    share: str


class Directory(Struct, frozen=True):
    """All queues and lanes."""

    queues: list[Queue]
    lanes: list[Lane]


_read_policy = msgspec.json.Decoder(Policy).decode
_read_spec = msgspec.json.Decoder(QueueSpec).decode


def read_queue(row: Row) -> Queue:
    spec = structs.replace(_read_spec(row[4]), policy=_read_policy(row[3]))
    return Queue(
        id=row[0], namespace=row[1], name=row[2], spec=spec, state=row[5], is_default=bool(row[6]), revision=row[7],
        ranked=row[8],
    )  # fmt: skip


def read_lane(row: Row) -> Lane:
    return Lane(row[0], row[1], row[2], frozenset(msgspec.json.decode(row[3])), row[4])


def directory() -> Script[Directory]:
    """All queues and lanes. Lanes first: a queue that is made meanwhile has one, and is read after it."""
    lanes = yield Fetch(LANES)
    queues = yield Fetch(QUEUES)
    return Directory([read_queue(row) for row in queues], [read_lane(row) for row in lanes])


def revisions() -> Script[tuple[int, int]]:
    """What changes whenever a queue is made or changed."""
    count, total = (yield Fetch(REVISIONS))[0]
    return int(count), int(total)


def ensure_lane(
    namespace: int, queue: str, needs: tuple[str, ...], share: str, now: Instant
) -> Script[tuple[Queue, Lane]]:
    """Find or make a queue and one of its lanes. Concurrent makers meet in one row."""
    policy = msgspec.json.encode(Policy()).decode()
    yield Fetch(ADD_QUEUE, (namespace, queue, policy, now))
    q = (yield Fetch(QUEUE, (namespace, queue)))[0]
    text = msgspec.json.encode(sorted(needs)).decode()
    yield Fetch(ADD_LANE, (namespace, q[0], text, share))
    lane = (yield Fetch(LANE, (q[0], text, share)))[0]
    return read_queue(q), read_lane(lane)


def occupied() -> Script[dict[int, int]]:
    """The lanes that have something queued, with their least rank."""
    rows = yield Fetch(OCCUPIED)
    return {lane: rank for lane, rank in rows if rank is not None}


def paused_jobs() -> Script[frozenset[UUID]]:
    rows = yield Fetch(PAUSED_JOBS)
    return frozenset(row[0] for row in rows)
