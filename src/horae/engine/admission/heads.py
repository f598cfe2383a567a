"""The occupied lanes with their least ranks; those of fair queues are known by their shares too."""

from collections.abc import Callable

Told = Callable[[int], object]


class Heads(dict[int, int]):
    """Lane -> its least rank. Whoever asks is told of lanes that got something, and of those that have nothing left."""

    def __init__(self, came: Told, went: Told) -> None:
        super().__init__()
        self._came, self._went = came, went

    def __setitem__(self, lane: int, rank: int) -> None:
        is_new = lane not in self
        super().__setitem__(lane, rank)
        if is_new:
            self._came(lane)

    def __delitem__(self, lane: int) -> None:
        super().__delitem__(lane)
        self._went(lane)

    def pop(self, lane: int, default: int | None = None) -> int:  # type: ignore[override]
        if lane not in self:
            return default  # type: ignore[return-value]
        rank = self[lane]
        del self[lane]
        return rank
