"""Log lines that wait to be told, and who waits because there are too many.

The lines of an attempt are told in order, by one exchange at a time: two under way could overtake each other, and
whoever follows the log would never see the earlier ones.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Event, get_ident
from uuid import UUID

from horae.env import Instant
from horae.model.fleet.protocol import LogLines, LogStream

Key = tuple[UUID, int, int]  # parcel, item, attempt
Line = tuple[Instant, LogStream, str]  # at, stream, text

LINE_BYTES = 40  # of JSON around a line
LINES_BYTES = 120  # and around the lines of an attempt
MAX_LOG_BYTES = 384 * 1024  # of log lines in one exchange
MIN_SHARE = 16 * 1024
BACKLOG = 4 * 1024 * 1024  # bytes that wait for the server beyond which whoever writes has to
NOTHING: tuple[int, None] = (0, None)
LOW = BACKLOG * 3 // 4  # and below which they go on


class Lines:
    """Log lines of one attempt that were not sent yet."""

    __slots__ = ("left_out", "lines", "seq", "size")

    def __init__(self, seq: int) -> None:
        self.seq = seq  # number of the first line
        self.size = 0
        self.lines: deque[Line] = deque()
        self.left_out: tuple[int, int] | None = None


class LogQueue:
    """The log lines of a session. Only `room` and `tails` are touched by other threads than the one that made it."""

    def __init__(self) -> None:
        self.bytes = 0
        self.room = Event()  # whether threads may write on
        self.room.set()
        self.tails: dict[Key, Callable[[], object]] = {}  # what to do before an attempt's end is told
        self._thread = get_ident()
        self._lines: dict[Key, Lines] = {}
        self._open: dict[Key, tuple[int, list[Line]]] = {}  # lines without an end that are to be shown, and their place
        self._sending: set[Key] = set()
        self._ready = 0  # bytes of those that may be sent

    @property
    def may_wait(self) -> bool:
        """Whether whoever asks can wait for room: in the session's own thread nothing would ever make it."""
        return get_ident() != self._thread

    @property
    def has_news(self) -> bool:
        return self._ready > 0 or any(key not in self._sending for key in self._open)

    @property
    def presses(self) -> bool:
        """Whether there is enough for an exchange of its own."""
        return self._ready >= MAX_LOG_BYTES

    def __bool__(self) -> bool:
        return bool(self._lines or self._sending)

    def is_under_way(self, key: Key) -> bool:
        """Whether an exchange carries lines of this attempt that may not have been heard."""
        return key in self._sending

    def has_more(self, key: Key) -> bool:
        """Whether lines of this attempt are not under way yet."""
        return key in self._lines

    def waits(self, key: Key) -> bool:
        """Whether something of this attempt is to be heard before its end."""
        return key in self._lines or key in self._sending

    def add(self, key: Key, seq: int, added: Sequence[Line]) -> None:
        """Add lines; numbers of one attempt come in order, without gaps. What is open is shown behind them anew."""
        self._open.pop(key, None)
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

    def show(self, key: Key, seq: int, open: list[Line]) -> None:
        """Show lines that have no end yet, behind all that were added."""
        self._open[key] = (seq, open)

    def leave_out(self, key: Key, lines: int, size: int) -> None:
        """Tell with the lines that wait how many others there would be."""
        self._lines[key].left_out = (lines, size)

    def finish(self, keys: Iterable[Key]) -> None:
        """These attempts have ended: take in what was kept back of their logs."""
        for key in keys:
            if (tail := self.tails.pop(key, None)) is not None:
                tail()

    def take(self) -> tuple[list[LogLines], int]:
        """Some lines of every attempt in turn, so that a noisy one does not silence the others; and their bytes."""
        told: list[LogLines] = []
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
            told.append(
                LogLines(
                    parcel=key[0], item=key[1], attempt=key[2], seq=lines.seq, lines=taken, left_out=lines.left_out,
                    open=None if lines.lines else self._open.pop(key, NOTHING)[1],
                )
            )  # fmt: skip
            lines.seq += len(taken)
            lines.left_out = None
            if lines.lines:
                self._lines[key] = lines
        if self._open:
            told += self._take_open()
        self.make_room()
        return told, MAX_LOG_BYTES - room

    def _take_open(self) -> Iterator[LogLines]:
        """Lines without an end of attempts of which no others wait."""
        for key in [key for key in self._open if key not in self._sending and key not in self._lines]:
            seq, open = self._open.pop(key)
            self._sending.add(key)
            yield LogLines(parcel=key[0], item=key[1], attempt=key[2], seq=seq, lines=[], open=open)

    def make_room(self) -> None:
        """Let threads write on if little enough waits."""
        if not self.room.is_set() and self.bytes < LOW:
            self.room.set()

    def heard(self, told: Iterable[LogLines]) -> None:
        """An exchange with these was answered, or will not be sent again."""
        for lines in told:
            key = lines.parcel, lines.item, lines.attempt
            if key in self._sending:
                self._sending.discard(key)
                if key in self._lines:
                    self._ready += self._lines[key].size

    def give_back(self, told: Iterable[LogLines]) -> None:
        """Take lines back, before all that wait, from an exchange that a server refused without reading it."""
        for given in told:
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
        self._lines, self._open, self._sending, self.tails, self.bytes, self._ready = {}, {}, set(), {}, 0, 0
        self.room.set()


def _size(lines: Sequence[Line]) -> int:
    return sum([len(line[2]) for line in lines]) + LINE_BYTES * len(lines)


def _first(lines: deque[Line], room: int) -> tuple[list[Line], int]:
    """Take out the first lines, as many as fit but at least one, and their size."""
    taken: list[Line] = []
    size = 0
    while lines and size < room:
        line = lines.popleft()
        size += len(line[2]) + LINE_BYTES
        taken.append(line)
    return taken, size
