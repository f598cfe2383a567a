"""Rescue: sessions that stopped sending exchanges are ended, and their executions are run by other workers."""

from uuid import UUID

import structlog
from msgspec import Struct

from horae.engine.base.clockwatch import ClockWatch
from horae.engine.base.hints import Hint, Hints
from horae.engine.executions.outcomes import Outcomes
from horae.engine.service import Alarm, Wait
from horae.engine.settings import EngineSettings
from horae.env import SECOND, Env, Instant
from horae.model.base.event import ChangeEvent
from horae.model.fleet.session import PRESENT
from horae.store.contract import Store

INTERVAL = 1.0  # seconds between two checks
log = structlog.get_logger("horae.engine")


class _Watch(Struct, frozen=True):
    last_seen: Instant
    since: float


class Rescuer:
    """Ends a session only after this server itself has watched the same heartbeat for a full timeout.

    It measures by its own monotonic clock, and only while its own store calls succeed, so that an outage of the store
    or a stalled server does not end the sessions of all workers.
    """

    name = "rescuer"

    def __init__(
        self,
        env: Env,
        store: Store,
        hints: Hints,
        settings: EngineSettings,
        outcomes: Outcomes,
        clock: ClockWatch,
    ) -> None:
        self._env, self._store, self._hints, self._outcomes = env, store, hints, outcomes
        self._timeout = settings.session_timeout / SECOND
        self._batch, self._clock = settings.rescue_batch, clock
        self._watched: dict[UUID, _Watch] = {}
        self._last_check: float | None = None
        self.alarm = Alarm()

    async def step(self) -> Wait:
        """Check all sessions once; rescue the executions of ended ones."""
        sessions = await self._store.watched_sessions()
        now = self._env.clock.monotonic()
        if self._last_check is None or now - self._last_check > self._stall:
            self._watched.clear()
        self._last_check = now
        again = False
        for session, state, last_seen, owns in sessions:
            if state in PRESENT:
                again |= await self._expire(session, last_seen, now)
            elif owns:
                await self._rescue(session, charge=state == "lost")
        present = {session for session, state, _, _ in sessions if state in PRESENT}
        self._watched = {session: watch for session, watch in self._watched.items() if session in present}
        return 0.0 if again else min(INTERVAL, self._timeout / 3)

    @property
    def _stall(self) -> float:
        """The pause between two checks after which earlier observations are void."""
        return max(3.0, self._timeout / 3) + INTERVAL

    async def _expire(self, session_id: UUID, last_seen: Instant, now: float) -> bool:
        watch = self._watched.get(session_id)
        if watch is None or watch.last_seen != last_seen:
            self._watched[session_id] = _Watch(last_seen, now)
            return False
        if now - watch.since < self._timeout or not self._clock.trusted:
            return False
        del self._watched[session_id]
        if not await self._store.mark_lost(session_id, last_seen):
            return False
        session = await self._store.session(session_id)
        log.warning("worker lost", worker=session.worker if session is not None else "", session=str(session_id))
        namespace = session.namespace if session is not None else 0
        self._hints.send(
            Hint(sessions=[session_id], events=[ChangeEvent("worker", session_id, "lost", namespace, self._env.now())])
        )
        return True

    async def _rescue(self, session: UUID, *, charge: bool) -> None:
        """Take back all executions of a session, in batches; with `charge`, count a loss for each of them."""
        while True:
            effects = await self._store.rescue(session, self._batch, charge=charge)
            if effects is None:
                return
            self._outcomes.publish_settled(effects)
            moved = sum(moved_slice.hi - moved_slice.lo for moved_slice in effects.moved) + sum(
                end.hi - end.lo for end in effects.ended
            )
            if not moved:
                return
