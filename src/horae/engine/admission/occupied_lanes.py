"""The occupied lanes with their lowest ranks."""

from collections.abc import Callable, Collection, Mapping

from horae.model.admission.placement.prefetch import goes_before
from horae.store.admission.lanes import Lane

_NOWHERE = (0, "")  # stands for the queue and share of a lane that this server does not know

LaneCallback = Callable[[int], object]


class OccupiedLanes(dict[int, int]):
    """Maps a lane to its lowest rank, and calls back when a lane becomes occupied or empty."""

    def __init__(self, on_occupied: LaneCallback, on_emptied: LaneCallback) -> None:
        super().__init__()
        self._on_occupied, self._on_emptied = on_occupied, on_emptied

    def __setitem__(self, lane: int, rank: int) -> None:
        is_new = lane not in self
        super().__setitem__(lane, rank)
        if is_new:
            self._on_occupied(lane)

    def __delitem__(self, lane: int) -> None:
        super().__delitem__(lane)
        self._on_emptied(lane)

    def pop(self, lane: int, default: int | None = None) -> int:  # type: ignore[override]
        if lane not in self:
            return default  # type: ignore[return-value]
        rank = self[lane]
        del self[lane]
        return rank


def may_prefetch_short(
    short_lanes: Collection[int],
    allowed: frozenset[int],
    occupied: Mapping[int, int],
    lanes: Mapping[int, Lane],
    costs: Collection[int],
) -> bool:
    """Return whether a worker may prefetch from one of `short_lanes`, the lanes with executions of its short jobs.

    It may not if an execution in another of the `allowed` lanes ranks well before them. Ranks are compared only within
    a queue and a share. Lanes in `costs`, whose executions take more than a slot, are ignored, because their executions
    wait for more room than prefetching takes.
    """
    waiting: dict[tuple[int, str], int] = {}
    for lane, head in occupied.items():
        if lane in allowed and lane not in short_lanes and lane not in costs:
            line = _line(lane, lanes)
            waiting[line] = min(head, waiting.get(line, head))
    firsts = ((occupied[lane], waiting.get(_line(lane, lanes))) for lane in short_lanes)
    return any(first is None or not goes_before(first, head) for head, first in firsts)


def _line(lane: int, lanes: Mapping[int, Lane]) -> tuple[int, str]:
    """Return the queue and share within which a lane's ranks are compared."""
    known = lanes.get(lane)
    return (known.queue, known.share) if known else _NOWHERE
