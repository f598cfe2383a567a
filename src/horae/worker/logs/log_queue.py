"""A queue of log lines to be sent, which makes writers wait when it is too long.

The lines of an attempt are sent in order, and only one unanswered exchange at a time carries some of them: of two
exchanges, the later could arrive first, and then a reader who follows the log would never see the earlier lines.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Event, get_ident
from uuid import UUID

from horae.env import Instant
from horae.model.fleet.protocol import LogLines, LogStream

Key = tuple[UUID, int, int]  # parcel, item, attempt
Line = tuple[Instant, LogStream, str]  # at, stream, text

LINE_BYTES = 40  # bytes of JSON around a line
LINES_BYTES = 120  # bytes of JSON around the lines of an attempt
MAX_LOG_BYTES = 384 * 1024  # bytes of log lines in one exchange
MIN_SHARE = 16 * 1024  # bytes of an exchange that an attempt may use, however many attempts have lines
BACKLOG = 4 * 1024 * 1024  # bytes that wait for the server; above it, writers wait
NOTHING: tuple[int, None] = (0, None)
LOW = BACKLOG * 3 // 4  # bytes that wait for the server; below it, writers continue


class Lines:
    """Unsent log lines of one attempt."""

    __slots__ = ("left_out", "lines", "seq", "size")

    def __init__(self, seq: int) -> None:
        self.seq = seq  # number of the first line
        self.size = 0
        self.lines: deque[Line] = deque()
        self.left_out: tuple[int, int] | None = None  # lines and bytes that were dropped before these lines


class LogQueue:
    """The log lines of a session. Threads other than the session's use only `room`, `tails`, `bytes` and `may_wait`."""

    def __init__(self) -> None:
        self.bytes = 0
        self.room = Event()  # set while threads may write
        self.room.set()
        self.tails: dict[Key, Callable[[], object]] = {}  # calls to make before an attempt's end is sent
        self._thread = get_ident()
        self._lines: dict[Key, Lines] = {}
        self._unfinished: dict[Key, tuple[int, list[Line]]] = {}  # unfinished lines to show, with their position
        self._sending: set[Key] = set()
        self._ready = 0  # bytes of lines that may be sent

    @property
    def may_wait(self) -> bool:
        """Return whether the calling thread can wait for room. Only the session's own thread cannot: it makes room."""
        return get_ident() != self._thread

    @property
    def has_news(self) -> bool:
        return self._ready > 0 or any(key not in self._sending for key in self._unfinished)

    @property
    def fills_exchange(self) -> bool:
        """Return whether there are enough lines for an exchange of their own."""
        return self._ready >= MAX_LOG_BYTES

    def __bool__(self) -> bool:
        return bool(self._lines or self._sending)

    def is_in_flight(self, key: Key) -> bool:
        """Return whether an unanswered exchange carries lines of this attempt."""
        return key in self._sending

    def has_more(self, key: Key) -> bool:
        """Return whether lines of this attempt are in no exchange yet."""
        return key in self._lines

    def is_unconfirmed(self, key: Key) -> bool:
        """Return whether lines of this attempt must reach the server before its end."""
        return key in self._lines or key in self._sending

    def add(self, key: Key, seq: int, added: Sequence[Line]) -> None:
        """Add lines of an attempt. `seq` is the number of the first; the numbers of an attempt have no gaps.

        The attempt's unfinished lines must be shown again, because they come after the added lines.
        """
        self._unfinished.pop(key, None)
        lines = self._lines.get(key)
        if lines is None:
            lines = self._lines[key] = Lines(seq)
        lines.lines.extend(added)
        size = _size(added)
        lines.size += size
        self.bytes += size
        if key not in self._sending:
            self._ready += size
        if self.bytes > BACKLOG and self.room.is_set():
            self.room.clear()

    def show(self, key: Key, seq: int, unfinished: list[Line]) -> None:
        """Show unfinished lines of an attempt, after all lines that were added."""
        self._unfinished[key] = (seq, unfinished)

    def leave_out(self, key: Key, lines: int, size: int) -> None:
        """Send the number and the bytes of dropped lines together with the attempt's waiting lines."""
        self._lines[key].left_out = (lines, size)

    def finish(self, keys: Iterable[Key]) -> None:
        """Add the lines that these attempts held back until their end: the attempts have ended."""
        for key in keys:
            if (tail := self.tails.pop(key, None)) is not None:
                tail()

    def take(self) -> tuple[list[LogLines], int]:
        """Take out the lines for an exchange, and return them with their size in bytes.

        Each attempt gets a share of the exchange, so that an attempt with many lines does not hold up other attempts.
        """
        sent: list[LogLines] = []
        room = MAX_LOG_BYTES
        keys = [key for key in self._lines if key not in self._sending] if self._sending else list(self._lines)
        share = max(MIN_SHARE, room // max(1, len(keys)))
        for key in keys:
            if room <= 0:
                break
            lines = self._lines.pop(key)
            taken, size = _first(lines.lines, min(room, share))
            room -= size + LINES_BYTES
            self.bytes -= size
            self._ready -= lines.size
            lines.size -= size
            self._sending.add(key)
            sent.append(
                LogLines(
                    parcel=key[0], item=key[1], attempt=key[2], seq=lines.seq, lines=taken, left_out=lines.left_out,
                    open=None if lines.lines else self._unfinished.pop(key, NOTHING)[1],
                )
            )  # fmt: skip
            lines.seq += len(taken)
            lines.left_out = None
            if lines.lines:
                self._lines[key] = lines
        if self._unfinished:
            sent += self._take_unfinished()
        self.make_room()
        return sent, MAX_LOG_BYTES - room

    def _take_unfinished(self) -> Iterator[LogLines]:
        """Take out the unfinished lines of attempts that have no finished lines waiting."""
        for key in [key for key in self._unfinished if key not in self._sending and key not in self._lines]:
            seq, unfinished = self._unfinished.pop(key)
            self._sending.add(key)
            yield LogLines(parcel=key[0], item=key[1], attempt=key[2], seq=seq, lines=[], open=unfinished)

    def make_room(self) -> None:
        """Let threads write again if few lines wait."""
        if not self.room.is_set() and self.bytes < LOW:
            self.room.set()

    def confirm(self, sent: Iterable[LogLines]) -> None:
        """Allow attempts to send their next lines: the exchange with these lines was answered or is given up."""
        for lines in sent:
            key = lines.parcel, lines.item, lines.attempt
            if key in self._sending:
                self._sending.discard(key)
                if key in self._lines:
                    self._ready += self._lines[key].size

    def give_back(self, sent: Iterable[LogLines]) -> None:
        """Put lines of an exchange that a server refused unread back, before the waiting lines of their attempts."""
        for given in sent:
            key = given.parcel, given.item, given.attempt
            lines = self._lines.setdefault(key, Lines(given.seq))
            lines.lines.extendleft(reversed(given.lines))
            lines.seq, lines.left_out = given.seq, given.left_out or lines.left_out
            size = _size(given.lines)
            lines.size += size
            self.bytes += size
            if key not in self._sending:
                self._ready += size

    def clear(self) -> None:
        self._lines, self._unfinished, self._sending, self.tails, self.bytes, self._ready = {}, {}, set(), {}, 0, 0
        self.room.set()


def _size(lines: Sequence[Line]) -> int:
    return sum([len(line[2]) for line in lines]) + LINE_BYTES * len(lines)


def _first(lines: deque[Line], room: int) -> tuple[list[Line], int]:
    """Take out as many lines from the front as fit into `room` bytes, but at least one; return them with their size."""
    taken: list[Line] = []
    size = 0
    while lines and size < room:
        line = lines.popleft()
        size += len(line[2]) + LINE_BYTES
        taken.append(line)
    return taken, size
