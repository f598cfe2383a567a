"""A worker's session with the servers: the exchange protocol as a state machine without I/O.

Whoever drives it (the loop over HTTP, or the simulation over a network that loses and repeats) calls `next_exchange`
until it has nothing to say, sends each exchange until one answer comes, and hands that to `answered`. It works on what
`take` gives it and hands it back with `finish`. Nothing in here waits, and time comes from the clock it is given.

Promises: an unanswered exchange is repeated as the identical object; an answer counts once; a granted item is begun
at most once and stays held until an answered exchange has carried its outcome; nothing is begun when the session may
have expired.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from uuid import UUID

import msgspec

from horae.env import SECOND, Clock, Instant
from horae.model.fleet.protocol import Answer, Exchange, Progress, Range, Registered, Started
from horae.worker.appetite import BREATH, fetch_ahead, free_room, free_slots
from horae.worker.code.failure import TIMED_OUT
from horae.worker.code.refusal import lighten
from horae.worker.holding import RELEASED, Chunk, EndedItem, Item, ItemOutcome, StartedItem
from horae.worker.interrupts import Interrupt, InterruptKind, do
from horae.worker.logs.log_queue import Key, Line
from horae.worker.outbox import ExchangeLoad, Outbox, key_of
from horae.worker.pace import DurationEstimates
from horae.worker.stock import Stock
from horae.worker.telling import OnEnded

MARGIN = 3.0  # seconds before the session's timeout after which nothing is begun
TOLD_AFTER = 1.0  # seconds that an item runs before its start is told: short ones are not worth it
FLUSH = 0.2  # seconds that log lines, progress and starts wait for company
POLLS, CARRIERS = 2, 2  # exchanges that wait for work, and that do not, in flight at once


class ExchangeChannel:
    """One numbered line to the servers, with its unanswered exchange."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.n = 0
        self.exchange: Exchange | None = None


class WorkerSession:
    """The worker's side of one registered session."""

    def __init__(
        self,
        clock: Clock,
        registered: Registered,
        slots: int,
        pace: DurationEstimates | None = None,
        resources: Mapping[str, int] | None = None,
    ) -> None:
        self.id: UUID = registered.session_id
        self.log_limit = registered.log_limit  # bytes that an attempt may write
        self.fence = 0.0  # monotonic time from which nothing is begun
        self.draining = False
        self.ended = False
        self.on_ended: OnEnded | None = None  # told of what ran
        self.pace = pace or DurationEstimates()
        self.stock = Stock(clock, self.pace, slots, resources)
        self.outbox = Outbox()
        self._clock = clock
        timeout = registered.session_timeout / SECOND
        self._trust = timeout - min(MARGIN, timeout / 5)
        # Short enough that every second poll renews the trust in time.
        self.patience = min(registered.heartbeat, int(self._trust * 0.45 * SECOND))
        self._channels = [ExchangeChannel(number) for number in range(POLLS + CARRIERS)]
        self._offsets: deque[int] = deque(maxlen=16)
        self._told: set[Key] = set()  # starts that the server was told of
        self._told_draining = False
        self._look_at = self._flush_at = 0.0
        self._asked_free_at = clock.monotonic()  # while no slot is idle, nothing is fetched ahead for long after it
        self._learn(registered.now, clock.monotonic())

    # Exchanges

    def next_exchange(self) -> Exchange | None:
        """A new exchange to send now, on a channel of its own; None when there is nothing to say or none is idle."""
        channel = next((c for c in self._channels if c.exchange is None), None)
        if channel is None or self.ended:
            return None
        self._look_around()
        inflight = self.unanswered()
        polls = [exchange for exchange in inflight if exchange.wait]
        if self._has_to_tell() and len(inflight) - len(polls) < CARRIERS:
            return self._open(channel, 0, *self._wants(inflight))
        return self._poll(channel, inflight, polls)

    def unanswered(self) -> list[Exchange]:
        """What is to be repeated until it is answered."""
        return [channel.exchange for channel in self._channels if channel.exchange is not None]

    def answered(self, exchange: Exchange, answer: Answer, sent_at: float) -> list[Interrupt]:
        """Take an answer in; a second one to the same exchange changes nothing.

        `sent_at` is when the answered request went out by the monotonic clock. Returns what runners must be told.
        """
        channel = self._channels[exchange.channel]
        if self.ended or channel.exchange is None or channel.n != exchange.n:
            return []
        sent, channel.exchange = channel.exchange, None
        self.outbox.logs.heard(sent.logs)
        for outcome in sent.outcomes:
            self.stock.heard(outcome.parcel, outcome.lo, outcome.hi, outcome.attempt)
        self._learn(answer.now, sent_at)
        for grant in answer.slices:
            self.stock.hold(grant, answer)
        if answer.hand_back:
            self._hand_back(answer.hand_back)
        if answer.drain or self.draining:
            self.drain()
        return [found for request in answer.requests if (found := do(request, self.stock, self.outbox))]

    def refused(self, exchange: Exchange, reason: str, index: int | None = None) -> Exchange | None:
        """The server will not read this exchange and nothing came of it: what to send instead under the same number.

        It is halved until what is at fault stands alone, unless the server names the `index` of an outcome: an outcome
        becomes a failure, a log line word of its refusal.
        None when there is nothing left to leave out: the server and this session do not understand each other.
        """
        channel = self._channels[exchange.channel]
        if self.ended or channel.exchange is not exchange:
            return None
        load = ExchangeLoad(exchange.outcomes, exchange.started, exchange.progress, exchange.logs)
        if not load:
            return None
        keep, back = lighten(load, reason, index)
        self.outbox.give_back(load, keep, back)
        channel.exchange = msgspec.structs.replace(
            exchange, outcomes=keep.outcomes, started=keep.started, progress=keep.progress, logs=keep.logs
        )
        return channel.exchange

    def end(self) -> list[Interrupt]:
        """The session is over: forget everything. What runs must stop, and nobody will hear of it."""
        if self.ended:
            return []
        interrupts = self.interrupt_all("lost")
        self.ended = True
        self.fence = 0.0
        for channel in self._channels:
            channel.exchange = None
        self.outbox.clear()
        self.stock.clear()
        return interrupts

    # Work

    def take(self) -> Chunk | None:
        """Work for an idle slot, if there is any and the session is trusted. Its items are begun by `Chunk.begin`."""
        if self.ended or self._clock.monotonic() >= self.fence:
            return None
        return self.stock.take(self)

    def collect(self, chunk: Chunk) -> None:
        """Take over what a chunk has ended so far."""
        endings = chunk.collect()
        if not endings or self.ended:
            return
        if chunk.pile.references:
            endings = [_covered(ending) for ending in endings]
        self.outbox.end(endings)
        if self.on_ended is not None:
            self.on_ended(self, chunk.pile, endings)
        started, ended = endings[0][2], endings[-1][3]
        if started is not None and ended is not None:
            self.pace.note(chunk.pile.job, len(endings), max(0.0, ended - started))

    def finish(self, chunk: Chunk) -> None:
        """A slot is done with a chunk: what it ended is told, what it did not begin goes back to the pile."""
        self.collect(chunk)
        self.stock.finish(chunk)

    def refuse(self, item: Item, fate: ItemOutcome) -> None:
        """End an item that was taken and cannot begin."""
        self.outbox.end([(*item, None, None, fate)])

    def decide(self, chunk: Chunk, begun: StartedItem, fate: ItemOutcome) -> bool:
        """End an item without waiting for its runner; False when it has just ended by itself."""
        decided = chunk.end(begun, self._clock.monotonic(), fate)
        self.collect(chunk)
        return decided

    def progress(self, item: Item, percent: float | None, message: str = "") -> None:
        """Tell how far a running item is; without that, only that it lives."""
        parcel, index, attempt = key_of(item)
        if not self.ended:
            told = Progress(parcel=parcel, item=index, attempt=attempt, percent=percent, message=message)
            self.outbox.progress(told)

    def log(self, item: Item, seq: int, lines: Sequence[Line]) -> None:
        """Tell log lines of a running item; `seq` counts the lines of its attempt from 0."""
        if lines and not self.ended:
            self.outbox.logs.add(key_of(item), seq, lines)

    def show(self, item: Item, seq: int, open: list[Line]) -> None:
        """Show lines of a running item that have no end yet."""
        if not self.ended:
            self.outbox.logs.show(key_of(item), seq, open)

    def leave_out(self, item: Item, lines: int, size: int) -> None:
        """Tell how much of a running item's log is missing, with the line that was just told."""
        if not self.ended:
            self.outbox.logs.leave_out(key_of(item), lines, size)

    def instant(self, monotonic: float) -> Instant:
        """The server's time at a monotonic time."""
        return int(monotonic * SECOND) + self.outbox.offset

    def monotonic(self, instant: Instant) -> float:
        """The monotonic time at an instant of the server's clock."""
        return (instant - self.outbox.offset) / SECOND

    def holds(self, parcel: UUID, item: int, attempt: int) -> bool:
        """Whether this worker answers for an item: unstarted, running, or ended and not yet heard of."""
        return self.stock.lot(parcel, item, attempt) is not None

    # Leaving

    def drain(self) -> None:
        """Ask for nothing more and hand back what has not begun; what runs goes on."""
        self.draining = True
        for pile in self.stock.piles.values():
            self._release(self.stock.empty(pile))

    def interrupt_all(self, kind: InterruptKind) -> list[Interrupt]:
        """What to tell the runners so that everything stops."""
        return [Interrupt(chunk, begun, kind) for chunk, begun in self.stock.running()]

    def interrupt_preemptible(self, kind: InterruptKind) -> list[Interrupt]:
        """What to tell the runners so that everything stops that gives way to others."""
        specs = ((one, one.chunk.pile.spec) for one in self.interrupt_all(kind))
        return [one for one, spec in specs if spec is not None and spec.preemptible]

    @property
    def is_drained(self) -> bool:
        """Nothing is held, and the server has heard all there was to tell."""
        return self.draining and self._told_draining and self.stock.is_empty and not self.outbox

    # Time

    def tick(self) -> None:
        """Look after what takes longer than expected; to be called when `wake_at` has come, after idle slots `take`."""
        self.outbox.end([(lot, index, None, None, TIMED_OUT["start"]) for lot, index in self.stock.too_late()])
        for chunk in self.stock.stalled():
            self.collect(chunk)
            self.stock.put_back(chunk)
        for pile, items in self.stock.overdue().items():
            self.pace.note_running(pile.job, self._clock.monotonic() - self.stock.oldest(pile))
            self._release(items)
            self._asked_free_at = -inf

    def wake_at(self) -> float | None:
        """When `tick` or `next_exchange` may have something to do without any new event, by the monotonic clock."""
        look = self.stock.next_look()
        times = [] if look is None else [self._clock.monotonic() + look]
        if self.outbox.has_news:
            times.append(self._flush_at)
        late = self.stock.late_from()
        if late is not None:
            times.append(late)
        return min(times, default=None)

    # Inside

    def _wants(self, inflight: list[Exchange]) -> tuple[int, dict[UUID, int]]:
        """Idle slots and items to fetch ahead, beyond what unanswered exchanges ask for.

        A worker whose slots are always busy with short jobs takes a breath now and then, so that others get a turn.
        """
        if self.draining:
            return 0, {}
        free = free_slots(self.stock, inflight)
        starved = not free and self._clock.monotonic() - self._asked_free_at > BREATH
        return free, {} if starved else fetch_ahead(self.stock, inflight)

    def _poll(self, channel: ExchangeChannel, inflight: list[Exchange], polls: list[Exchange]) -> Exchange | None:
        """One exchange waits for work or news at any time; a second one when the first asks for no work.

        One that asks only for more of short jobs says nothing of idle slots: these are asked for beside it.
        """
        if self.is_drained or len(polls) == POLLS or any(poll.free for poll in polls):
            return None
        free, prefetch = self._wants(inflight)
        if free or not inflight or (prefetch and not any(poll.prefetch for poll in polls)):
            return self._open(channel, self.patience, free, prefetch)
        return None

    def _has_to_tell(self) -> bool:
        if self.outbox.has_outcomes or self.draining > self._told_draining:
            return True
        return self.outbox.has_news and (self.outbox.logs.presses or self._clock.monotonic() >= self._flush_at)

    def _open(self, channel: ExchangeChannel, wait: int, free: int, prefetch: dict[UUID, int]) -> Exchange:
        """Number an exchange. One that waits carries nothing, so that what is told is soon heard."""
        room = free_room(self.stock, self.unanswered()) if free and self.stock.room else {}
        load = ExchangeLoad() if wait else self.outbox.load()
        now = self._clock.monotonic()
        channel.n += 1
        self._told_draining = self.draining
        if not wait:
            self._flush_at = now + FLUSH
        if free:
            self._asked_free_at = now
        channel.exchange = Exchange(
            channel=channel.number,
            n=channel.n,
            free=free,
            room=room,
            prefetch=prefetch,
            wait=wait,
            draining=self.draining,
            outcomes=load.outcomes,
            started=load.started,
            progress=load.progress,
            logs=load.logs,
        )
        return channel.exchange

    def _learn(self, server_now: Instant, sent_at: float) -> None:
        """Renew the trust in the session from when the request left, and the offset from the quickest answers."""
        self.fence = max(self.fence, sent_at + self._trust)
        self._offsets.append(server_now - int(self._clock.monotonic() * SECOND))
        self.outbox.offset = max(self._offsets)

    def _look_around(self) -> None:
        """Now and then: tell once of every item that is not short, and forget unused piles."""
        now = self._clock.monotonic()
        if now < self._look_at:
            return
        patience = min(TOLD_AFTER, self.patience / SECOND)
        self._look_at = now + patience / 4
        long = {key_of(b[:2]): b[2] for _, b in self.stock.running() if now - b[2] >= patience}
        for key in long.keys() - self._told:
            at = self.instant(long[key])
            self.outbox.start(Started(parcel=key[0], lo=key[1], hi=key[1] + 1, attempt=key[2], at=at))
        self._told = set(long)
        self.stock.prune()

    def _release(self, items: Iterable[Item]) -> None:
        """Hand unstarted items back; it charges them nothing."""
        self.outbox.end([(lot, index, None, None, RELEASED) for lot, index in items])

    def _hand_back(self, ranges: Sequence[Range]) -> None:
        """Something goes before these: what has not begun goes back, and nothing is fetched until a slot was idle."""
        named: dict[tuple[UUID, int], list[Range]] = {}
        for range in ranges:
            named.setdefault((range.parcel, range.attempt), []).append(range)

        def is_named(item: Item) -> bool:
            parcel, index, attempt = key_of(item)
            return any(range.lo <= index < range.hi for range in named.get((parcel, attempt), ()))

        for pile in self.stock.piles.values():
            self._release(self.stock.take_out(pile, is_named))
        self._asked_free_at = -inf


def _covered(ending: EndedItem) -> EndedItem:
    """What is told of an item, without the secrets that it was given."""
    lot, index, started, ended, outcome = ending
    return ending if lot.secrets is None else (lot, index, started, ended, lot.secrets.outcome(outcome))
