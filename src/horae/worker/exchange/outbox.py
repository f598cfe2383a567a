"""Data that waits to be sent to the server: outcomes, log lines, progress and starts.

Data that enters an exchange leaves the outbox and belongs to that exchange alone.
"""

from collections import deque
from collections.abc import Container, Iterable, Iterator
from itertools import islice

from msgspec import Raw, Struct

from horae.env import SECOND, Instant, Micros
from horae.model.fleet.protocol import MAX_EXCHANGE, LogLines, Outcome, Progress, ReportedFailure, Started
from horae.worker.exchange.server_time import ServerTime
from horae.worker.holding import EndedItem, Item, ItemOutcome
from horae.worker.logs.log_queue import Key, LogQueue

OUTCOME_BYTES = 260  # bytes of JSON around an outcome
ITEM_BYTES = 40  # bytes of JSON per item: two times and commas


def key_of(item: Item) -> Key:
    """Return the identity of an item in the protocol."""
    grant = item[0].grant
    return grant.parcel, item[1], grant.attempt


class ExchangeLoad(Struct):
    """The data that one exchange carries to the server."""

    outcomes: list[Outcome] = []
    started: list[Started] = []
    progress: list[Progress] = []
    logs: list[LogLines] = []

    def __bool__(self) -> bool:
        return bool(self.outcomes or self.started or self.progress or self.logs)


class Outbox:
    """The data of a session that waits to be sent."""

    def __init__(self, time: ServerTime) -> None:
        self._time = time
        self._endings: deque[EndedItem] = deque()
        self._outcomes: deque[Outcome] = deque()  # taken back from refused exchanges
        self._started: list[Started] = []
        self._progress: dict[Key, Progress] = {}
        self.logs = LogQueue()

    @property
    def has_outcomes(self) -> bool:
        """Return whether an outcome can be sent now.

        An outcome must wait while an unanswered exchange carries log lines of its attempt, so that it does not arrive
        before them.
        """
        if not (self._outcomes or self._endings) or not self.logs:
            return bool(self._outcomes or self._endings)
        under_way = self.logs.is_in_flight
        if any(not under_way(key_of(ending[:2])) for ending in self._endings):
            return True
        return any(not any(map(under_way, _keys(outcome))) for outcome in self._outcomes)

    @property
    def has_news(self) -> bool:
        """Return whether log lines, progress or starts wait. They may be delayed a little, to be sent together."""
        return bool(self.logs.has_news or self._progress or self._started)

    def __bool__(self) -> bool:
        return bool(self._endings or self._outcomes or self.logs or self._progress or self._started)

    def end(self, endings: Iterable[EndedItem]) -> None:
        first = len(self._endings)
        self._endings.extend(endings)
        if self.logs.tails:
            self.logs.finish([key_of(ending[:2]) for ending in islice(self._endings, first, None)])

    def start(self, started: Started) -> None:
        self._started.append(started)

    def progress(self, progress: Progress) -> None:
        """Keep only the newest progress of each item. A report without a percentage is only a sign of life."""
        key = progress.parcel, progress.item, progress.attempt
        if progress.percent is not None or key not in self._progress:
            self._progress[key] = progress

    def give_back(self, sent: ExchangeLoad, keep: ExchangeLoad, back: ExchangeLoad) -> None:
        """Take back data of an exchange that was refused unread.

        `sent` is the data of the exchange, `keep` the part that is sent in its place, `back` the part to send later.
        """
        self._outcomes.extendleft(reversed(back.outcomes))
        self._started[:0] = back.started
        for progress in back.progress:
            newer = self._progress.get(key := (progress.parcel, progress.item, progress.attempt))
            if newer is None or newer.percent is None:
                self._progress[key] = progress
        kept = {(log.parcel, log.item, log.attempt) for log in keep.logs}
        self.logs.confirm([log for log in sent.logs if (log.parcel, log.item, log.attempt) not in kept])
        self.logs.give_back(back.logs)

    def load(self) -> ExchangeLoad:
        """Take out the data for one exchange: all starts and progress, and the log lines and outcomes that fit.

        An outcome is taken only if no log lines of its item are left for later exchanges. At least one such outcome is
        taken, whatever its size.
        """
        logs, size = self.logs.take()
        riding = {
            key
            for log_lines in logs
            if not self.logs.has_more(key := (log_lines.parcel, log_lines.item, log_lines.attempt))
        }
        outcomes = list(self._take_outcomes(MAX_EXCHANGE - size, riding))
        load = ExchangeLoad(outcomes, self._started, list(self._progress.values()), logs)
        self._started, self._progress = [], {}
        return load

    def clear(self) -> None:
        self._endings.clear()
        self._outcomes.clear()
        self._started, self._progress = [], {}
        self.logs.clear()

    def _take_outcomes(self, room: int, riding: Container[Key]) -> Iterator[Outcome]:
        """Yield outcomes in as few ranges as possible. An outcome larger than `room` bytes is the only one.

        `riding` are the items whose last log lines are in the same exchange.
        """
        first = True
        later: list[Outcome] = []
        while self._outcomes and (first or _weight(self._outcomes[0]) <= room):
            outcome = self._outcomes.popleft()
            if self.logs and any(self.logs.is_unconfirmed(key) and key not in riding for key in _keys(outcome)):
                later.append(outcome)
                continue
            room, first = room - _weight(outcome), False
            yield outcome
        if not self._outcomes:
            yield from pack(self._take_endings(room, first, riding), self._time.offset)
        self._outcomes.extend(later)

    def _take_endings(self, room: int, first: bool, riding: Container[Key]) -> list[EndedItem]:
        """Take out the ended items that fit, in order. Items with unsent or unconfirmed log lines are put back."""
        taken: list[EndedItem] = []
        later: list[EndedItem] = []
        last: EndedItem | None = None
        while self._endings:
            ending = self._endings.popleft()
            if self.logs and self.logs.is_unconfirmed(key := key_of(ending[:2])) and key not in riding:
                later.append(ending)
                continue
            size = _size(ending[4])
            if last is None or not _neighbours(last, ending):
                size += OUTCOME_BYTES
            if size > room and not first:
                self._endings.appendleft(ending)
                break
            room, first, last = room - size, False, ending
            taken.append(ending)
        self._endings.extend(later)
        taken.sort(key=_place)
        return taken


def pack(endings: list[EndedItem], offset: Micros) -> Iterator[Outcome]:
    """Combine ended items, sorted by slice and index, into as few outcomes as possible.

    Neighbours with equal outcomes share one outcome.
    """
    first = 0
    for i in range(1, len(endings) + 1):
        if i == len(endings) or not _neighbours(endings[i - 1], endings[i]):
            yield _outcome(endings[first:i], offset)
            first = i


def _neighbours(a: EndedItem, b: EndedItem) -> bool:
    if a[0] is not b[0] or b[1] != a[1] + 1 or (a[2] is None) != (b[2] is None):
        return False
    return a[4] is b[4] or (type(a[4]) is bytes and type(b[4]) is bytes)


def _outcome(run: list[EndedItem], offset: Micros) -> Outcome:
    held_slice, lo, started, _, result = run[0]
    fate = result if isinstance(result, ItemOutcome) else _SUCCESS
    times: dict[str, list[Instant]] = {}
    if started is not None:
        times["started_at"] = [int((ending[2] or 0.0) * SECOND) + offset for ending in run]
        times["ended_at"] = [int((ending[3] or 0.0) * SECOND) + offset for ending in run]
    return Outcome(
        parcel=held_slice.grant.parcel,
        lo=lo,
        hi=lo + len(run),
        attempt=held_slice.grant.attempt,
        outcome=fate.outcome,
        results=_results(run, fate),
        sensitive=held_slice.backlog.is_sensitive,
        exit_code=fate.exit_code,
        error=fate.error,
        wake_at=fate.wake_at,
        waits=list(fate.waits),
        **times,
    )


_SUCCESS = ItemOutcome(outcome="success")


def _results(run: list[EndedItem], fate: ItemOutcome) -> list[Raw]:
    if fate.outcome != "success":
        return []
    results = [ending[4] if isinstance(ending[4], bytes) else ending[4].result for ending in run]
    return [] if all(result == b"null" for result in results) else [Raw(result) for result in results]


def _keys(outcome: Outcome) -> Iterator[Key]:
    """Return the identities of an outcome's items."""
    return ((outcome.parcel, item, outcome.attempt) for item in range(outcome.lo, outcome.hi))


def _weight(outcome: Outcome) -> int:
    """Return the approximate size of an encoded outcome in bytes."""
    results = sum(map(len, map(bytes, outcome.results)))
    return OUTCOME_BYTES + (outcome.hi - outcome.lo) * ITEM_BYTES + results + _text(outcome.error)


def _size(result: bytes | ItemOutcome) -> int:
    """Return the bytes that an ended item adds to an outcome, without the parts that all items of it share."""
    if isinstance(result, bytes):
        return len(result) + ITEM_BYTES
    return ITEM_BYTES + len(result.result) + _text(result.error)


def _text(error: ReportedFailure | None) -> int:
    return len(error.message) + len(error.traceback) if error else 0


def _place(ending: EndedItem) -> int:
    return ending[0].order + ending[1]
