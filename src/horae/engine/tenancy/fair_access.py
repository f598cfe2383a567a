"""Fair access: while several namespaces use a server, no namespace can starve the others.

During that time each namespace has a limited number of running requests, and its further requests wait for their turn.
Its requests and submissions are also limited by a rate. A namespace that uses a server alone has no limits. Each server
counts for itself.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

from horae.engine.settings import EngineSettings
from horae.env import SECOND, Env, Instant
from horae.errors import OverQuota, TooOften
from horae.model.admission.rate import UNUSED, Rate

AT_ONCE = 4  # a namespace may have this number of running requests, times its weight
CALM = 1.0  # seconds without a request after which a namespace no longer competes
MOST_PACES = 10_000  # namespaces whose use of their rate is remembered

T = TypeVar("T")
_HOLDS_TURN: ContextVar[bool] = ContextVar("holds_turn", default=False)


class Compute(Protocol):
    """Runs a long pure computation outside the event loop."""

    async def __call__(self, work: Callable[[], T]) -> T: ...


class NamespaceRates:
    """Counts the requests of each namespace against a rate."""

    def __init__(self, rate: Rate | None) -> None:
        self.rate = rate
        self._paces: dict[int, Instant] = {}  # the time at which a namespace's next request is exactly on schedule

    def wait(self, namespace: int, count: int, now: Instant) -> int:
        """Count requests and return 0, or return the seconds to wait before they are admitted.

        A large request is admitted at once and delays the following ones.
        """
        if self.rate is None:
            return 0
        pace = self._paces.pop(namespace, UNUSED)
        if not self.rate.room(pace, now):
            self._paces[namespace] = pace
            return max(1, -(-(self.rate.opens_at(pace) - now) // SECOND))
        self._paces[namespace] = self.rate.after(pace, count, now)
        if len(self._paces) > MOST_PACES:
            del self._paces[next(iter(self._paces))]  # the namespace whose last request is the oldest
        return 0


class FairAccess:
    """Shares a server between the namespaces that use it at the same time."""

    def __init__(self, env: Env, weight: Callable[[int], float], settings: EngineSettings) -> None:
        self._env, self._weight = env, weight
        self._requests, self._submissions = (
            NamespaceRates(settings.namespace_request_rate),
            NamespaceRates(settings.namespace_submit_rate),
        )
        # The last two distinct namespaces that sent a request, with the times of the requests.
        self._last, self._other = (-1, -CALM), (-1, -CALM)
        self._working: dict[int, int] = {}  # running requests by namespace
        self._waiting: dict[int, deque[asyncio.Future[None]]] = {}  # requests that wait for their turn, by namespace
        self._dealing = False  # whether the next call of `_deal`, which begins waiting requests, is scheduled
        self._begun: set[int] = set()  # namespaces with a request that began in this turn of the event loop
        self._computing = asyncio.Lock()
        self.refused = 0

    def note_use(self, namespace: int) -> None:
        """Note that a namespace uses this server."""
        if self._last[0] != namespace:
            self._other = self._last
        self._last = (namespace, self._env.clock.monotonic())

    def contended(self, namespace: int) -> bool:
        """Return whether another namespace also uses this server."""
        _, at = self._last if self._last[0] != namespace else self._other
        return self._env.clock.monotonic() - at < CALM

    def count_request(self, namespace: int) -> None:
        """Count a request. Raises TooOften when the namespace sends too many while others use the server."""
        if self.contended(namespace) and (wait := self._requests.wait(namespace, 1, self._env.now())):
            self.refused += 1
            detail = f"While others use this server, a namespace may send requests at a rate of {self._requests.rate}."
            remedy = f"Repeat the request in {wait} s, or have the setting namespace_request_rate raised."
            raise TooOften(detail, remedy, retryAfter=wait)

    def count_submissions(self, namespace: int, count: int) -> None:
        """Count executions to be accepted. Raises OverQuota when the namespace submits too many while others use the
        server.
        """
        if self.contended(namespace) and (wait := self._submissions.wait(namespace, count, self._env.now())):
            self.refused += 1
            rate = self._submissions.rate
            detail = f"While others use this server, a namespace may submit executions at a rate of {rate}."
            quota = "`horae namespaces quota --submissions-per-second`"
            remedy = f"Repeat the request in {wait} s, or have a quota set: {quota}."
            raise OverQuota(detail, remedy, retryAfter=wait, quota="submissionsPerSecond")

    async def enter(self, namespace: int) -> None:
        """Wait for the namespace's turn, then begin a request's work; `leave` must follow."""
        if namespace not in self._waiting and (self._is_light(namespace) or not self.contended(namespace)):
            self._begin(namespace)
        else:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(namespace, deque()).append(turn)
            self._deal_soon()
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._give_back(namespace)
                raise
        _HOLDS_TURN.set(True)

    def leave(self, namespace: int) -> None:
        """End a request's work, if it began, and let the next one of its namespace begin."""
        if _HOLDS_TURN.get():
            _HOLDS_TURN.set(False)
            self._give_back(namespace)

    @asynccontextmanager
    async def without_turn(self, namespace: int) -> AsyncIterator[None]:
        """Give the turn back while a request only waits."""
        if not _HOLDS_TURN.get():
            yield
            return
        self.leave(namespace)
        try:
            yield
        finally:
            await self.enter(namespace)

    async def compute(self, work: Callable[[], T]) -> T:
        """Run a long computation in a thread, one at a time, because several would starve the event loop of the GIL."""
        async with self._computing:
            return await asyncio.to_thread(work)

    def _deal_soon(self) -> None:
        if not self._dealing:
            self._dealing = True
            asyncio.get_running_loop().call_soon(self._deal)

    def _deal(self) -> None:
        """Begin one waiting request of each namespace that has room. The event loop runs these before the next deal."""
        self._dealing = False
        for namespace, waiting in list(self._waiting.items()):
            while waiting and waiting[0].done():
                del waiting[0]
            if waiting and namespace not in self._begun and self._has_room(namespace):
                self._begin(namespace)
                waiting.popleft().set_result(None)
            if not waiting:
                del self._waiting[namespace]
            elif self._has_room(namespace):
                self._deal_soon()

    def _is_light(self, namespace: int) -> bool:
        """Return whether a namespace has no running request, and none that began in this turn of the event loop.

        Then its next request begins at once, without a deal.
        """
        return namespace not in self._working and namespace not in self._begun

    def _begin(self, namespace: int) -> None:
        self._working[namespace] = self._working.get(namespace, 0) + 1
        if not self._begun:
            asyncio.get_running_loop().call_soon(self._begun.clear)
        self._begun.add(namespace)

    def _has_room(self, namespace: int) -> bool:
        most = max(1, round(AT_ONCE * self._weight(namespace)))
        return self._working.get(namespace, 0) < most or not self.contended(namespace)

    def _give_back(self, namespace: int) -> None:
        self._working[namespace] -= 1
        if not self._working[namespace]:
            del self._working[namespace]
        if namespace in self._waiting:
            self._deal_soon()
