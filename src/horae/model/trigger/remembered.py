"""Answers that hold for a stretch of time, remembered by trigger.

The next fire after an instant is the next one for every instant up to it. Ten million triggers of a few hundred
expressions therefore ask for a few hundred answers at a time, and everybody else finds one that still holds.
"""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from horae.env import Instant

MOST = 32_768  # triggers that differ; some 10 MB

Key = TypeVar("Key", bound=Hashable)


class Remembered(Generic[Key]):
    """The newest answer to one question of each trigger; all are forgotten together when there are too many.

    Of two that ask at once, in two threads, one answer is kept: each is right for its own stretch.
    """

    def __init__(self, ask: Callable[[Key, Instant], Instant | None], *, forward: bool) -> None:
        self._ask = ask
        self._forward = forward
        self._known: dict[Key, tuple[Instant, Instant]] = {}  # from where to where the answer holds, in order

    def __call__(self, trigger: Key, at: Instant) -> Instant | None:
        """The fire strictly after an instant, or before it."""
        known = self._known.get(trigger)
        if known is not None:
            lo, hi = known
            if self._forward and lo <= at < hi:
                return hi
            if not self._forward and lo < at <= hi:
                return lo
        found = self._ask(trigger, at)
        if found is not None:
            self._keep(trigger, at, found, known)
        return found

    def _keep(self, trigger: Key, at: Instant, found: Instant, known: tuple[Instant, Instant] | None) -> None:
        if len(self._known) >= MOST and known is None:
            self._known.clear()
        lo, hi = (at, found) if self._forward else (found, at)
        if known is not None and known[self._forward] == found:  # the same answer from further away
            lo, hi = min(lo, known[0]), max(hi, known[1])
        self._known[trigger] = (lo, hi)
