"""Virtual times: what each share of a queue has had, by its weight. The least is served next.

A share is charged when something of it is given out, by what that is expected to cost, and corrected when it is known.
Whoever comes back starts where service is now: time without work is not saved up, nor held against anybody.
"""

from collections.abc import Collection, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
MOST_IDLE = 10_000  # shares without work that are remembered; the others start anew


class Shares(Generic[K]):
    """The virtual times of shares that compete."""

    def __init__(self) -> None:
        self._had: dict[K, float] = {}
        self._served: dict[K, int] = {}  # when each was charged last, in order: the longest ago wins a tie
        self._busy: Collection[K] = frozenset()
        self._clock = 0.0  # where a share starts that had nothing to do
        self._least = 0.0  # of those with work, before what was given out since
        self._turn = 0

    def present(self, busy: Collection[K]) -> None:
        """These have work that waits, and no others; told before each choice."""
        self._clock = max(self._clock, self._least)
        before = self._busy
        for share in busy:
            if share not in before:
                self._had[share] = max(self._had.get(share, self._clock), self._clock)
        self._busy = frozenset(busy)
        had = self._had
        if self._busy:
            self._least = min(had[share] for share in self._busy)
        else:
            self._least = max(had.values(), default=self._clock)
        if len(had) - len(self._busy) > MOST_IDLE:
            self._forget()

    def virtual(self, share: K) -> float:
        """What it has had."""
        return self._had.get(share, self._clock)

    def served(self, share: K) -> int:
        """Whose turn was longest ago has the least."""
        return self._served.get(share, 0)

    def charge(self, share: K, amount: float) -> None:
        """Something was given to it; `amount` is the cost by its weight."""
        self._turn += 1
        self._served[share] = self._turn
        self._had[share] = self.virtual(share) + amount

    def correct(self, share: K, amount: float) -> None:
        """What was given here or elsewhere cost that much more, or less, than was charged so far."""
        self._had[share] = self.virtual(share) + amount

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
