"""Limits on the number of connections: in total, and from one address."""

from collections import Counter

from horae.server.http.proxies import Proxies

MOST = 20_000  # connections of a server
MOST_OF_ONE = 1_000  # connections from one address


class ConnectionLimits:
    """Counts connections. A trusted proxy has connections for many clients, so only the total limit applies to it."""

    def __init__(self, most: int = MOST, most_of_one: int = MOST_OF_ONE, proxies: Proxies | None = None) -> None:
        self._most, self._most_of_one, self._proxies = most, most_of_one, proxies or Proxies()
        self._of: Counter[str] = Counter()
        self._all = 0

    def enter(self, address: str) -> bool:
        """Count a new connection; return False, without counting it, if a limit is reached."""
        crowded = self._of[address] >= self._most_of_one and not self._proxies.trusts(address)
        if self._all >= self._most or crowded:
            return False
        self._of[address] += 1
        self._all += 1
        return True

    def leave(self, address: str) -> None:
        self._of[address] -= 1
        self._all -= 1
        if not self._of[address]:
            del self._of[address]
