"""Queues and lanes, in which executions wait to be claimed."""

from uuid import UUID

import msgspec
from msgspec import Struct, structs

from horae.env import Instant
from horae.model.admission.policy import PRIORITY, decode_policy
from horae.model.admission.queue import Queue, QueueSpec
from horae.store.script import Fetch, Row, Script, Statement

_QUEUE = "id, namespace, name, policy, spec, state, is_default, revision, ranked"
QUEUES = Statement("queues", f"SELECT {_QUEUE} FROM queues ORDER BY id")
LANES = Statement("lanes", "SELECT id, namespace, queue, needs, share FROM lanes ORDER BY id")
# The policy of a new queue is the default of its namespace if it has one, otherwise the given policy.
ADD_QUEUE = Statement(
    "add_queue",
    "INSERT INTO queues (namespace, name, policy, state, created_at) VALUES"
    " ($1, $2, COALESCE((SELECT n.policy FROM namespaces n WHERE n.id = $1), $3), 'active', $4)"
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
NAMESPACES = Statement(
    "weights_of_namespaces",
    "SELECT id, name, weight, updated_at FROM namespaces WHERE state <> 'deleted' ORDER BY id",
)
REVISIONS = Statement(
    "queue_revisions",
    "SELECT count(*), coalesce(sum(revision), 0),"
    " (SELECT coalesce(max(updated_at), 0) FROM namespaces WHERE state <> 'deleted') FROM queues",
)
# A skip scan: it jumps from one lane to the next by an index, so its cost does not depend on the length of lanes.
OCCUPIED = Statement(
    "occupied_lanes",
    "WITH RECURSIVE heads(lane) AS (SELECT min(lane) FROM queued UNION ALL"
    " SELECT (SELECT min(q.lane) FROM queued q WHERE q.lane > heads.lane) FROM heads WHERE heads.lane IS NOT NULL)"
    " SELECT lane, (SELECT min(q.rank) FROM queued q WHERE q.lane = heads.lane) FROM heads WHERE lane IS NOT NULL",
)
PAUSED_JOBS = Statement("paused_jobs", "SELECT id FROM jobs WHERE state = 'paused'")


DEFAULT_POLICY = msgspec.json.encode(PRIORITY).decode()  # the policy of a queue for which a user has set none


class Lane(Struct, frozen=True):
    """The part of a queue that every claim treats alike."""

    id: int
    namespace: int
    queue: int
    needs: frozenset[str]
    share: str


class Tenant(Struct, frozen=True):
    """The data of a namespace that every server caches."""

    id: int
    name: str
    weight: float
    updated_at: Instant


class Directory(Struct, frozen=True):
    """All queues, lanes and namespaces."""

    queues: list[Queue]
    lanes: list[Lane]
    namespaces: list[Tenant]


def read_queue(row: Row) -> Queue:
    rest = {name: value for name, value in msgspec.json.decode(row[4]).items() if name != "policy"}
    spec = structs.replace(msgspec.convert(rest, QueueSpec), policy=decode_policy(row[3]))
    return Queue(
        id=row[0], namespace=row[1], name=row[2], spec=spec, state=row[5], is_default=bool(row[6]), revision=row[7],
        ranked=row[8],
    )  # fmt: skip


def read_lane(row: Row) -> Lane:
    return Lane(row[0], row[1], row[2], frozenset(msgspec.json.decode(row[3])), row[4])


def directory() -> Script[Directory]:
    """Return all queues, lanes and namespaces.

    Lanes are read before queues, so that the queue of each lane is found even if both were created meanwhile.
    """
    lanes = yield Fetch(LANES)
    queues = yield Fetch(QUEUES)
    tenants = yield Fetch(NAMESPACES)
    known = {row[0] for row in queues}  # leave out lanes of queues that were deleted meanwhile, with their namespace
    return Directory(
        [read_queue(row) for row in queues],
        [read_lane(row) for row in lanes if row[2] in known],
        [Tenant(*row) for row in tenants],
    )


def revisions() -> Script[tuple[int, int, int]]:
    """Return three numbers; at least one of them changes whenever a queue or namespace is created or changed."""
    count, total, changed = (yield Fetch(REVISIONS))[0]
    return int(count), int(total), int(changed)


def ensure_lane(
    namespace: int, queue: str, needs: tuple[str, ...], share: str, now: Instant
) -> Script[tuple[Queue, Lane]]:
    """Return a queue and one of its lanes; create them if they do not exist.

    Concurrent transactions that create the same ones get the same rows.
    """
    yield Fetch(ADD_QUEUE, (namespace, queue, DEFAULT_POLICY, now))
    q = (yield Fetch(QUEUE, (namespace, queue)))[0]
    text = msgspec.json.encode(sorted(needs)).decode()
    yield Fetch(ADD_LANE, (namespace, q[0], text, share))
    lane = (yield Fetch(LANE, (q[0], text, share)))[0]
    return read_queue(q), read_lane(lane)


def occupied_lanes() -> Script[dict[int, int]]:
    """Return the lanes that have queued slices, each with its least rank."""
    rows = yield Fetch(OCCUPIED)
    return {lane: rank for lane, rank in rows if rank is not None}


def paused_jobs() -> Script[frozenset[UUID]]:
    rows = yield Fetch(PAUSED_JOBS)
    return frozenset(row[0] for row in rows)
