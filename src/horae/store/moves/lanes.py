"""Queues and lanes: where executions stand in line."""

from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.model.rank import Policy
from horae.store.script import Fetch, Script, Statement

QUEUES = Statement("queues", "SELECT id, namespace, name, policy, state FROM queues ORDER BY id")
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
QUEUE = Statement("queue", "SELECT id, namespace, name, policy, state FROM queues WHERE namespace = $1 AND name = $2")
LANE = Statement(
    "lane", "SELECT id, namespace, queue, needs, share FROM lanes WHERE queue = $1 AND needs = $2 AND share = $3"
)
# A skip scan: one index probe per lane that has something, however long the lanes are.
OCCUPIED = Statement(
    "occupied_lanes",
    "WITH RECURSIVE heads(lane) AS (SELECT min(lane) FROM queued UNION ALL"
    " SELECT (SELECT min(q.lane) FROM queued q WHERE q.lane > heads.lane) FROM heads WHERE heads.lane IS NOT NULL)"
    " SELECT lane, (SELECT min(q.rank) FROM queued q WHERE q.lane = heads.lane) FROM heads WHERE lane IS NOT NULL",
)
PAUSED_JOBS = Statement("paused_jobs", "SELECT id FROM jobs WHERE state = 'paused'")


class Queue(Struct, frozen=True):
    """A named queue with its policy."""

    id: int
    namespace: int
    name: str
    policy: Policy
    state: str


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


def directory() -> Script[Directory]:
    queues = yield Fetch(QUEUES)
    lanes = yield Fetch(LANES)
    return Directory(
        [Queue(r[0], r[1], r[2], msgspec.json.decode(r[3], type=Policy), r[4]) for r in queues],
        [Lane(r[0], r[1], r[2], frozenset(msgspec.json.decode(r[3])), r[4]) for r in lanes],
    )


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
    return (
        Queue(q[0], q[1], q[2], msgspec.json.decode(q[3], type=Policy), q[4]),
        Lane(lane[0], lane[1], lane[2], frozenset(msgspec.json.decode(lane[3])), lane[4]),
    )


def occupied() -> Script[dict[int, int]]:
    """The lanes that have something queued, with their least rank."""
    rows = yield Fetch(OCCUPIED)
    return {lane: rank for lane, rank in rows if rank is not None}


def paused_jobs() -> Script[frozenset[UUID]]:
    rows = yield Fetch(PAUSED_JOBS)
    return frozenset(row[0] for row in rows)
