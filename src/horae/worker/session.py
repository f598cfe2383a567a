"""A worker's session with the servers: the exchange protocol as a state machine without I/O.

The driver (the loop over HTTP, or the simulation over a network that loses and repeats messages) calls `next_exchange`
until it returns None, sends each exchange until one answer arrives, and passes that to `answered`. It runs the chunks
that `take` returns and gives them back with `finish`. No code in this module waits, and time comes from the given
clock.

Promises: an unanswered exchange is repeated as the identical object. An answer counts once. A granted item is started
at most once and is held until an answered exchange has carried its outcome. No item is started when the session may
have expired.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from uuid import UUID

import msgspec

from horae.env import SECOND, Clock, Instant
from horae.model.fleet.protocol import (
    Answer,
    Exchange,
    Progress,
    Range,
    Reattach,
    Reattached,
    Registered,
    Request,
    Started,
)
from horae.worker.attempt_reports import OnEnded
from horae.worker.code.failure import TIMED_OUT
from horae.worker.code.refusal import split_load
from horae.worker.exchange.channels import CARRIERS, POLLS, Channels, ExchangeChannel
from horae.worker.exchange.demand import FETCH_PAUSE, fetch_ahead, free_room, free_slots
from horae.worker.exchange.outbox import ExchangeLoad, Outbox, key_of
from horae.worker.exchange.server_time import ServerTime
from horae.worker.holding import RELEASED, Chunk, Item, ItemOutcome, StartedItem, masked
from horae.worker.interrupts import Interrupt, InterruptKind, apply_request
from horae.worker.logs.log_queue import Key, Line
from horae.worker.pace import DurationEstimates
from horae.worker.stock import Stock

MARGIN = 3.0  # seconds before the session's timeout; no item is started in them
REPORT_START_AFTER = 1.0  # seconds that an item runs before its start is reported; short items end before
FLUSH = 0.2  # seconds that log lines, progress and starts wait to be sent together


class WorkerSession:
    """The worker's part of one registered session."""

    def __init__(
        self,
        clock: Clock,
        registered: Registered,
        slots: int,
        pace: DurationEstimates | None = None,
        resources: Mapping[str, int] | None = None,
        on_ended: OnEnded | None = None,
    ) -> None:
        """`on_ended` is called with ended attempts."""
        self.id: UUID = registered.session_id
        self.log_limit = registered.log_limit  # bytes that the log of an attempt may have
        self.fence = 0.0  # monotonic time from which no item is started
        self.draining = False
        self.ended = False
        self.is_detached = False  # the store has failed over, and servers give no work until the session re-attaches
        self.era = 0  # the number of detachments: an answer to an exchange that was sent in an earlier era is void
        self.pace = pace or DurationEstimates()
        self.stock = Stock(clock, self.pace, slots, resources)
        self.time = ServerTime(clock)
        self.outbox = Outbox(self.time)
        self._clock, self._on_ended = clock, on_ended
        timeout = registered.session_timeout / SECOND
        self._trust = timeout - min(MARGIN, timeout / 5)
        # Short enough that every second poll extends the fence in time.
        self.patience = min(registered.heartbeat, int(self._trust * 0.45 * SECOND))
        self._channels = Channels()
        self._reported_starts: set[Key] = set()  # running items whose starts were reported
        self._reported_draining = False
        self._look_at = self._flush_at = 0.0  # monotonic times
        self._asked_free_at = clock.monotonic()  # when work for an idle slot was last requested; see `_wants`
        self._learn(registered.now, clock.monotonic())

    # Exchanges

    def next_exchange(self) -> Exchange | None:
        """Return a new exchange to send now on an idle channel; None if there is nothing to send or no idle channel."""
        channel = self._channels.idle()
        if channel is None or self.ended or self.is_detached:
            return None
        self._look_around()
        inflight = self.unanswered()
        polls = [exchange for exchange in inflight if exchange.wait]
        if self._has_reports() and len(inflight) - len(polls) < CARRIERS:
            return self._open(channel, 0, *self._wants(inflight))
        return self._poll(channel, inflight, polls)

    def unanswered(self) -> list[Exchange]:
        """Return the exchanges to repeat until they are answered."""
        return self._channels.unanswered()

    def answered(self, exchange: Exchange, answer: Answer, sent_at: float) -> list[Interrupt]:
        """Process an answer; a second answer to the same exchange changes nothing.

        `sent_at` is the monotonic time at which the answered request was sent. Returns the interruptions for runners.
        """
        channel = self._channels[exchange.channel]
        if self.ended or channel.exchange is None or channel.n != exchange.n:
            return []
        sent, channel.exchange = channel.exchange, None
        self.outbox.logs.confirm(sent.logs)
        for outcome in sent.outcomes:
            self.stock.confirm(outcome.parcel, outcome.lo, outcome.hi, outcome.attempt)
        self._learn(answer.now, sent_at)
        for grant in answer.slices:
            self.stock.hold(grant, answer)
        if answer.hand_back:
            self._hand_back(answer.hand_back)
        if answer.drain or self.draining:
            self.drain()
        return [found for request in answer.requests if (found := apply_request(request, self.stock, self.outbox))]

    def refused(self, exchange: Exchange, reason: str, index: int | None = None) -> Exchange | None:
        """Return the exchange to send, under the same number, in place of one that the server refused unread.

        Each call halves the data of the exchange, until only the faulty entry is left; the server can also name this
        entry by the `index` of an outcome. A faulty outcome is replaced by a failure, a faulty log line by a note.

        Return None if the exchange has no data to remove: then the server and this session do not understand each
        other.
        """
        channel = self._channels[exchange.channel]
        if self.ended or channel.exchange is not exchange:
            return None
        load = ExchangeLoad(exchange.outcomes, exchange.started, exchange.progress, exchange.logs)
        if not load:
            return None
        keep, back = split_load(load, reason, index)
        self.outbox.give_back(load, keep, back)
        channel.exchange = msgspec.structs.replace(
            exchange, outcomes=keep.outcomes, started=keep.started, progress=keep.progress, logs=keep.logs
        )
        return channel.exchange

    def detach(self) -> bool:
        """Stop exchanging until the session is re-attached; return False if that is so already."""
        if self.ended or self.is_detached:
            return False
        self.is_detached = True
        self.era += 1
        return True

    def reattachment(self) -> Reattach:
        """Return what this session holds, and the last answered exchange of each channel."""
        return Reattach(answered=self._channels.answered(), held=list(self.stock.unconfirmed()))

    def reattached(self, answer: Reattached, sent_at: float) -> list[Interrupt]:
        """Go on after a re-attachment; return the interruptions for items that are not the session's any more."""
        if self.ended or not self.is_detached:
            return []
        self.is_detached = False
        self._learn(answer.now, sent_at)
        stops = [
            Request(parcel=part.parcel, item=item, attempt=part.attempt, kind="preempt")
            for part in answer.stop
            for item in range(part.lo, part.hi)
        ]
        return [found for stop in stops if (found := apply_request(stop, self.stock, self.outbox))]

    def end(self) -> list[Interrupt]:
        """Forget everything: the session is over. Running items must stop, and their outcomes are not reported."""
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
        """Return work for an idle slot, if there is any and the session cannot have expired.

        The slot starts the items of the chunk by `Chunk.begin`.
        """
        if self.ended or self.is_detached or self._clock.monotonic() >= self.fence:
            return None
        return self.stock.take(self)

    def collect(self, chunk: Chunk) -> None:
        """Take over the items that a chunk has ended so far."""
        endings = chunk.collect()
        if not endings or self.ended:
            return
        if chunk.backlog.references:
            endings = [masked(ending) for ending in endings]
        self.outbox.end(endings)
        if self._on_ended is not None:
            self._on_ended(self, chunk.backlog, endings)
        started, ended = endings[0][2], endings[-1][3]
        if started is not None and ended is not None:
            self.pace.note(chunk.backlog.job, len(endings), max(0.0, ended - started))

    def finish(self, chunk: Chunk) -> None:
        """Take a chunk back from its slot: ended items are reported, unstarted items return to the backlog."""
        self.collect(chunk)
        self.stock.finish(chunk)

    def refuse(self, item: Item, fate: ItemOutcome) -> None:
        """End an item that was taken and cannot start."""
        self.outbox.end([(*item, None, None, fate)])

    def decide(self, chunk: Chunk, begun: StartedItem, fate: ItemOutcome) -> bool:
        """End an item without waiting for its runner; return False if it has just ended by itself."""
        decided = chunk.end(begun, self._clock.monotonic(), fate)
        self.collect(chunk)
        return decided

    def progress(self, item: Item, percent: float | None, message: str = "") -> None:
        """Report the progress of a running item; without a percentage, only a sign of life."""
        parcel, index, attempt = key_of(item)
        if not self.ended:
            report = Progress(parcel=parcel, item=index, attempt=attempt, percent=percent, message=message)
            self.outbox.progress(report)

    def log(self, item: Item, seq: int, lines: Sequence[Line]) -> None:
        """Report log lines of a running item; `seq` counts the lines of its attempt from 0."""
        if lines and not self.ended:
            self.outbox.logs.add(key_of(item), seq, lines)

    def show(self, item: Item, seq: int, unfinished: list[Line]) -> None:
        """Report unfinished lines of a running item."""
        if not self.ended:
            self.outbox.logs.show(key_of(item), seq, unfinished)

    def leave_out(self, item: Item, lines: int, size: int) -> None:
        """Report the number of lines and bytes that were left out of the log of a running item."""
        if not self.ended:
            self.outbox.logs.leave_out(key_of(item), lines, size)

    def holds(self, parcel: UUID, item: int, attempt: int) -> bool:
        """Return whether this worker holds an item: unstarted, running, or ended without an answered report."""
        return self.stock.slice_of(parcel, item, attempt) is not None

    # Leaving

    def drain(self) -> None:
        """Stop asking for work and hand back unstarted items; running items continue."""
        self.draining = True
        for backlog in self.stock.backlogs.values():
            self._release(self.stock.empty(backlog))

    def interrupt_all(self, kind: InterruptKind) -> list[Interrupt]:
        """Return the interruptions that stop every running item."""
        return [Interrupt(chunk, begun, kind) for chunk, begun in self.stock.running()]

    def interrupt_preemptible(self, kind: InterruptKind) -> list[Interrupt]:
        """Return the interruptions that stop every preemptible running item."""
        specs = ((one, one.chunk.backlog.spec) for one in self.interrupt_all(kind))
        return [one for one, spec in specs if spec is not None and spec.preemptible]

    @property
    def is_drained(self) -> bool:
        """Return whether nothing is held and the server has received all reports."""
        return self.draining and self._reported_draining and self.stock.is_empty and not self.outbox

    # Time

    def tick(self) -> None:
        """Handle items that take longer than expected. Call it at `wake_at`, after idle slots `take`."""
        self.outbox.end(
            [(held_slice, index, None, None, TIMED_OUT["start"]) for held_slice, index in self.stock.too_late()]
        )
        for chunk in self.stock.stalled():
            self.collect(chunk)
            self.stock.put_back(chunk)
        for backlog, items in self.stock.overdue().items():
            self.pace.note_running(backlog.job, self._clock.monotonic() - self.stock.oldest(backlog))
            self._release(items)
            self._asked_free_at = -inf

    def wake_at(self) -> float | None:
        """Return the monotonic time at which `tick` or `next_exchange` may have work without any new event."""
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
        """Return the number of idle slots, and the items to fetch ahead by job, that no unanswered exchange requests.

        After `FETCH_PAUSE` seconds without an idle slot, a worker fetches nothing ahead until a slot is idle, so that
        other workers get a turn.
        """
        if self.draining:
            return 0, {}
        free = free_slots(self.stock, inflight)
        starved = not free and self._clock.monotonic() - self._asked_free_at > FETCH_PAUSE
        return free, {} if starved else fetch_ahead(self.stock, inflight)

    def _poll(self, channel: ExchangeChannel, inflight: list[Exchange], polls: list[Exchange]) -> Exchange | None:
        """Return a new poll, an exchange that waits for work or requests of the server, if one is needed.

        One poll is always in flight. A second one is opened if work can be requested that the first does not request:
        for slots that have become idle, or items to fetch ahead.
        """
        if self.is_drained or len(polls) == POLLS or any(poll.free for poll in polls):
            return None
        free, prefetch = self._wants(inflight)
        if free or not inflight or (prefetch and not any(poll.prefetch for poll in polls)):
            return self._open(channel, self.patience, free, prefetch)
        return None

    def _has_reports(self) -> bool:
        if self.outbox.has_outcomes or self.draining > self._reported_draining:
            return True
        return self.outbox.has_news and (self.outbox.logs.fills_exchange or self._clock.monotonic() >= self._flush_at)

    def _open(self, channel: ExchangeChannel, wait: int, free: int, prefetch: dict[UUID, int]) -> Exchange:
        """Create an exchange with the next number of its channel.

        An exchange that waits for work carries no reports, so that the reports are answered at once.
        """
        room = free_room(self.stock, self.unanswered()) if free and self.stock.room else {}
        load = ExchangeLoad() if wait else self.outbox.load()
        now = self._clock.monotonic()
        channel.n += 1
        self._reported_draining = self.draining
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
        """Extend the fence and learn the server's time, after an answer.

        The fence is counted from the time at which the request was sent.
        """
        self.fence = max(self.fence, sent_at + self._trust)
        self.time.learn(server_now)

    def _look_around(self) -> None:
        """Report the start of every item that has run for a while, and forget unused backlogs, once in every period."""
        now = self._clock.monotonic()
        if now < self._look_at:
            return
        patience = min(REPORT_START_AFTER, self.patience / SECOND)
        self._look_at = now + patience / 4
        long = {key_of(b[:2]): b[2] for _, b in self.stock.running() if now - b[2] >= patience}
        for key in long.keys() - self._reported_starts:
            at = self.time.instant(long[key])
            self.outbox.start(Started(parcel=key[0], lo=key[1], hi=key[1] + 1, attempt=key[2], at=at))
        self._reported_starts = set(long)
        self.stock.prune()

    def _release(self, items: Iterable[Item]) -> None:
        """Hand back unstarted items; this does not count as an attempt."""
        self.outbox.end([(held_slice, index, None, None, RELEASED) for held_slice, index in items])

    def _hand_back(self, ranges: Sequence[Range]) -> None:
        """Hand back unstarted items, because more urgent ones wait. Nothing is fetched ahead until a slot is idle."""
        named: dict[tuple[UUID, int], list[Range]] = {}
        for part in ranges:
            named.setdefault((part.parcel, part.attempt), []).append(part)

        def is_named(item: Item) -> bool:
            parcel, index, attempt = key_of(item)
            return any(part.lo <= index < part.hi for part in named.get((parcel, attempt), ()))

        for backlog in self.stock.backlogs.values():
            self._release(self.stock.take_out(backlog, is_named))
        self._asked_free_at = -inf
