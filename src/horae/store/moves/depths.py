"""How much is queued, for people; the engine itself never counts."""

from horae.env import Instant
from horae.store.script import Fetch, Script, Statement

DEPTHS = Statement("depths", "SELECT lane, sum(hi - lo) FROM queued WHERE namespace = $1 GROUP BY lane")
ALL_DEPTHS = Statement("all_depths", "SELECT lane, sum(hi - lo), min(queued_at) FROM queued GROUP BY lane")


def depths(namespace: int) -> Script[dict[int, int]]:
    """Queued executions by lane."""
    return {lane: int(count) for lane, count in (yield Fetch(DEPTHS, (namespace,)))}


def all_depths() -> Script[dict[int, tuple[int, Instant]]]:
    """The same of all namespaces, each with since when the oldest is queued."""
    return {lane: (int(count), since) for lane, count, since in (yield Fetch(ALL_DEPTHS))}
