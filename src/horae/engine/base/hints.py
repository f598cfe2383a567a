"""Hints: messages that wake services on this and the other servers after a change.

They are sent on the leading edge: the first hint after 100 quiet milliseconds is sent at once, later ones are gathered
into one message. A lost hint costs time, never work, because every service also checks periodically.
"""

from collections.abc import Callable
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.engine.service import Alarm, Wait
from horae.env import Env, Instant
from horae.model.base.event import ChangeEvent, limit_events
from horae.store.contract import Store

QUIET = 0.1  # seconds between two messages
MANY = 1 << 20  # executions: stands for an unknown amount
MOST_EVENTS = 50  # events in one hint; clients that missed events fetch the state anew
MOST_BYTES = 7_500  # PostgreSQL refuses payloads of 8,000


class Hint(Struct, omit_defaults=True, rename="camel"):
    """A set of changes, in one message to all servers."""

    sender: UUID | None = None
    lanes: dict[int, int] = {}  # lane -> lowest rank that was added
    amounts: dict[int, int] = {}  # lane -> number of executions added; a missing entry means unknown
    wake_at: Instant | None = None  # when the next slice on `waiting` is due
    fire_at: Instant | None = None  # when the next trigger is due
    sessions: list[UUID] = []  # sessions with a request for their worker, or that have ended
    jobs: list[UUID] = []  # jobs that changed
    events: list[ChangeEvent] = []  # for clients that follow events
    accept_clock: bool = False  # an administrator accepted the store's present time
    holds: bool = False  # a hold began or ended
    queues: bool = False  # a queue was defined or changed
    quotas: bool = False  # a namespace got another quota

    def __bool__(self) -> bool:
        changes = (self.lanes, self.sessions, self.jobs, self.events, self.accept_clock, self.holds, self.queues)
        return any(changes) or self.quotas or self.wake_at is not None or self.fire_at is not None


def add_amounts(amounts: dict[int, int], hint: Hint) -> None:
    """Add the amounts of a hint's lanes. An unknown amount stays unknown after any addition."""
    for lane in hint.lanes:
        amounts[lane] = min(MANY, amounts.get(lane, 0) + hint.amounts.get(lane, MANY))


def earlier(a: Instant | None, b: Instant | None) -> Instant | None:
    return b if a is None else a if b is None else min(a, b)


class Hints:
    """Delivers hints to listeners of this process at once, and to other servers in gathered messages."""

    name = "hints"

    def __init__(self, env: Env, store: Store, node: UUID) -> None:
        self._env, self._store, self._node = env, store, node
        self._listeners: list[Callable[[Hint], None]] = []
        self._pending = Hint()
        self._quiet_until = 0.0
        self.alarm = Alarm()

    def listen(self, listener: Callable[[Hint], None]) -> None:
        """Call a listener with every hint, from this server and from others."""
        self._listeners.append(listener)

    def send(self, hint: Hint) -> None:
        """Send a hint to this and all other servers."""
        if not hint:
            return
        self.send_locally(hint)
        self._gather(hint)
        self.alarm.ring()

    def send_locally(self, hint: Hint) -> None:
        """Send a hint to listeners of this server only, because the other servers find the change by themselves."""
        for listener in self._listeners:
            listener(hint)

    def _gather(self, hint: Hint) -> None:
        pending = self._pending
        add_amounts(pending.amounts, hint)
        for lane, rank in hint.lanes.items():
            pending.lanes[lane] = min(rank, pending.lanes.get(lane, rank))
        pending.wake_at = earlier(pending.wake_at, hint.wake_at)
        pending.fire_at = earlier(pending.fire_at, hint.fire_at)
        pending.accept_clock |= hint.accept_clock
        pending.holds |= hint.holds
        pending.queues |= hint.queues
        pending.quotas |= hint.quotas
        pending.sessions += hint.sessions
        pending.jobs += hint.jobs
        pending.events = limit_events(pending.events + hint.events, MOST_EVENTS)

    async def connect(self) -> None:
        """Begin to receive hints of other servers."""
        await self._store.database.listen(self._receive)

    def _receive(self, payload: str) -> None:
        hint = msgspec.json.decode(payload, type=Hint)
        if hint.sender != self._node:
            self.send_locally(hint)

    async def step(self) -> Wait:
        """Send the gathered hints, unless the last message was sent less than 100 ms ago."""
        now = self._env.clock.monotonic()
        if not self._pending or not self._store.database.is_shared:
            self._pending = Hint()
            return 60.0
        if now < self._quiet_until:
            return self._quiet_until - now
        hint, self._pending = self._pending, Hint()
        hint.sender = self._node
        await self._store.database.notify(_fit(hint))
        self._quiet_until = now + QUIET
        return QUIET


def _fit(hint: Hint) -> str:
    """Encode a hint. If it is too long, drop its events, then sessions, jobs and lanes until it fits.

    Dropped events leave a note for clients, which is dropped last.
    """
    text = msgspec.json.encode(hint).decode()
    smaller: list[tuple[str, object]] = [("events", limit_events(hint.events, 0)), ("sessions", []), ("jobs", [])]
    for field, less in [*smaller, ("lanes", {}), ("events", [])]:
        if len(text) <= MOST_BYTES:
            break
        setattr(hint, field, less)
        hint.amounts = hint.amounts if hint.lanes else {}
        text = msgspec.json.encode(hint).decode()
    return text
