"""The holds service: every server reads the holds in force, and ends holds whose time is over.

Each claim leaves out held executions by itself. With the copy in memory, this server does not even try such claims, can
explain to users why an execution waits, and claims again as soon as a hold has ended.
"""

import asyncio
from uuid import UUID

import structlog

from horae.engine.base.clockwatch import ClockWatch
from horae.engine.base.hints import Hint, Hints
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.executions.promoter import wait_until
from horae.engine.service import Alarm, Wait
from horae.engine.topics import Topics
from horae.env import Env, Instant
from horae.model.admission.hold import Hold, longest_hold, next_change, until_text, why_held
from horae.model.base.event import ChangeEvent
from horae.store.admission import holds
from horae.store.contract import Store

log = structlog.get_logger("horae.engine")


class HoldWatch:
    """Ends holds that are over, moves maintenance windows to their next opening, and sets the directory's held queues.

    It sleeps until the next hold begins or ends, but for a second at most, because a hint about a change may be lost.
    """

    name = "holds"

    def __init__(
        self, env: Env, store: Store, directory: LocalDirectory, hints: Hints, clock: ClockWatch, topics: Topics
    ) -> None:
        self._env, self._store, self._directory, self._hints, self._clock = env, store, directory, hints, clock
        self._topics = topics
        self.not_ended: list[Hold] = []  # holds that have not ended
        self._in_force_before: dict[UUID, Hold] | None = None  # the holds in force at the last check
        self._lock = asyncio.Lock()
        self.alarm = Alarm()
        hints.listen(self._on_hint)

    def _on_hint(self, hint: Hint) -> None:
        if hint.holds:
            self.alarm.ring()

    async def step(self) -> Wait:
        """End the holds that are due, and read those in force."""
        async with self._lock:
            self.not_ended = await self._store.read(holds.all_open)
            now = self._env.now()
            if self._clock.trusted and any(
                hold.until_at is not None and hold.until_at <= now for hold in self.not_ended
            ):
                await self._end_due(now)
            self._publish(self._env.now())
        return wait_until(next_change(self.not_ended, self._env.now()), self._env.now())

    async def _end_due(self, now: Instant) -> None:
        turned = await self._store.write(lambda: holds.advance(now))
        for hold in turned.troubled:
            log.error("the calendar of a window cannot be evaluated", calendar=hold.calendar, hold=str(hold.id))
        for hold in turned.ended:
            log.info("hold is over", hold=str(hold.id), reason=hold.reason, calendar=hold.calendar)
        if turned:
            self._hints.send(Hint(holds=True))
        self.not_ended = await self._store.read(holds.all_open)  # without holds that any server ended meanwhile

    def _publish(self, now: Instant) -> None:
        """Update the directory, and send events of changes to this server's listeners.

        The events are not sent to other servers, because each of them finds the changes by itself.
        """
        queues = self._directory.queues.values()
        found = {queue.id: longest_hold(self.not_ended, queue.namespace, queue.id, now) for queue in queues}
        self._directory.set_held(
            {queue: f"held {until_text(hold)}" for queue, hold in found.items() if hold is not None}
        )
        if self._directory.held:
            self._topics.held(self._directory.held)
        holding = {hold.id: hold for hold in self.not_ended if hold.state(now) == "active"}
        if self._in_force_before is not None:
            begun = [
                _event(hold, "active", now) for hold_id, hold in holding.items() if hold_id not in self._in_force_before
            ]
            over = [
                _event(hold, "ended", now) for hold_id, hold in self._in_force_before.items() if hold_id not in holding
            ]
            if begun or over:
                self._hints.send_locally(Hint(events=[*begun, *over]))
        self._in_force_before = holding

    def hold_of_queue(self, namespace: int, queue: int) -> Hold | None:
        """Return the hold that stops a queue: if there are several, the one that ends last."""
        return longest_hold(self.not_ended, namespace, queue, self._env.now())

    def explain(self, namespace: int, queue: int, name: str) -> str | None:
        """Return the reason why a queue starts nothing, in words; None when it is not held."""
        hold = self.hold_of_queue(namespace, queue)
        return None if hold is None else why_held(hold, name)

    def explain_named(self, namespace: int, name: str) -> str | None:
        """Return the reason why the queue of this name starts nothing; None when it is not held or not known."""
        queues = self._directory.queues.values()
        found = next((queue for queue in queues if queue.namespace == namespace and queue.name == name), None)
        return None if found is None else self.explain(namespace, found.id, name)


def _event(hold: Hold, state: str, now: Instant) -> ChangeEvent:
    return ChangeEvent("hold", hold.id, state, hold.namespace, now)
