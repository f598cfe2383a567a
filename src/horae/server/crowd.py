"""How many connections there may be: in all, and from one address."""

from collections import Counter

from horae.server.address import is_loopback

MOST = 20_000
MOST_OF_ONE = 5_000


class Crowd:
    """Counts who is in. This machine's own connections are bounded only by their sum: a proxy's all come from here."""

    def __init__(self, most: int = MOST, most_of_one: int = MOST_OF_ONE) -> None:
        self._most, self._most_of_one = most, most_of_one
        self._of: Counter[str] = Counter()
        self._all = 0

    def enter(self, address: str) -> bool:
        """Whether there is room for another one."""
        if self._all >= self._most or (self._of[address] >= self._most_of_one and not is_loopback(address)):
            return False
        self._of[address] += 1
        self._all += 1
        return True

    def leave(self, address: str) -> None:
        self._of[address] -= 1
        self._all -= 1
        if not self._of[address]:
            del self._of[address]
