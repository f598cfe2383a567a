"""Turns: an execution waits until the previous one of its trigger has ended, if they must not overlap."""

from uuid import UUID

from horae.engine.base.hints import Hint, Hints
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.executions.outcomes import Outcomes
from horae.engine.executions.promoter import CHECK_EVERY
from horae.engine.service import Alarm, Wait
from horae.engine.topics import Topics
from horae.env import Env
from horae.model.base.ids import index_of, parcel_of
from horae.model.executions.execution import FINAL
from horae.store.contract import Store
from horae.store.triggers import turns
from horae.store.triggers.turns import BlockedTurn

BATCH = 500  # keys read by one statement
SHARE = 20  # checks take at most 1/20 of the time
FORGET_EVERY = 60.0  # seconds between deletions of turns that are over
CANCELLED = "a newer fire of its trigger took its place"


class Turns:
    """Gives turns to the next executions.

    It checks every second, and at once when an execution ends whose job has executions that wait for a turn.
    """

    name = "turns"

    def __init__(
        self,
        env: Env,
        store: Store,
        directory: LocalDirectory,
        hints: Hints,
        outcomes: Outcomes,
        topics: Topics,
    ) -> None:
        self._outcomes = outcomes
        self._env, self._store, self._directory, self._hints = env, store, directory, hints
        self._jobs: set[UUID] = set()  # jobs with executions that wait for a turn
        self._asked: dict[str, UUID] = {}  # by key, the holder that was asked to stop
        self._forget_at, self._forgotten = 0.0, ""
        self.alarm = Alarm()
        hints.listen(self._on_hint)
        topics.blocked.subscribe(self.name, lambda _: self.alarm.ring())

    def _on_hint(self, hint: Hint) -> None:
        if any(event.job in self._jobs and event.state in FINAL for event in hint.events):
            self.alarm.ring()

    async def step(self) -> Wait:
        """Check every key with a waiting execution."""
        began = self._env.clock.monotonic()
        jobs: set[UUID] = set()
        cancelling: dict[str, UUID] = {}
        after = ""
        while True:
            found = await self._store.read(lambda: turns.blocked(after, BATCH))  # noqa: B023
            for blocked in found:
                jobs.add(blocked.job)
                await self._check(blocked, cancelling)
            if len(found) < BATCH:
                break
            after = found[-1].key
        self._jobs, self._asked = jobs, cancelling
        if began >= self._forget_at:
            self._forget_at = began + FORGET_EVERY
            self._forgotten = await self._store.write(lambda: turns.forget(self._forgotten, BATCH))
        return max(CHECK_EVERY, SHARE * (self._env.clock.monotonic() - began))

    async def _check(self, blocked: BlockedTurn, cancelling: dict[str, UUID]) -> None:
        if blocked.holder is None:
            done = await self._store.change(
                lambda now: turns.pass_on(blocked.key, self._directory.rank, self._env.new_id, now)
            )
            self._hints.send(Hint(lanes=done.lanes, wake_at=done.wake_at))
        elif blocked.cancels:
            cancelling[blocked.key] = blocked.holder
            if self._asked.get(blocked.key) != blocked.holder:
                await self._cancel(blocked.holder, blocked.job)

    async def _cancel(self, holder: UUID, job: UUID) -> None:
        verdict, session = await self._store.cancel(parcel_of(holder), index_of(holder), CANCELLED)
        if session is not None:
            self._outcomes.publish_request(session)
        if verdict == "cancelled":
            self._outcomes.publish_cancelled(job)
        if verdict in ("cancelled", "ended"):
            self.alarm.ring()
