"""Counts of queued executions, for users; the engine itself never counts them."""

from msgspec import Struct

from horae.env import Instant
from horae.store.script import Fetch, Script, Statement

DEPTHS = Statement("depths", "SELECT lane, sum(hi - lo) FROM queued WHERE namespace = $1 GROUP BY lane")
ALL_DEPTHS = Statement(
    "all_depths",
    "SELECT q.id, q.namespace, q.name, coalesce(d.items, 0), d.since FROM queues q LEFT JOIN"
    " (SELECT l.queue, sum(o.items) AS items, min(o.since) AS since FROM"
    " (SELECT lane, sum(hi - lo) AS items, min(queued_at) AS since FROM queued GROUP BY lane) o"
    " JOIN lanes l ON l.id = o.lane GROUP BY l.queue) d ON d.queue = q.id ORDER BY q.id",
)
NAMES = Statement("names_of_namespaces", "SELECT id, name FROM namespaces WHERE state <> 'deleted' ORDER BY id")


class Depth(Struct, frozen=True):
    """A queue with the number of its queued executions."""

    queue: int
    namespace: int
    name: str
    items: int
    since: Instant | None  # when the oldest of them was queued


def depths(namespace: int) -> Script[dict[int, int]]:
    """Return the number of queued executions of a namespace by lane."""
    return {lane: int(count) for lane, count in (yield Fetch(DEPTHS, (namespace,)))}


def all_depths() -> Script[list[Depth]]:
    """Return the depths of all queues of all namespaces, including empty queues."""
    return [
        Depth(queue, space, name, int(items), since) for queue, space, name, items, since in (yield Fetch(ALL_DEPTHS))
    ]


def names() -> Script[dict[int, str]]:
    """Return the names of namespaces by id."""
    return dict((yield Fetch(NAMES)))
