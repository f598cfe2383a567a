"""The clock watch: server time follows the store's clock, and a clock that jumps is not trusted.

Between two checks, server time advances by the monotonic clock, which no administrator can set. So a jump of the
store's clock reaches other code only through this module. A jump forward of up to a day counts as an outage: the
misfire policies of triggers decide what runs. A larger jump, or a jump back by more than five minutes, stops firing,
promotion, expiry and deletion until the clock is back or an administrator accepts the new time.
"""

import structlog

from horae.engine.base.hints import Hint, Hints
from horae.engine.service import Alarm, Wait
from horae.env import SECOND, Env, Instant
from horae.store.contract import Store

FORWARD = 86_400 * SECOND  # the largest jump forward that is trusted
BACK = 300 * SECOND  # the largest jump back that is trusted
LOGGED_STEP = 10 * SECOND  # smaller steps are not logged
INTERVAL = 5.0  # seconds between two checks
SMOOTH = 50_000  # microseconds: a smaller offset may be noise of the round trip and is not corrected
log = structlog.get_logger("horae.engine")


class ClockWatch:
    """Compares the store's clock with one that cannot jump."""

    name = "clock"

    def __init__(self, env: Env, store: Store, hints: Hints) -> None:
        self._env, self._store, self._hints = env, store, hints
        self._base: tuple[Instant, float] | None = None  # store time and monotonic time when last trusted
        self.trusted = True
        self.jump: int = 0  # microseconds by which the store's clock jumped since it was last trusted
        self.alarm = Alarm()
        hints.listen(self._on_hint)

    async def step(self) -> Wait:
        """Measure the offset to the store's clock and decide whether that clock jumped."""
        before = self._env.clock.monotonic()
        store_now = await self._store.database.server_time()
        after = self._env.clock.monotonic()
        middle = (before + after) / 2
        if self._base is None:
            self._base = (store_now, middle)
        self.jump = store_now - self._base[0] - int((middle - self._base[1]) * SECOND)
        self._judge(store_now, middle)
        if self.trusted:
            self._follow(store_now, middle, after - middle)
        return INTERVAL

    def _judge(self, store_now: Instant, at: float) -> None:
        trusted = -BACK <= self.jump <= FORWARD
        if trusted:
            self._base = (store_now, at)
        if trusted != self.trusted:
            log.error("clock jumped" if not trusted else "clock is back", seconds=self.jump / SECOND)
        elif trusted and abs(self.jump) >= LOGGED_STEP:
            log.warning("clock was set", seconds=self.jump / SECOND)
        self.trusted = trusted

    def _follow(self, store_now: Instant, at: float, half_trip: float) -> None:
        """Set the server's clock to the store's time. Ignore an offset that a slow answer alone may explain."""
        clock = self._env.clock
        drift = store_now + int((clock.monotonic() - at) * SECOND) - clock.now()
        if abs(drift) > max(SMOOTH, int(half_trip * SECOND)):
            clock.follow(drift)

    def accept(self) -> None:
        """Accept the present time of the store as correct, on all servers."""
        self._hints.send(Hint(accept_clock=True))

    def _on_hint(self, hint: Hint) -> None:
        if hint.accept_clock:
            self._base, self.trusted, self.jump = None, True, 0
            self.alarm.ring()
