"""Virtual times: what each share of a queue has had, by its weight. The least is served next.

A share is charged when something of it is given out, by what that is expected to cost, and corrected when it is known.
Whoever comes back starts where service is now: time without work is not saved up, nor held against anybody.
"""

from collections.abc import Collection, Hashable, Iterator
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
MOST_IDLE = 10_000  # shares without work that are remembered; the others start anew


class VirtualTimes(Generic[K]):
    """The virtual times of shares that compete. What a look costs follows what it finds, not the number of shares."""

    def __init__(self) -> None:
        self._had: dict[K, float] = {}
        self._served: dict[K, int] = {}  # when each was charged last, in order: the longest ago wins a tie
        self._busy: set[K] = set()
        self._line: list[tuple[float, int, int, K]] = []  # a heap of those with work; what has changed is passed over
        self._clock = 0.0  # where a share starts that had nothing to do
        self._most = 0.0  # that any has had
        self._turn = 0

    def came(self, share: K) -> None:
        """It has work that waits; one that had none starts where service is now, unless it has had more."""
        if share in self._busy:
            return
        if not self._busy:  # nobody waited: nobody is owed anything
            self._clock = max(self._clock, self._most)
        self._busy.add(share)
        self._set(share, max(self._had.get(share, self._clock), self._clock))

    def went(self, share: K) -> None:
        """Nothing of it waits any more."""
        self._busy.discard(share)
        if len(self._had) - len(self._busy) > MOST_IDLE:
            self._forget()

    def present(self, busy: Collection[K]) -> None:
        """These have work that waits, and no others."""
        for share in [share for share in self._busy if share not in busy]:
            self.went(share)
        for share in busy:
            self.came(share)

    def virtual(self, share: K) -> float:
        """What it has had."""
        return self._had.get(share, self._clock)

    def served(self, share: K) -> int:
        """Whose turn was longest ago has the least."""
        return self._served.get(share, 0)

    def in_order(self) -> Iterator[K]:
        """Those with work, the least virtual time first; whoever asks may stop at any time."""
        seen: list[tuple[float, int, int, K]] = []
        try:
            while (entry := self._first()) is not None:
                seen.append(heappop(self._line))
                yield entry
        finally:
            for one in seen:
                heappush(self._line, one)

    def charge(self, share: K, amount: float) -> None:
        """Something was given to it; `amount` is the cost by its weight. Who comes now starts where this one stood."""
        first = self._first()
        if first is not None:
            self._clock = max(self._clock, self._had[first])
        self._turn += 1
        self._served[share] = self._turn
        self._set(share, self.virtual(share) + amount)

    def correct(self, share: K, amount: float) -> None:
        """What was given here or elsewhere cost that much more, or less, than was charged so far."""
        self._set(share, self.virtual(share) + amount)

    def _set(self, share: K, had: float) -> None:
        self._had[share] = had
        self._most = max(self._most, had)
        if share in self._busy:
            self._turn += 1
            heappush(self._line, (had, self._served.get(share, 0), self._turn, share))
            if len(self._line) > 64 + 4 * len(self._busy):
                self._line = [(self._had[one], self._served.get(one, 0), i, one) for i, one in enumerate(self._busy)]
                heapify(self._line)

    def _first(self) -> K | None:
        """Whose turn it is."""
        while self._line:
            had, served, _, share = self._line[0]
            if share in self._busy and self._had[share] == had and self._served.get(share, 0) == served:
                return share
            heappop(self._line)
        return None

    def _forget(self) -> None:
        """Of those without work, half of what may be remembered is: who had most would start late if it came back."""
        idle = sorted((had, i, share) for i, (share, had) in enumerate(self._had.items()) if share not in self._busy)
        for _, _, share in idle[: -MOST_IDLE // 2]:
            del self._had[share]
            self._served.pop(share, None)


def jain(parts: Collection[float]) -> float:
    """Jain's index of what each got by its weight: 1 when all are equal, 1/n when one has everything."""
    total = sum(parts)
    return total * total / (len(parts) * sum(part * part for part in parts)) if total else 1.0
