"""Rates of requests by credential: a number of requests per span, all of which may arrive at once after a pause.

Each server counts for itself. A credential without a rate costs no work. Exchanges of workers are not counted: they are
limited by the workers' slots and connections.
"""

from horae.env import SECOND, Env, Instant
from horae.errors import TooOften
from horae.model.admission.rate import UNUSED, Rate
from horae.model.tenancy.principal import Principal, RequestLimit

MOST = 10_000  # credentials in memory


class RequestRates:
    """Counts requests by credential and refuses those that exceed the rate."""

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
            remedy = f"Repeat it in {wait} s; an administrator can create a key with another `rate`."
            detail = f"This credential may send requests to each server at a rate of {rate}, and has exceeded it."
            raise TooOften(detail, remedy, retryAfter=wait)
        self._paces[allowed.of] = rate.after(pace, 1, now)
        if len(self._paces) > MOST:
            del self._paces[next(iter(self._paces))]  # the credential whose last request is the oldest
