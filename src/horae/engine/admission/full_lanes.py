"""Lanes whose limits have no room: they are not looked at until something ends that used it, or a rate lets more start.

A scan once a second looks at all of them, whatever was heard.
"""

from collections.abc import Iterable, Mapping

from horae.env import SECOND, Instant
from horae.model.admission.limits import Limit, namespace_limit, queue_limit
from horae.store.admission.lanes import Lane

SHORTEST = 0.005  # seconds between looks at a rate


class FullLanes:
    """Which lanes have limits, and which of those have no room now."""

    def __init__(self) -> None:
        self.limits: Mapping[str, Limit] = {}
        self.frees = 0  # how often something may have freed room
        self._full: dict[int, tuple[int, tuple[str, ...]]] = {}  # the least rank of each, and its limits
        self._opens_at: Instant | None = None

    @property
    def lanes(self) -> frozenset[int]:
        """Those that have no room now."""
        return frozenset(self._full)

    def names(self, lane: Lane) -> tuple[str, ...]:
        """The limits that a lane is under."""
        if not self.limits:
            return ()
        names = (namespace_limit(lane.namespace), queue_limit(lane.queue))
        return tuple(name for name in names if name in self.limits)

    def shut(self, lane: Lane, low: int, opens_at: Instant | None) -> None:
        """A claim found no room for what a lane has."""
        self._full[lane.id] = (low, self.names(lane))
        if opens_at is not None:
            self._opens_at = opens_at if self._opens_at is None else min(opens_at, self._opens_at)

    def freed(self, lanes: Iterable[Lane]) -> dict[int, int]:
        """Something of these lanes has ended, or came: those under the same limits, which may have room now."""
        names = {name for lane in lanes for name in self.names(lane)}
        if not names:
            return {}
        self.frees += 1
        found = {id: low for id, (low, mine) in self._full.items() if not names.isdisjoint(mine)}
        for id in found:
            del self._full[id]
        return found

    def clear(self) -> None:
        """All lanes are looked at again."""
        self._full.clear()
        self._opens_at = None

    def wait(self, most: float, now: Instant) -> float:
        """How long until a rate lets the next one start, at most so long."""
        if self._opens_at is None:
            return most
        return min(most, max(SHORTEST, (self._opens_at - now) / SECOND))
