"""A cache of answers that hold for a range of time, by trigger.

The next fire after an instant is the same for every instant up to that fire. So ten million triggers with a few hundred
distinct expressions compute only a few hundred answers at a time; all other lookups hit the cache.
"""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from horae.env import Instant

MOST = 32_768  # distinct triggers; some 10 MB

Key = TypeVar("Key", bound=Hashable)


Stretch = tuple[Instant, Instant]  # the range for which an answer holds, in order


class FireCache(Generic[Key]):
    """The two newest answers to one question per trigger; when there are too many, all are dropped at once.

    Two answers are needed because a decision asks for a fire and for the fire after it, for one trigger after another.
    If two threads ask at once, only one answer is stored; both are right for their own range.
    """

    def __init__(self, ask: Callable[[Key, Instant], Instant | None], *, forward: bool) -> None:
        self._ask = ask
        self._forward = forward
        self._known: dict[Key, tuple[Stretch, Stretch]] = {}  # the newer first

    def __call__(self, trigger: Key, at: Instant) -> Instant | None:
        """Return the fire strictly after an instant, or before it."""
        known = self._known.get(trigger)
        if known is not None:
            for lo, hi in known:
                if self._forward and lo <= at < hi:
                    return hi
                if not self._forward and lo < at <= hi:
                    return lo
        found = self._ask(trigger, at)
        if found is not None:
            self._keep(trigger, (at, found) if self._forward else (found, at), known)
        return found

    def _keep(self, trigger: Key, new: Stretch, known: tuple[Stretch, Stretch] | None) -> None:
        if known is None:
            if len(self._known) >= MOST:
                self._known.clear()
            self._known[trigger] = new, new
            return
        newer, older = known
        for one, other in ((newer, older), (older, newer)):
            if one[self._forward] == new[self._forward]:  # the same answer, computed for a more distant instant
                self._known[trigger] = (min(one[0], new[0]), max(one[1], new[1])), other
                return
        self._known[trigger] = new, newer
