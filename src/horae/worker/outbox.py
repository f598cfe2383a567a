"""What waits to be told to the server: outcomes, log lines, progress and starts.

What goes into an exchange leaves the outbox and belongs to that exchange alone.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from uuid import UUID

from msgspec import Raw, Struct

from horae.env import SECOND, Instant, Micros
from horae.model.protocol import MAX_EXCHANGE, Failure, LogLines, Outcome, Progress, Started
from horae.worker.holding import Ending, Fate, Item

Key = tuple[UUID, int, int]  # parcel, item, attempt
Line = tuple[Instant, str, str]  # at, stream, text

OUTCOME_BYTES = 260  # of JSON around an outcome
ITEM_BYTES = 40  # of JSON per item: two times and commas
LINE_BYTES = 40
LINES_BYTES = 120  # of JSON around the lines of an attempt
MAX_LOG_BYTES = 384 * 1024  # of log lines in one exchange
MIN_SHARE = 16 * 1024


def key_of(item: Item) -> Key:
    """How an item is named on the wire."""
    grant = item[0].grant
    return grant.parcel, item[1], grant.attempt


class Load(Struct):
    """What one exchange carries up."""

    outcomes: list[Outcome] = []
    started: list[Started] = []
    progress: list[Progress] = []
    logs: list[LogLines] = []


class Lines:
    """Log lines of one attempt that were not sent yet."""

    __slots__ = ("lines", "seq")

    def __init__(self, seq: int) -> None:
        self.seq = seq  # number of the first line
        self.lines: deque[Line] = deque()


class Outbox:
    """The buffers of a session. `offset` is what makes a monotonic time the server's."""

    def __init__(self) -> None:
        self.offset: Micros = 0
        self._endings: deque[Ending] = deque()
        self._outcomes: deque[Outcome] = deque()  # came back from an exchange that was too much at once
        self._started: list[Started] = []
        self._progress: dict[Key, Progress] = {}
        self._logs: dict[Key, Lines] = {}
        self.log_bytes = 0

    @property
    def has_outcomes(self) -> bool:
        return bool(self._endings or self._outcomes)

    @property
    def has_news(self) -> bool:
        """Whether there is anything that may wait a moment for company."""
        return bool(self._logs or self._progress or self._started)

    def __bool__(self) -> bool:
        return self.has_outcomes or self.has_news

    def end(self, endings: Iterable[Ending]) -> None:
        self._endings.extend(endings)

    def start(self, started: Started) -> None:
        self._started.append(started)

    def progress(self, progress: Progress) -> None:
        """Only the newest progress of an item is told; what tells of it is a sign of life, too."""
        key = progress.parcel, progress.item, progress.attempt
        if progress.percent is not None or key not in self._progress:
            self._progress[key] = progress

    def log(self, key: Key, seq: int, line: Line) -> None:
        """Add a line; numbers of one attempt come in order, without gaps."""
        lines = self._logs.get(key)
        if lines is None:
            lines = self._logs[key] = Lines(seq)
        lines.lines.append(line)
        self.log_bytes += len(line[2]) + LINE_BYTES

    def give_back(self, outcomes: Iterable[Outcome]) -> None:
        """Take outcomes back from an exchange that the server refused without reading it."""
        self._outcomes.extendleft(reversed(list(outcomes)))

    def load(self) -> Load:
        """Take out what fits into one exchange: log lines, and outcomes whose last lines they are, but at least one."""
        logs, size = self._take_logs()
        outcomes = list(self._take_outcomes(MAX_EXCHANGE - size))
        load = Load(outcomes, self._started, list(self._progress.values()), logs)
        self._started, self._progress = [], {}
        return load

    def clear(self) -> None:
        self._endings.clear()
        self._outcomes.clear()
        self._started, self._progress, self._logs, self.log_bytes = [], {}, {}, 0

    def _take_outcomes(self, room: int) -> Iterator[Outcome]:
        """Outcomes in as few ranges as possible; one that is larger than the room goes alone."""
        first = True
        while self._outcomes and (first or _weight(self._outcomes[0]) <= room):
            outcome = self._outcomes.popleft()
            room, first = room - _weight(outcome), False
            yield outcome
        if not self._outcomes:
            yield from pack(self._take_endings(room, first), self.offset)

    def _take_endings(self, room: int, first: bool) -> list[Ending]:
        """What has ended and fits, in order; what has log lines left to tell comes later."""
        taken: list[Ending] = []
        later: list[Ending] = []
        last: Ending | None = None
        while self._endings:
            ending = self._endings.popleft()
            if self._logs and key_of(ending[:2]) in self._logs:
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

    def _take_logs(self) -> tuple[list[LogLines], int]:
        """Some lines of every attempt in turn, so that a noisy one does not silence the others; and their bytes."""
        told: list[LogLines] = []
        room = MAX_LOG_BYTES
        share = max(MIN_SHARE, room // max(1, len(self._logs)))
        for key in list(self._logs):
            if room <= 0:
                break
            lines = self._logs.pop(key)
            taken, size = _first(lines.lines, min(room, share))
            room -= size + LINES_BYTES
            self.log_bytes -= size
            if taken:
                told.append(LogLines(parcel=key[0], item=key[1], attempt=key[2], seq=lines.seq, lines=taken))
            lines.seq += len(taken)
            if lines.lines:
                self._logs[key] = lines
        return told, MAX_LOG_BYTES - room


def _first(lines: deque[Line], room: int) -> tuple[list[Line], int]:
    """Take out the first lines, as many as fit but at least one, and their size."""
    taken: list[Line] = []
    size = 0
    while lines and size < room:
        line = lines.popleft()
        size += len(line[2]) + LINE_BYTES
        taken.append(line)
    return taken, size


def pack(endings: list[Ending], offset: Micros) -> Iterator[Outcome]:
    """Put endings, sorted by place, into as few outcomes as possible: neighbours of equal fate share one."""
    first = 0
    for i in range(1, len(endings) + 1):
        if i == len(endings) or not _neighbours(endings[i - 1], endings[i]):
            yield _outcome(endings[first:i], offset)
            first = i


def _neighbours(a: Ending, b: Ending) -> bool:
    if a[0] is not b[0] or b[1] != a[1] + 1 or (a[2] is None) != (b[2] is None):
        return False
    return a[4] is b[4] or (type(a[4]) is bytes and type(b[4]) is bytes)


def _outcome(run: list[Ending], offset: Micros) -> Outcome:
    lot, lo, started, _, result = run[0]
    fate = result if isinstance(result, Fate) else _SUCCESS
    times: dict[str, list[Instant]] = {}
    if started is not None:
        times["started_at"] = [int((ending[2] or 0.0) * SECOND) + offset for ending in run]
        times["ended_at"] = [int((ending[3] or 0.0) * SECOND) + offset for ending in run]
    return Outcome(
        parcel=lot.grant.parcel,
        lo=lo,
        hi=lo + len(run),
        attempt=lot.grant.attempt,
        outcome=fate.outcome,
        results=_results(run, fate),
        sensitive=lot.pile.is_sensitive,
        exit_code=fate.exit_code,
        error=fate.error,
        wake_at=fate.wake_at,
        waits=list(fate.waits),
        **times,
    )


_SUCCESS = Fate(outcome="success")


def _results(run: list[Ending], fate: Fate) -> list[Raw]:
    if fate.outcome != "success":
        return []
    results = [ending[4] if isinstance(ending[4], bytes) else ending[4].result for ending in run]
    return [] if all(result == b"null" for result in results) else [Raw(result) for result in results]


def _weight(outcome: Outcome) -> int:
    """Bytes of an outcome that came back."""
    results = sum(map(len, map(bytes, outcome.results)))
    return OUTCOME_BYTES + (outcome.hi - outcome.lo) * ITEM_BYTES + results + _text(outcome.error)


def _size(result: bytes | Fate) -> int:
    """Bytes of an ended item; a range of them shares what is around it."""
    if isinstance(result, bytes):
        return len(result) + ITEM_BYTES
    return ITEM_BYTES + len(result.result) + _text(result.error)


def _text(error: Failure | None) -> int:
    return len(error.message) + len(error.traceback) if error else 0


def _place(ending: Ending) -> int:
    return ending[0].order + ending[1]
