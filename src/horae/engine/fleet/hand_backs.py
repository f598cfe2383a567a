"""Hand-backs: workers return prefetched executions when a more urgent one waits, or when their queue is held.

A server remembers the sessions to which it granted more executions than they had idle slots. When such a session asks
for work for idle slots, it has begun all of its earlier executions. If an execution with a much lower rank enters a
lane of these sessions, and no worker takes it at once, one session is asked to hand back its prefetched executions; for
several such executions, several sessions are asked. When a queue is held, all sessions are asked.
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
from horae.model.executions.slice import RunningSlice
from horae.model.fleet.protocol import Exchange, Range
from horae.store.admission.placement import prefetch
from horae.store.contract import Store

SOON = 0.02  # seconds in which an idle slot would take a new execution
# A worker is asked once in this many seconds, with a burst after a quiet time: occasional urgent executions start at
# once, and a steady stream of them (such as retries) does not keep short jobs from being prefetched.
PAUSE, BURST = 1.0, 8
IDLE = 60.0  # seconds between steps while no execution must be checked
LAST = 1 << 62  # greater than every rank
LanesOf = Callable[[UUID], frozenset[int]]
PreferencesOf = Callable[[UUID], QueuePreferences | None]


class HandBacks:
    """Selects the sessions that hand back prefetched executions. As a service, it sends the requests."""

    name = "hand-backs"

    def __init__(
        self,
        env: Env,
        store: Store,
        directory: LocalDirectory,
        hints: Hints,
        topics: Topics,
        lanes_of: LanesOf,
        preferences_of: PreferencesOf,
    ) -> None:
        self._env, self._store, self._directory, self._hints = env, store, directory, hints
        self._lanes_of, self._preferences_of = lanes_of, preferences_of
        self._ready: dict[UUID, dict[int, int]] = {}  # session -> queue -> highest prefetched rank
        self._top: dict[int, int] = {}  # queue -> upper bound of the prefetched ranks of all sessions
        self._new: dict[int, tuple[float, int]] = {}  # lane with urgent executions -> time of its check, and queue
        self._asked_until: dict[UUID, float] = {}  # session -> the time at which its earlier requests no longer count
        # Session -> queue and rank of the urgent execution, and whether other queues' executions are handed back, too.
        self._due: dict[UUID, tuple[int, int, bool]] = {}
        self._held_of: dict[UUID, set[int]] = {}  # session -> held queues, of which it hands back everything
        self.alarm = Alarm()
        hints.listen(self._on_hint)
        topics.held.subscribe(self.name, self.hold)

    def note(self, session: UUID, up: Exchange, granted: Sequence[RunningSlice]) -> None:
        """Record the grants of an answer.

        A session that asked for idle slots has begun its earlier prefetched executions.
        """
        if up.free:
            self._ready.pop(session, None)
        if up.prefetch and granted and sum(running.hi - running.lo for running in granted) > up.free:
            ready = self._ready.setdefault(session, {})
            for running in granted:
                ready[running.queue] = max(running.rank, ready.get(running.queue, running.rank))
                self._top[running.queue] = max(running.rank, self._top.get(running.queue, running.rank))
            if self._directory.held:  # the hold may have begun after the claim and before this answer
                self.hold(self._directory.held)

    def hold(self, queues: Collection[int]) -> None:
        """Request the prefetched executions of held queues from all sessions."""
        sessions = []
        for session, ready in list(self._ready.items()):
            held_here = ready.keys() & queues
            if not held_here:
                continue
            self._held_of.setdefault(session, set()).update(held_here)
            self._ready[session] = {queue: rank for queue, rank in ready.items() if queue not in held_here}
            sessions.append(session)
        if sessions:
            self._hints.send_locally(Hint(sessions=sessions))

    def forget(self, session: UUID) -> None:
        for known in (self._ready, self._asked_until, self._due, self._held_of):
            known.pop(session, None)

    def _on_hint(self, hint: Hint) -> None:
        if not self._ready or not hint.lanes:
            return
        for lane, rank in hint.lanes.items():
            known = self._directory.lanes.get(lane)
            if known is not None and lane not in self._new and self._is_behind(known.queue, rank):
                self._new[lane] = self._env.clock.monotonic() + SOON, known.queue
                self.alarm.ring()

    def _is_behind(self, queue: int, rank: int) -> bool:
        """Return whether a session holds a prefetched execution that must not go before one of this rank.

        Usually the comparison with the highest prefetched rank of the queue is enough.
        """
        if self._top.keys() <= {queue} and not goes_before(rank, self._top.get(queue, rank)):
            return False
        return any(self._goes_before(session, queue, rank) for session in self._ready)

    def _goes_before(self, session: UUID, queue: int, rank: int) -> bool:
        """Return whether an execution of this rank precedes a prefetched one of a session.

        Ranks are compared within one queue only.
        """
        ready = self._ready[session]
        return (queue in ready and goes_before(rank, ready[queue])) or self._before_others(session, queue, rank)

    def _before_others(self, session: UUID, queue: int, rank: int) -> bool:
        """Return whether an execution precedes a session's prefetched executions of other queues.

        It does if others were preempted for it, or if the session serves its queues in a strict order.
        """
        others = [held for held in self._ready[session] if held != queue]
        if is_in_front(rank):
            return bool(others)
        preferences = self._preferences_of(session) if others else None
        return (
            preferences is not None
            and preferences.strict
            and any(preferences.place(queue) < preferences.place(held) for held in others)
        )

    async def step(self) -> Wait:
        """Request hand-backs for new executions that still wait after a moment."""
        now = self._env.clock.monotonic()
        due = {lane: queue for lane, (at, queue) in self._new.items() if at <= now}
        for lane in due:
            del self._new[lane]
        if due:
            await self._request(due, now)
        self._top = {queue: max(ready.get(queue, -LAST) for ready in self._ready.values()) for queue in self._held()}
        return min((at - now for at, _ in self._new.values()), default=IDLE)

    async def _request(self, lanes: dict[int, int], now: float) -> None:
        highest = {lane: self._highest(queue) for lane, queue in lanes.items()}
        wanted = [(lane, rank) for lane, rank in highest.items() if rank is not None]
        found = await self._store.read(lambda: prefetch.fronts_of(wanted))
        sessions: list[UUID] = []
        for lane, first in sorted(found.items(), key=lambda entry: entry[1].rank):
            able = self._behind(lane, lanes[lane], first.rank, now)
            for session in able[: first.count]:
                others = self._before_others(session, lanes[lane], first.rank)
                self._due[session] = lanes[lane], first.rank, others
                self._asked_until[session] = max(self._asked_until.get(session, now), now) + PAUSE
                self._ready.pop(session, None)
                sessions.append(session)
        if sessions:
            self._hints.send_locally(Hint(sessions=sessions))

    def _held(self) -> set[int]:
        return {queue for ready in self._ready.values() for queue in ready}

    def _highest(self, queue: int) -> int | None:
        """Return the highest rank at which an execution of a queue may precede a prefetched one.

        If a session holds only executions of other queues, every rank may.
        """
        if any(queue not in ready for ready in self._ready.values()):
            return LAST
        return max((ready[queue] - MARGIN for ready in self._ready.values()), default=None)

    def _behind(self, lane: int, queue: int, rank: int, now: float) -> list[UUID]:
        """Return sessions that serve the lane and hold a prefetched execution behind this one, highest rank first."""
        able = [
            (ready.get(queue, 0), session)
            for session, ready in self._ready.items()
            if self._goes_before(session, queue, rank)
            and lane in self._lanes_of(session)
            and self._asked_until.get(session, now) <= now + BURST * PAUSE
        ]
        return [session for _, session in sorted(able, reverse=True)]

    async def take(self, session: UUID) -> list[Range]:
        """Return the ranges that a session must hand back, and forget the requests if they could be read."""
        held, due = self._held_of.pop(session, set()), self._due.pop(session, None)
        requests = [(queue, -LAST, False) for queue in sorted(held)]
        if due is not None and (due[2] or due[0] not in held):
            requests.append(due)
        found: dict[tuple[UUID, int], Range] = {}
        try:
            for queue, rank, others in requests:
                ranges = await self._store.read(lambda: prefetch.held_ready(session, queue, rank, others))  # noqa: B023
                found |= {(found_range.parcel, found_range.lo): found_range for found_range in ranges}
        except BaseException:
            if held:
                self._held_of.setdefault(session, set()).update(held)
            if due is not None:
                self._due.setdefault(session, due)
            raise
        return list(found.values())
