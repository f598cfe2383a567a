"""Full lanes: lanes whose limits have no room. Claims skip them until an execution ends or a rate allows a start.

Once a second the directory forgets all full lanes, so that claims try them again.
"""

from collections.abc import Iterable, Mapping

from horae.env import SECOND, Instant
from horae.model.admission.limits import Limit, namespace_limit, queue_limit
from horae.store.admission.lanes import Lane

SHORTEST = 0.005  # seconds: the shortest wait for a rate


class FullLanes:
    """The limits of lanes, and the lanes that have no room now."""

    def __init__(self) -> None:
        self.limits: Mapping[str, Limit] = {}
        self.freed_count = 0  # how many times room may have become free
        self._full: dict[int, tuple[int, tuple[str, ...]]] = {}  # lane -> its lowest rank and its limits
        self._opens_at: Instant | None = None  # when a rate allows the next start

    @property
    def lanes(self) -> frozenset[int]:
        """The lanes that have no room now."""
        return frozenset(self._full)

    def limits_of(self, lane: Lane) -> tuple[str, ...]:
        """Return the limits that apply to a lane."""
        if not self.limits:
            return ()
        names = (namespace_limit(lane.namespace), queue_limit(lane.queue))
        return tuple(name for name in names if name in self.limits)

    def mark_full(self, lane: Lane, low: int, opens_at: Instant | None) -> None:
        """Record that a claim found no room for the executions of a lane; `low` is the lane's lowest rank.

        `opens_at` is the time at which a rate allows the next start; None if no rate is the reason.
        """
        self._full[lane.id] = (low, self.limits_of(lane))
        if opens_at is not None:
            self._opens_at = opens_at if self._opens_at is None else min(opens_at, self._opens_at)

    def pop_freed(self, lanes: Iterable[Lane]) -> dict[int, int]:
        """Remove full lanes that share a limit with one of these lanes, as they may have room now.

        Return the removed lanes with their lowest ranks.
        """
        names = {name for lane in lanes for name in self.limits_of(lane)}
        if not names:
            return {}
        self.freed_count += 1
        found = {lane_id: low for lane_id, (low, own_limits) in self._full.items() if not names.isdisjoint(own_limits)}
        for lane_id in found:
            del self._full[lane_id]
        return found

    def clear(self) -> None:
        """Remove all full lanes."""
        self._full.clear()
        self._opens_at = None

    def wait(self, most: float, now: Instant) -> float:
        """Return the seconds until a rate allows the next start, at most `most`."""
        if self._opens_at is None:
            return most
        return min(most, max(SHORTEST, (self._opens_at - now) / SECOND))
