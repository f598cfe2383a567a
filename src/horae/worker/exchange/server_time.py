"""The servers' time, as a worker knows it from their answers."""

from collections import deque

from horae.env import SECOND, Clock, Instant, Micros


class ServerTime:
    """Converts between this machine's monotonic clock and the servers' clock."""

    def __init__(self, clock: Clock) -> None:
        self.offset: Micros = 0  # the server's time less the monotonic time
        self._clock = clock
        self._offsets: deque[int] = deque(maxlen=16)

    def learn(self, now: Instant) -> None:
        """Update the offset with the time in an answer that has just arrived.

        The largest of the last offsets is the best, because it is that of the answer with the shortest delay.
        """
        self._offsets.append(now - int(self._clock.monotonic() * SECOND))
        self.offset = max(self._offsets)

    def instant(self, monotonic: float) -> Instant:
        """Return the server's time at a monotonic time."""
        return int(monotonic * SECOND) + self.offset

    def monotonic(self, instant: Instant) -> float:
        """Return the monotonic time at an instant of the server's clock."""
        return (instant - self.offset) / SECOND
