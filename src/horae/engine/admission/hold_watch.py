"""What is held: known to every server, and ended when its time is over.

That nothing of it is started is kept by the claims themselves; what is known here spares them the attempt, tells people
why something waits, and lets claims begin as soon as a hold has ended.
"""

import asyncio
from uuid import UUID

import structlog

from horae.engine.base.clockwatch import ClockWatch
from horae.engine.base.hints import Hint, Hints
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.executions.promoter import until
from horae.engine.service import Alarm, Wait
from horae.engine.topics import Topics
from horae.env import Env, Instant
from horae.model.admission.hold import Hold, longest, next_change, until_text, why_held
from horae.model.base.event import Event
from horae.store.admission import holds
from horae.store.contract import Store

log = structlog.get_logger("horae.engine")


class HoldWatch:
    """Ends what is over, follows windows from opening to opening, and tells the directory which queues are held.

    It sleeps until the next hold begins or ends, and looks once a second for what no hint told of.
    """

    name = "holds"

    def __init__(
        self, env: Env, store: Store, directory: LocalDirectory, hints: Hints, clock: ClockWatch, happenings: Topics
    ) -> None:
        self._env, self._store, self._directory, self._hints, self._clock = env, store, directory, hints, clock
        self._happenings = happenings
        self.known: list[Hold] = []  # those that have not ended
        self._before: dict[UUID, Hold] | None = None  # those that held at the last look
        self._turn = asyncio.Lock()
        self.alarm = Alarm()
        hints.listen(self._on_hint)

    def _on_hint(self, hint: Hint) -> None:
        if hint.holds:
            self.alarm.ring()

    async def step(self) -> Wait:
        """End what is due, and learn what is held now."""
        async with self._turn:
            self.known = await self._store.read(holds.all_open)
            now = self._env.now()
            if self._clock.trusted and any(h.until_at is not None and h.until_at <= now for h in self.known):
                await self._end_due(now)
            self._tell(self._env.now())
        return until(next_change(self.known, self._env.now()), self._env.now())

    async def _end_due(self, now: Instant) -> None:
        turned = await self._store.write(lambda: holds.turn(now))
        for hold in turned.troubled:
            log.error("the calendar of a window cannot be told", calendar=hold.calendar, hold=str(hold.id))
        for hold in turned.ended:
            log.info("hold is over", hold=str(hold.id), reason=hold.reason, calendar=hold.calendar)
        if turned:
            self._hints.tell(Hint(holds=True))
        self.known = await self._store.read(holds.all_open)  # also what another server turned meanwhile

    def _tell(self, now: Instant) -> None:
        """Let the directory know, and this server's people of what began or ended; others see it by themselves."""
        queues = self._directory.queues.values()
        found = {queue.id: longest(self.known, queue.namespace, queue.id, now) for queue in queues}
        self._directory.hold({id: f"held {until_text(hold)}" for id, hold in found.items() if hold is not None})
        if self._directory.held:
            self._happenings.held(self._directory.held)
        holding = {hold.id: hold for hold in self.known if hold.state(now) == "open"}
        if self._before is not None:
            begun = [_event(hold, "open", now) for id, hold in holding.items() if id not in self._before]
            over = [_event(hold, "ended", now) for id, hold in self._before.items() if id not in holding]
            if begun or over:
                self._hints.tell_here(Hint(events=[*begun, *over]))
        self._before = holding

    def of_queue(self, namespace: int, queue: int) -> Hold | None:
        """What keeps a queue from starting anything; of several, what ends last."""
        return longest(self.known, namespace, queue, self._env.now())

    def why(self, namespace: int, queue: int, name: str) -> str | None:
        """Why nothing of a queue is started, for people."""
        hold = self.of_queue(namespace, queue)
        return None if hold is None else why_held(hold, name)

    def why_named(self, namespace: int, name: str) -> str | None:
        """The same of a queue by its name alone."""
        queues = self._directory.queues.values()
        found = next((queue for queue in queues if queue.namespace == namespace and queue.name == name), None)
        return None if found is None else self.why(namespace, found.id, name)


def _event(hold: Hold, state: str, now: Instant) -> Event:
    return Event("hold", hold.id, state, hold.namespace, now)
