"""Who guesses is slowed down: each wrong guess after the first few doubles the wait for the next."""

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

    def wrong(self, what: str) -> None:
        """Count a wrong guess; the one that was longest ago is forgotten when there are too many."""
        now = self._env.clock.monotonic()
        count, last = self._wrong.pop(what, (0, now))
        self._wrong[what] = (1 if now - last >= FORGOTTEN_AFTER else count + 1, now)
        if len(self._wrong) > MOST:
            del self._wrong[next(iter(self._wrong))]

    def right(self, what: str) -> None:
        self._wrong.pop(what, None)
