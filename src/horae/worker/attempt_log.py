"""The log of one attempt, on its worker: numbered lines of bounded size, stamped with the server's time."""

from collections import deque
from threading import RLock
from typing import TYPE_CHECKING

from msgspec import Struct

from horae.env import Instant
from horae.model.executions.output.log_chunk import LINE
from horae.model.fleet.protocol import LogStream
from horae.worker.code.failure import clean
from horae.worker.exchange.outbox import key_of
from horae.worker.holding import StartedItem
from horae.worker.logs.log_queue import Key, Line

if TYPE_CHECKING:
    from horae.worker.runners.base import ChunkRun

MAX_LINE = 16 * 1024
TAIL = 256 * 1024  # bytes of last lines that are kept if a log exceeds its limit
MAX_BACKLOG = 64 * 1024 * 1024  # bytes of a session's log lines that wait for a server; above it, new lines are lost
MAX_UNFLUSHED = 1000  # lines of one attempt that the loop has not taken yet; from this number on, writing threads wait
PAUSE = 0.05  # seconds between checks of a waiting thread whether its session has ended


class Block(Struct, frozen=True):
    """Lines that were written together. They are held back because the log is full; later lines may replace them."""

    at: Instant
    stream: LogStream
    text: str | bytes
    lines: int
    size: int


class AttemptLog:
    """Accepts the log lines of an attempt and passes them to its session. Callers mask secrets before they write.

    `write` may be called from any thread; the session gets the lines on the loop's thread. A thread that writes faster
    than the servers accept lines waits in `write`. The first lines are sent at once, up to the limit less a part that
    is reserved for the last lines. Of all further lines, only the last are kept; they are sent when the attempt ends.
    """

    def __init__(self, run: "ChunkRun", begun: StartedItem) -> None:
        self._run = run
        self._item = begun[:2]
        self._session = run.session
        self._logs = run.session.outbox.logs
        self._monotonic = run.host.env.clock.monotonic
        secrets = begun[0].secrets
        self.redactor = None if secrets is None else secrets.redactor
        limit = run.session.log_limit
        self._tail_limit = min(TAIL, limit // 4)
        self._head_limit = limit - self._tail_limit
        self._limit = limit
        self._bytes = 0
        self._lost = 0
        self._seq = 0
        self._writing = RLock()  # a finaliser may log in the same thread while a line is being written
        self._lines: deque[Line] = deque()
        self._posted = self._ended = False
        self._unfinished: dict[LogStream, Line] = {}  # unfinished lines, by stream
        self._unfinished_changed = False  # whether an unfinished line has changed
        self._tail: deque[Block] = deque()
        self._tail_bytes = self._dropped_lines = self._dropped_bytes = 0

    @property
    def is_full(self) -> bool:
        """Return whether the room for the first lines is used up, so that of further lines only the last are kept."""
        return self._bytes > self._head_limit

    @property
    def key(self) -> Key:
        return key_of(self._item)

    def write(self, stream: LogStream, text: str) -> None:
        """Add a text, divided into lines at its line breaks and after every `MAX_LINE` characters."""
        if not self._accepts():
            return
        if not text.isascii() or "\0" in text:
            text = clean(text)
        with self._writing:
            if self._ended:
                return
            at = self._now()
            if self._lost:
                self._add(at, "log", self._lost_note())
            if len(text) <= MAX_LINE and "\n" not in text:  # nearly always
                self._add(at, stream, text)
                return
            for line in text.split("\n"):
                for start in range(0, max(1, len(line)), MAX_LINE):
                    self._add(at, stream, line[start : start + MAX_LINE])

    def write_raw(self, stream: LogStream, lines: list[bytes]) -> None:
        """Add lines to a full log. They are not decoded yet, because most of them will be dropped."""
        if self._accepts():
            text = b"\n".join(lines)
            with self._writing:
                self._hold(Block(self._now(), stream, text, len(lines), len(text) + LINE * len(lines)))

    def show(self, stream: LogStream, text: str | None) -> None:
        """Show readers an unfinished line, such as a prompt; with None, stop because the line is finished.

        Call it on the loop's thread.
        """
        if text is None:
            self._unfinished.pop(stream, None)
        elif not self._ended and not self._session.ended:
            self._unfinished[stream] = (self._now(), stream, clean(text))
            self._unfinished_changed = True
            self._post()

    def _accepts(self) -> bool:
        """Return whether text can be accepted. While the queue is full, threads other than the loop's wait for room."""
        session, logs = self._session, self._logs
        if not logs.room.is_set() and logs.may_wait:
            while not (logs.room.wait(PAUSE) or session.ended or self._monotonic() >= session.fence):
                pass
        if self._ended or session.ended:
            return False
        if logs.bytes > MAX_BACKLOG:
            self._lost += 1
            logs.tails[self.key] = self._end
            return False
        return True

    def _add(self, at: Instant, stream: LogStream, line: str) -> None:
        size = (len(line) if line.isascii() else len(line.encode())) + LINE
        if self._bytes > self._head_limit:
            return self._hold(Block(at, stream, line, 1, size))
        self._bytes += size
        self._put(at, stream, line)
        if self.is_full:
            message = f"an attempt may write {self._limit} bytes. The last lines follow when the attempt ends"
            self._put(at, "log", f"WARNING the log is cut here: {message}")
            self._logs.tails[self.key] = self._end
        return None

    def _put(self, at: Instant, stream: LogStream, line: str) -> None:
        self._lines.append((at, stream, line))
        if len(self._lines) >= MAX_UNFLUSHED:
            self._logs.room.clear()
        self._post()

    def _post(self) -> None:
        if not self._posted:
            self._posted = True
            self._run.host.post(self._flush)

    def _hold(self, block: Block) -> None:
        """Hold lines back, drop the oldest held lines that exceed the limit, and count the dropped lines."""
        self._tail.append(block)
        self._tail_bytes += block.size
        while self._tail_bytes > self._tail_limit and len(self._tail) > 1:
            gone = self._tail.popleft()
            self._tail_bytes -= gone.size
            self._dropped_lines += gone.lines
            self._dropped_bytes += gone.size - LINE * gone.lines

    def _flush(self) -> None:
        self._posted = False
        lines = [self._lines.popleft() for _ in range(len(self._lines))]
        self._send(lines)
        if self._unfinished and (lines or self._unfinished_changed) and not self._ended and not self.is_full:
            self._session.show(self._item, self._seq, list(self._unfinished.values()))
        self._unfinished_changed = False
        self._logs.make_room()

    def _send(self, lines: list[Line]) -> None:
        self._session.log(self._item, self._seq, lines)
        self._seq += len(lines)

    def _end(self) -> None:
        """Send the lines that were held back, after a note about the dropped lines. Called when the attempt ends."""
        with self._writing:
            self._ended = True
        self._flush()
        if self._lost:
            self._send([(self._now(), "log", self._lost_note())])
        if self._dropped_lines:
            message = f"{self._dropped_lines} lines ({self._dropped_bytes} bytes) were left out here"
            message = f"WARNING {message}: an attempt may write {self._limit} bytes"
            self._send([(self._tail[0].at, "log", message)])
            self._session.leave_out(self._item, self._dropped_lines, self._dropped_bytes)
        for block in self._tail:
            text = block.text if isinstance(block.text, str) else clean(block.text.decode(errors="replace"))
            for line in text.split("\n"):
                cut = [line[at : at + MAX_LINE].removesuffix("\r") for at in range(0, max(1, len(line)), MAX_LINE)]
                self._send([(block.at, block.stream, part) for part in cut])
        self._tail.clear()

    def _lost_note(self) -> str:
        lost, self._lost = self._lost, 0
        return f"WARNING {lost} lines were lost, because too many lines were waiting for a server"

    def _now(self) -> Instant:
        return self._session.time.instant(self._monotonic())
