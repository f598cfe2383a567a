"""A cache of the next (or previous) fire of each trigger, with the range of instants for which it is the answer.

The next fire after an instant is the same for every instant up to that fire. So ten million triggers with a few hundred
distinct expressions compute only a few hundred answers at a time; all other lookups hit the cache.
"""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from horae.env import Instant

MOST = 32_768  # triggers; about 10 MB

Key = TypeVar("Key", bound=Hashable)


Stretch = tuple[Instant, Instant]  # the first and last instant of a range; one of the two is the answer, a fire


class FireCache(Generic[Key]):
    """The two newest answers of a function per trigger. When MOST triggers are cached, the whole cache is emptied.

    `forward` says that `ask` returns the next fire after an instant; otherwise it returns the last fire before it. Two
    answers are needed because a decision looks up a fire and the fire after it. If two threads look up the same trigger
    at once, one answer may not be stored; both threads return right answers.
    """

    def __init__(self, ask: Callable[[Key, Instant], Instant | None], *, forward: bool) -> None:
        self._ask = ask
        self._forward = forward
        self._known: dict[Key, tuple[Stretch, Stretch]] = {}  # the newer first

    def __call__(self, trigger: Key, at: Instant) -> Instant | None:
        """Return the next fire strictly after an instant, or the last fire strictly before it."""
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
