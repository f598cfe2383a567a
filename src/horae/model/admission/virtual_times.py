"""Virtual times: the weighted service that each share of a queue has received. The share with the least is next.

A share is charged the expected cost when an execution is granted, and corrected when the real cost is known. A share
that gets work again starts at the current service level, so that its idle time is neither an advantage nor a
disadvantage.
"""

from collections.abc import Collection, Hashable, Iterator
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
MOST_IDLE = 10_000  # shares without work that are remembered; others are forgotten and start anew


class VirtualTimes(Generic[K]):
    """The virtual times of competing shares. The cost of a lookup does not depend on the number of shares."""

    def __init__(self) -> None:
        self._had: dict[K, float] = {}
        self._served: dict[K, int] = {}  # order in which shares were charged last; the earliest wins a tie
        self._busy: set[K] = set()
        self._line: list[tuple[float, int, int, K]] = []  # a heap of shares with work; outdated entries are skipped
        self._clock = 0.0  # the current service level: the virtual time at which a share that had no work starts
        self._most = 0.0  # the largest virtual time of any share
        self._turn = 0

    def mark_busy(self, share: K) -> None:
        """Add a share that has waiting work.

        A share that had none starts at the current service level, or at its own if higher.
        """
        if share in self._busy:
            return
        if not self._busy:  # no share waited, so no share has a claim on earlier service
            self._clock = max(self._clock, self._most)
        self._busy.add(share)
        self._set(share, max(self._had.get(share, self._clock), self._clock))

    def mark_idle(self, share: K) -> None:
        """Remove a share that has no waiting work any more."""
        self._busy.discard(share)
        if len(self._had) - len(self._busy) > MOST_IDLE:
            self._forget()

    def set_busy(self, busy: Collection[K]) -> None:
        """Set the shares that have waiting work."""
        for share in [share for share in self._busy if share not in busy]:
            self.mark_idle(share)
        for share in busy:
            self.mark_busy(share)

    def virtual(self, share: K) -> float:
        """Return the virtual time of a share."""
        return self._had.get(share, self._clock)

    def last_grant(self, share: K) -> int:
        """Return a number that is lower the longer ago the share was served."""
        return self._served.get(share, 0)

    def in_order(self) -> Iterator[K]:
        """Yield the shares with work, the least virtual time first. The caller may stop at any time."""
        entries: dict[K, tuple[float, int, int, K]] = {}
        try:
            while (share := self._first()) is not None:
                entry = heappop(self._line)
                if share not in entries:  # a share that was idle in between can have two equal entries
                    entries[share] = entry
                    yield share
        finally:
            for entry in entries.values():
                heappush(self._line, entry)

    def charge(self, share: K, amount: float) -> None:
        """Charge a share for a grant; `amount` is the cost divided by its weight.

        Before the charge, the current service level advances to the least virtual time of a share with work.
        """
        first = self._first()
        if first is not None:
            self._clock = max(self._clock, self._had[first])
        self._turn += 1
        self._served[share] = self._turn
        self._set(share, self.virtual(share) + amount)

    def correct(self, share: K, amount: float) -> None:
        """Add an amount, which may be negative, to the charges of a share.

        `amount` is the difference between the real and the expected cost, divided by the share's weight; or a charge
        that another server has made.
        """
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
        """Return the share whose turn it is."""
        while self._line:
            had, served, _, share = self._line[0]
            if share in self._busy and self._had[share] == had and self._served.get(share, 0) == served:
                return share
            heappop(self._line)
        return None

    def _forget(self) -> None:
        """Forget idle shares until half of MOST_IDLE are left.

        The shares with the most service stay, because they would gain most from starting anew.
        """
        idle = sorted((had, i, share) for i, (share, had) in enumerate(self._had.items()) if share not in self._busy)
        for _, _, share in idle[: -MOST_IDLE // 2]:
            del self._had[share]
            self._served.pop(share, None)
