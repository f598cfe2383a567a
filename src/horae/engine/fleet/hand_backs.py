"""Hand-backs: what workers hold ready goes back when something that goes before it waits, or its queue is held.

A server remembers what it gave beyond idle slots, and to whom: a worker that asks for an idle slot has begun all of it.
When something that ranks well before that comes into a lane such a worker may take from, and nobody takes it at once,
as many workers as there are executions are told to hand back what has not begun. When a queue is held, all are.
"""

from collections.abc import Callable, Collection, Sequence
from uuid import UUID

from horae.engine.base.hints import Hint, Hints
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.service import Alarm, Wait
from horae.engine.topics import Topics
from horae.env import Env
from horae.model.admission.claim_plan import QueuePreferences
from horae.model.admission.placement.preempt import is_in_front
from horae.model.admission.placement.prefetch import MARGIN, goes_before
from horae.model.executions.slice import Running
from horae.model.fleet.protocol import Exchange, Range
from horae.store.admission.placement import prefetch
from horae.store.contract import Store

SOON = 0.02  # seconds within which an idle slot takes what comes
# A worker is asked this often, in seconds, and so many times more after a while: what is urgent now and then starts at
# once, and a steady stream of it (retries of a job that often fails) does not keep short jobs on the way.
PAUSE, BURST = 1.0, 8
IDLE = 60.0
LAST = 1 << 62  # after every rank
LanesOf = Callable[[UUID], frozenset[int]]
TasteOf = Callable[[UUID], QueuePreferences | None]


class HandBacks:
    """Decides who hands back what it holds ready. A service: its step asks."""

    name = "hand-backs"

    def __init__(
        self,
        env: Env,
        store: Store,
        directory: LocalDirectory,
        hints: Hints,
        topics: Topics,
        lanes_of: LanesOf,
        taste_of: TasteOf,
    ) -> None:
        self._env, self._store, self._directory, self._hints = env, store, directory, hints
        self._lanes_of, self._taste_of = lanes_of, taste_of
        self._ready: dict[UUID, dict[int, int]] = {}  # session -> queue -> the greatest rank it was given in advance
        self._top: dict[int, int] = {}  # queue -> no session holds anything ready that ranks after this
        self._came: dict[int, tuple[float, int]] = {}  # lane -> when to look whether what came there still waits
        self._asked_until: dict[UUID, float] = {}  # when all that was asked of a session is paid for
        self._due: dict[UUID, tuple[int, int, bool]] = {}  # session -> queue, rank; and whether other queues go back
        self._held_of: dict[UUID, set[int]] = {}  # session -> queues that are held, of which all goes back
        self.alarm = Alarm()
        hints.listen(self._on_hint)
        topics.held.subscribe(self.name, self.hold)

    def note(self, session: UUID, up: Exchange, granted: Sequence[Running]) -> None:
        """A session was answered: what it had in advance it has begun, if it asked for idle slots."""
        if up.free:
            self._ready.pop(session, None)
        if up.prefetch and granted and sum(s.hi - s.lo for s in granted) > up.free:
            ready = self._ready.setdefault(session, {})
            for slice in granted:
                ready[slice.queue] = max(slice.rank, ready.get(slice.queue, slice.rank))
                self._top[slice.queue] = max(slice.rank, self._top.get(slice.queue, slice.rank))
            if self._directory.held:  # it was claimed before the hold, and is answered after it
                self.hold(self._directory.held)

    def hold(self, queues: Collection[int]) -> None:
        """These queues are held: what sessions hold ready of them is not to begin."""
        asked = []
        for session, ready in list(self._ready.items()):
            mine = ready.keys() & queues
            if not mine:
                continue
            self._held_of.setdefault(session, set()).update(mine)
            self._ready[session] = {queue: rank for queue, rank in ready.items() if queue not in mine}
            asked.append(session)
        if asked:
            self._hints.send_locally(Hint(sessions=asked))

    def forget(self, session: UUID) -> None:
        for known in (self._ready, self._asked_until, self._due, self._held_of):
            known.pop(session, None)

    def _on_hint(self, hint: Hint) -> None:
        if not self._ready or not hint.lanes:
            return
        for lane, rank in hint.lanes.items():
            known = self._directory.lanes.get(lane)
            if known is not None and lane not in self._came and self._is_behind(known.queue, rank):
                self._came[lane] = self._env.clock.monotonic() + SOON, known.queue
                self.alarm.ring()

    def _is_behind(self, queue: int, rank: int) -> bool:
        """Whether some session holds something ready that this goes before; mostly one look tells that none does."""
        if self._top.keys() <= {queue} and not goes_before(rank, self._top.get(queue, rank)):
            return False
        return any(self._goes_before(session, queue, rank) for session in self._ready)

    def _goes_before(self, session: UUID, queue: int, rank: int) -> bool:
        """Whether this goes before something that a session holds ready. Ranks are of one queue."""
        ready = self._ready[session]
        return (queue in ready and goes_before(rank, ready[queue])) or self._before_others(session, queue, rank)

    def _before_others(self, session: UUID, queue: int, rank: int) -> bool:
        """Whether it goes before other queues: it is in front of all, or the session takes its queues in order."""
        others = [held for held in self._ready[session] if held != queue]
        if is_in_front(rank):
            return bool(others)
        taste = self._taste_of(session) if others else None
        return taste is not None and taste.strict and any(taste.place(queue) < taste.place(held) for held in others)

    async def step(self) -> Wait:
        """Ask for what is held behind what came a moment ago and still waits."""
        now = self._env.clock.monotonic()
        due = {lane: queue for lane, (at, queue) in self._came.items() if at <= now}
        for lane in due:
            del self._came[lane]
        if due:
            await self._look(due, now)
        self._top = {queue: max(ready.get(queue, -LAST) for ready in self._ready.values()) for queue in self._held()}
        return min((at - now for at, _ in self._came.values()), default=IDLE)

    async def _look(self, lanes: dict[int, int], now: float) -> None:
        highest = {lane: self._highest(queue) for lane, queue in lanes.items()}
        wanted = [(lane, rank) for lane, rank in highest.items() if rank is not None]
        found = await self._store.read(lambda: prefetch.fronts_of(wanted))
        asked: list[UUID] = []
        for lane, first in sorted(found.items(), key=lambda one: one[1].rank):
            able = self._behind(lane, lanes[lane], first.rank, now)
            for session in able[: first.count]:
                others = self._before_others(session, lanes[lane], first.rank)
                self._due[session] = lanes[lane], first.rank, others
                self._asked_until[session] = max(self._asked_until.get(session, now), now) + PAUSE
                self._ready.pop(session, None)
                asked.append(session)
        if asked:
            self._hints.send_locally(Hint(sessions=asked))

    def _held(self) -> set[int]:
        return {queue for ready in self._ready.values() for queue in ready}

    def _highest(self, queue: int) -> int | None:
        """Up to which rank it is worth a look; where only other queues are held, that of any."""
        if any(queue not in ready for ready in self._ready.values()):
            return LAST
        return max((ready[queue] - MARGIN for ready in self._ready.values()), default=None)

    def _behind(self, lane: int, queue: int, rank: int, now: float) -> list[UUID]:
        """Who holds something ready that this goes before, and could run it; who holds the last of it first."""
        able = [
            (ready.get(queue, 0), session)
            for session, ready in self._ready.items()
            if self._goes_before(session, queue, rank)
            and lane in self._lanes_of(session)
            and self._asked_until.get(session, now) <= now + BURST * PAUSE
        ]
        return [session for _, session in sorted(able, reverse=True)]

    async def take(self, session: UUID) -> list[Range]:
        """What a session is to hand back, told once."""
        asked = [(queue, -LAST, False) for queue in sorted(self._held_of.pop(session, ()))]
        due = self._due.pop(session, None)
        if due is not None and (due[2] or due[0] not in {queue for queue, _, _ in asked}):
            asked.append(due)
        found: dict[tuple[UUID, int], Range] = {}
        for queue, rank, others in asked:
            ranges = await self._store.read(lambda: prefetch.held_ready(session, queue, rank, others))  # noqa: B023
            found |= {(one.parcel, one.lo): one for one in ranges}
        return list(found.values())
