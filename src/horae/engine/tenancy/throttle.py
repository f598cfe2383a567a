"""Limits on requests: rates by credential, and waits after wrong guesses of credentials, by source."""

from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_address

from horae.env import SECOND, Env, Instant
from horae.errors import TooOften
from horae.model.admission.rate import UNUSED, Rate
from horae.model.tenancy.principal import Principal, RequestLimit

FORGOTTEN_AFTER = 900.0  # seconds without a wrong guess
LONGEST = 900.0  # seconds: the longest wait
MOST = 10_000  # keys in memory


class Throttle:
    """Doubles the wait after each wrong guess with a key, except for the first few.

    A key names a source of guesses, such as a network, or their target. Each server counts for itself.
    """

    def __init__(self, env: Env, free: int) -> None:
        self._env, self._free = env, free
        self._wrong: dict[str, tuple[int, float]] = {}  # number of wrong guesses, and time of the last one

    def wait(self, key: str) -> float:
        """Return the seconds until the next guess is checked; 0 for now."""
        count, last = self._wrong.get(key, (0, 0.0))
        now = self._env.clock.monotonic()
        if count < self._free or now - last >= FORGOTTEN_AFTER:
            return 0.0
        return max(0.0, last + min(LONGEST, 2.0 ** (count - self._free)) - now)

    def guess(self, key: str) -> None:
        """Count a guess before it is checked, so that concurrent guesses do not all count as the first.

        When there are too many keys, the one with the oldest guess is removed.
        """
        now = self._env.clock.monotonic()
        count, last = self._wrong.pop(key, (0, now))
        self._wrong[key] = (1 if now - last >= FORGOTTEN_AFTER else count + 1, now)
        if len(self._wrong) > MOST:
            del self._wrong[next(iter(self._wrong))]

    def reset(self, key: str) -> None:
        """Forget the guesses with a key: the last one was right."""
        self._wrong.pop(key, None)

    def take_back(self, key: str) -> None:
        """Forget only the last guess: it was right, but does not excuse the earlier ones."""
        count, last = self._wrong.get(key, (0, 0.0))
        if count:
            self._wrong[key] = (count - 1, last)


class Trickle:
    """Admits some wrong guesses with a key at once, then one per interval. Each server counts for itself."""

    def __init__(self, env: Env, free: int, every: float) -> None:
        """Admit `free` guesses at once, then one every `every` seconds."""
        self._env, self._free, self._every = env, free, every
        self._paid: dict[str, float] = {}  # by key: the time from which all `free` guesses are available again

    def wait(self, key: str) -> float:
        """Return the seconds until the next guess is admitted; 0 for now."""
        ahead = self._paid.get(key, 0.0) - self._env.clock.monotonic()
        return max(0.0, ahead - (self._free - 1) * self._every)

    def guess(self, key: str) -> None:
        """Count a guess before it is checked. When there are too many keys, remove the one with the oldest guess."""
        self._paid[key] = max(self._paid.pop(key, 0.0), self._env.clock.monotonic()) + self._every
        if len(self._paid) > MOST:
            del self._paid[next(iter(self._paid))]

    def take_back(self, key: str) -> None:
        """Forget one guess: it was right."""
        if key in self._paid:
            self._paid[key] -= self._every


def network_of(address: str, bits: int = 32) -> str:
    """Return the network that counts as one source: an IPv4 address or its first bits, or an IPv6 /64."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    parsed = getattr(parsed, "ipv4_mapped", None) or parsed
    if isinstance(parsed, IPv4Address):
        return str(parsed) if bits == 32 else str(IPv4Network((parsed, bits), strict=False))
    return str(IPv6Network((int(parsed) >> 64 << 64, 64)))


class RequestRates:
    """Counts requests by credential and refuses those that exceed the rate. Each server counts for itself.

    After a pause, all requests that the rate allows in its span may arrive at once. A credential without a rate costs
    no work. Exchanges of workers are not counted: they are limited by the workers' slots and connections.
    """

    def __init__(self, env: Env, default: Rate | None = None) -> None:
        """`default` is the rate of credentials that have no rate of their own."""
        self._env, self._default = env, default
        self._paces: dict[str, Instant] = {}
        self.refused = 0

    def take(self, principal: Principal) -> None:
        """Count a request. Raises TooOften without counting it when the rate is exceeded."""
        allowed = principal.allowance
        if allowed is None:
            if self._default is None:
                return
            allowed = RequestLimit(of=principal.key, rate=self._default)
        now, rate = self._env.now(), allowed.rate
        pace = self._paces.pop(allowed.of, UNUSED)
        if not rate.room(pace, now):
            self._paces[allowed.of] = pace
            self.refused += 1
            wait = max(1, -(-(rate.opens_at(pace) - now) // SECOND))
            remedy = f"Repeat the request in {wait} s; an administrator can create a key with another `rate`."
            detail = f"This credential may send requests to each server at a rate of {rate}, and has exceeded it."
            raise TooOften(detail, remedy, retryAfter=wait)
        self._paces[allowed.of] = rate.after(pace, 1, now)
        if len(self._paces) > MOST:
            del self._paces[next(iter(self._paces))]  # the credential whose last request is the oldest
