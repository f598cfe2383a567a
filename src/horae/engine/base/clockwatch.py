"""The clock's watch: server time follows the store's clock, and a clock that jumps is not trusted.

Between two looks server time runs by a clock that nobody can set, so a step of the store's clock is met here alone. A
jump forward of up to a day is an outage (the misfire policy decides). A larger one, or back by more than five minutes,
stops firing, promoting, expiring and forgetting until the clock is back or somebody accepts it.
"""

import structlog

from horae.engine.base.hints import Hint, Hints
from horae.engine.service import Alarm, Wait
from horae.env import SECOND, Env, Instant
from horae.store.contract import Store

FORWARD = 86_400 * SECOND
BACK = 300 * SECOND
TOLD = 10 * SECOND  # a smaller step is nobody's concern
LOOK = 5.0
SMOOTH = 50_000  # an offset within the round trip's noise is left alone
log = structlog.get_logger("horae.engine")


class ClockWatch:
    """Compares the store's clock with one that cannot jump."""

    name = "clock"

    def __init__(self, env: Env, store: Store, hints: Hints) -> None:
        self._env, self._store, self._hints = env, store, hints
        self._base: tuple[Instant, float] | None = None  # store time and monotonic time when last trusted
        self.trusted = True
        self.jump: int = 0
        self.alarm = Alarm()
        hints.listen(self._on_hint)

    async def step(self) -> Wait:
        """Measure the offset to the store's clock, and whether that clock jumped."""
        before = self._env.clock.monotonic()
        store_now = await self._store.driver.server_time()
        after = self._env.clock.monotonic()
        middle = (before + after) / 2
        if self._base is None:
            self._base = (store_now, middle)
        self.jump = store_now - self._base[0] - int((middle - self._base[1]) * SECOND)
        self._judge(store_now, middle)
        if self.trusted:
            self._follow(store_now, middle, after - middle)
        return LOOK

    def _judge(self, store_now: Instant, at: float) -> None:
        trusted = -BACK <= self.jump <= FORWARD
        if trusted:
            self._base = (store_now, at)
        if trusted != self.trusted:
            log.error("clock jumped" if not trusted else "clock is back", seconds=self.jump / SECOND)
        elif trusted and abs(self.jump) >= TOLD:
            log.warning("clock was set", seconds=self.jump / SECOND)
        self.trusted = trusted

    def _follow(self, store_now: Instant, at: float, half_trip: float) -> None:
        """Let the server's clock show the store's time. What a slow answer alone may explain is left alone."""
        clock = self._env.clock
        drift = store_now + int((clock.monotonic() - at) * SECOND) - clock.now()
        if abs(drift) > max(SMOOTH, int(half_trip * SECOND)):
            clock.follow(drift)

    def accept(self) -> None:
        """Take the present time for true, on all servers."""
        self._hints.send(Hint(accept_clock=True))

    def _on_hint(self, hint: Hint) -> None:
        if hint.accept_clock:
            self._base, self.trusted, self.jump = None, True, 0
            self.alarm.ring()
