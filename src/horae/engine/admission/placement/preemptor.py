"""The preemptor: queued executions that may preempt take the slots of less urgent running ones."""

from collections.abc import Collection

import structlog

from horae.engine.base.hints import Hint, Hints
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.service import Alarm, Wait
from horae.env import Env
from horae.model.admission.placement.placement import PLAIN, read_needs
from horae.model.admission.placement.preempt import ONE_SLOT, Cost
from horae.model.fleet.session import Session
from horae.store.admission.placement import preempt
from horae.store.contract import Store

INTERVAL = 1.0  # seconds between two checks without a hint
SHORTEST = 0.1  # seconds between two checks with hints
MOST_LANES = 10_000
log = structlog.get_logger("horae.engine")


class Preemptor:
    """Asks preemptible executions to stop where more urgent ones wait for their slots."""

    name = "preemptor"

    def __init__(self, env: Env, store: Store, directory: LocalDirectory, hints: Hints) -> None:
        self._env, self._store, self._directory, self._hints = env, store, directory, hints
        # Lanes in which executions that may preempt have waited: a hint about one of them wakes this service.
        self._lanes: set[int] = set()
        self._checked_at = 0.0
        self.requested = 0  # executions that this server asked to stop
        self.alarm = Alarm()
        hints.listen(self._on_hint)

    def _on_hint(self, hint: Hint) -> None:
        if not self._lanes.isdisjoint(hint.lanes):
            self.alarm.ring()

    async def step(self) -> Wait:
        """Find queued executions that may preempt, and choose running ones to stop in each of their namespaces."""
        now = self._env.clock.monotonic()
        early = self._checked_at + SHORTEST - now
        if early > 0:
            return early
        self._checked_at = now
        if not self._directory.expected_amount():
            return INTERVAL
        lanes, paused = self._directory.preempting_lanes, self._directory.paused
        waiting = await self._store.read(lambda: preempt.waiters(lanes, paused))
        for namespace, waiters in waiting.items():
            if len(self._lanes) < MOST_LANES:
                self._lanes.update(waiting_slice.lane for waiting_slice, _ in waiters)
            await self._decide(namespace, lanes)
        return INTERVAL

    async def _decide(self, namespace: int, lanes: Collection[int]) -> None:
        rules = preempt.PreemptRules(may_take=self._may_take, cost=self._cost, capacity=_capacity)
        now, paused = self._env.now(), self._directory.paused
        done = await self._store.write(lambda: preempt.preempt(namespace, lanes, paused, rules, now))
        if not done.items:
            return
        self.requested += done.items
        log.info("running executions are preempted", executions=done.items, sessions=len(done.sessions))
        self._hints.send(Hint(sessions=done.sessions, lanes=done.lanes))

    def _may_take(self, session: Session) -> frozenset[int]:
        """Return the lanes that a session may take from, except lanes at their limit, because those preempt nothing."""
        return self._directory.lanes_for(session) - self._directory.full.lanes

    def _cost(self, lane: int) -> Cost:
        """Return the slots and resources that an execution of a lane takes; one slot when the lane is unknown here."""
        known = self._directory.lanes.get(lane)
        cost = read_needs(known.needs).cost if known else PLAIN
        return {"slots": cost.slots, **dict(cost.resources)} if cost else ONE_SLOT


def _capacity(session: Session) -> Cost:
    return {"slots": session.concurrency, **session.presence.resources}
