"""Rescue: sessions that stopped answering are ended, and what they held goes on elsewhere."""

from uuid import UUID

import structlog
from msgspec import Struct

from horae.engine.base.clockwatch import ClockWatch
from horae.engine.base.hints import Hint, Hints
from horae.engine.executions.outcomes import Outcomes
from horae.engine.service import Alarm, Wait
from horae.engine.settings import EngineSettings
from horae.env import SECOND, Env, Instant
from horae.model.base.event import Event
from horae.store.contract import Store

LOOK = 1.0
log = structlog.get_logger("horae.engine")


class _Watch(Struct, frozen=True):
    last_seen: Instant
    since: float


class Rescuer:
    """Ends a session only after it has itself watched the same heartbeat for a full timeout.

    It measures on its own monotonic clock, with its own store calls succeeding: an outage of the store or a stalled
    server must not expire the fleet.
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
        self._last_look: float | None = None
        self.alarm = Alarm()

    async def step(self) -> Wait:
        """Watch all sessions once; rescue those that have ended."""
        sessions = await self._store.watched()
        now = self._env.clock.monotonic()
        if self._last_look is None or now - self._last_look > self._stall:
            self._watched.clear()
        self._last_look = now
        again = False
        for id, state, last_seen, owns in sessions:
            if state in ("live", "draining"):
                again |= await self._expire(id, last_seen, now)
            elif owns:
                await self._rescue(id, charge=state == "lost")
        live = {id for id, state, _, _ in sessions if state in ("live", "draining")}
        self._watched = {id: watch for id, watch in self._watched.items() if id in live}
        return 0.0 if again else min(LOOK, self._timeout / 3)

    @property
    def _stall(self) -> float:
        """A pause between two looks after which what was watched before proves nothing."""
        return max(3.0, self._timeout / 3) + LOOK

    async def _expire(self, id: UUID, last_seen: Instant, now: float) -> bool:
        watch = self._watched.get(id)
        if watch is None or watch.last_seen != last_seen:
            self._watched[id] = _Watch(last_seen, now)
            return False
        if now - watch.since < self._timeout or not self._clock.trusted:
            return False
        del self._watched[id]
        if not await self._store.mark_lost(id, last_seen):
            return False
        session = await self._store.session(id)
        log.warning("worker lost", worker=session.worker if session is not None else "", session=str(id))
        namespace = session.namespace if session is not None else 0
        self._hints.send(Hint(sessions=[id], events=[Event("worker", id, "lost", namespace, self._env.now())]))
        return True

    async def _rescue(self, id: UUID, *, charge: bool) -> None:
        """Take everything back, batch by batch."""
        while True:
            effects = await self._store.rescue(id, self._batch, charge=charge)
            if effects is None:
                return
            self._outcomes.settled(effects)
            moved = sum(m.hi - m.lo for m in effects.moved) + sum(e.hi - e.lo for e in effects.ended)
            if not moved:
                return
