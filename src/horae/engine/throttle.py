"""Who guesses is slowed down: each wrong guess after the first few doubles the wait for the next."""

from ipaddress import IPv4Address, IPv6Network, ip_address

from horae.env import Env

FORGOTTEN_AFTER = 900.0  # seconds without a wrong guess
LONGEST = 900.0
MOST = 10_000  # who is remembered


class Throttle:
    """Counts wrong guesses by what they were for, and from where. Each server counts its own."""

    def __init__(self, env: Env, free: int) -> None:
        self._env, self._free = env, free
        self._wrong: dict[str, tuple[int, float]] = {}  # how many, and when the last one was

    def wait(self, what: str) -> float:
        """Seconds until the next guess is looked at; 0 for now."""
        count, last = self._wrong.get(what, (0, 0.0))
        now = self._env.clock.monotonic()
        if count < self._free or now - last >= FORGOTTEN_AFTER:
            return 0.0
        return max(0.0, last + min(LONGEST, 2.0 ** (count - self._free)) - now)

    def guess(self, what: str) -> None:
        """Count a guess, wrong until it turns out right: those that come together do not all count as the first.

        The one that was longest ago is forgotten when there are too many.
        """
        now = self._env.clock.monotonic()
        count, last = self._wrong.pop(what, (0, now))
        self._wrong[what] = (1 if now - last >= FORGOTTEN_AFTER else count + 1, now)
        if len(self._wrong) > MOST:
            del self._wrong[next(iter(self._wrong))]

    def right(self, what: str) -> None:
        """Forget the guesses for something: the last one was right."""
        self._wrong.pop(what, None)

    def take_back(self, what: str) -> None:
        """Forget one guess, and no other: it was right, but tells nothing of those before it."""
        count, last = self._wrong.get(what, (0, 0.0))
        if count:
            self._wrong[what] = (count - 1, last)


def neighbourhood(address: str) -> str:
    """From where guesses count as one: an address; of IPv6 the network, in which everybody has any number of them."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, IPv4Address):
        return address
    return str(parsed.ipv4_mapped or IPv6Network((int(parsed) >> 64 << 64, 64)))
