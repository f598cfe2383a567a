"""Answers that hold for a stretch of time, remembered by trigger.

The next fire after an instant is the next one for every instant up to it. Ten million triggers of a few hundred
expressions therefore ask for a few hundred answers at a time, and everybody else finds one that still holds.
"""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from horae.env import Instant

MOST = 32_768  # triggers that differ; some 10 MB

Key = TypeVar("Key", bound=Hashable)


Stretch = tuple[Instant, Instant]  # from where to where an answer holds, in order


class Remembered(Generic[Key]):
    """The two newest answers to one question of each trigger; all are forgotten together when there are too many.

    Two, because whoever decides a fire asks which it is and which comes after it, for one trigger after another. Of two
    that ask at once, in two threads, one answer is kept: each is right for its own stretch.
    """

    def __init__(self, ask: Callable[[Key, Instant], Instant | None], *, forward: bool) -> None:
        self._ask = ask
        self._forward = forward
        self._known: dict[Key, tuple[Stretch, Stretch]] = {}  # the newer first

    def __call__(self, trigger: Key, at: Instant) -> Instant | None:
        """The fire strictly after an instant, or before it."""
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
            if one[self._forward] == new[self._forward]:  # the same answer from further away
                self._known[trigger] = (min(one[0], new[0]), max(one[1], new[1])), other
                return
        self._known[trigger] = new, newer
