"""Reads the output of a child process as it arrives, and divides it into log lines."""

import asyncio
import os
from collections import deque
from collections.abc import Callable

from horae.model.base.redaction import RedactingStream
from horae.model.fleet.protocol import LogStream
from horae.worker.attempt_log import MAX_LINE, AttemptLog
from horae.worker.logs.log_queue import BACKLOG
from horae.worker.runners.base import RunnerHost
from horae.worker.session import WorkerSession

READ = 64 * 1024  # bytes
LAST = 3  # last lines of an output that error messages quote
PAUSE = 0.05  # seconds until an output is read again if the server does not keep up
SHOWN_AFTER = 0.3  # seconds that a line waits for its end before it is shown unfinished
MOST_SHOWN = 2000  # characters of an unfinished line


class OutputMeter:
    """Counts the bytes that an execution writes to all its outputs, and calls `too_much` once they exceed `most`."""

    def __init__(self, most: int, too_much: Callable[[], object]) -> None:
        self._most = most
        self._too_much = too_much
        self.count = 0

    @property
    def is_over(self) -> bool:
        return self.count > self._most

    def add(self, count: int) -> None:
        was_over = self.is_over
        self.count += count
        if self.is_over and not was_over:
            self._too_much()


class Output:
    """A pipe from a child process to the log of the execution that it runs.

    `writer` is the child's end of the pipe: pass it to the child, then close it by `close_writer`.
    """

    def __init__(self, host: RunnerHost, session: WorkerSession, stream: LogStream) -> None:
        self._host = host
        self._session = session
        self._stream = stream
        self._journal: AttemptLog | None = None
        self._covering: RedactingStream | None = None  # masks secrets, before lines are split
        self._partial = b""
        self._is_cut = False  # whether the rest of a line that was too long is still to come
        self._ends = 0  # number of reads, so far, that finished a line
        self._looks = False  # whether a check of the unfinished line is scheduled
        self._shown: bytes | None = None
        self._reader, self.writer = os.pipe()
        os.set_blocking(self._reader, False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._reader, self._readable)
        self.last: deque[str] = deque(maxlen=LAST)  # the last lines, for error messages
        self.meter: OutputMeter | None = None

    def assign(self, session: WorkerSession, journal: AttemptLog | None) -> None:
        """From now on, add lines to this execution's log; with None, drop them."""
        self.drain()
        self._session, self._journal, self._is_cut = session, journal, False
        redactor = None if journal is None else journal.redactor
        self._covering = None if redactor is None else redactor.stream()
        self.last.clear()

    def close_writer(self) -> None:
        """Close the child's end, since the child has its own copy."""
        if self.writer >= 0:
            os.close(self.writer)
            self.writer = -1

    def drain(self) -> None:
        """Read everything written so far, and the last line even if it is unfinished."""
        while self._reader >= 0 and self._read():
            pass
        if self._covering is not None:
            self._take(self._covering.end())
        if self._partial:
            self._write([visible_text(self._partial)])
            self._partial = b""
        self._hide()

    def close(self) -> None:
        """Read the rest and close the pipe."""
        self.drain()
        self.close_writer()
        self._stop_reading()

    def _stop_reading(self) -> None:
        if self._reader >= 0:
            self._loop.remove_reader(self._reader)
            os.close(self._reader)
            self._reader = -1

    def _readable(self) -> None:
        """Read once. If the server answers but does not keep up with the log lines, pause, so that the child waits."""
        if self._session.outbox.logs.bytes > BACKLOG and self._session.fence > self._host.env.clock.monotonic():
            self._loop.remove_reader(self._reader)
            self._host.after(PAUSE, self._resume)
        else:
            self._read()

    def _resume(self) -> None:
        if self._reader >= 0:
            self._loop.add_reader(self._reader, self._readable)

    def _read(self) -> bool:
        try:
            data = os.read(self._reader, READ)
        except BlockingIOError:
            return False
        if not data:
            self._stop_reading()
            return False
        if self.meter is not None:
            self.meter.add(len(data))
        self._take(data if self._covering is None else self._covering.feed(data))
        return True

    def _take(self, data: bytes) -> None:
        if self._is_cut and data:
            self._is_cut = False
            data = data[2:] if data.startswith(b"\r\n") else data.removeprefix(b"\n")
        lines = (self._partial + data).split(b"\n")
        if b"\r" in data or b"\r" in self._partial:
            lines = [*map(visible_text, lines[:-1]), unfinished_part(lines[-1])]
        self._partial = lines.pop()
        if len(self._partial) > MAX_LINE:
            lines.append(visible_text(self._partial))
            self._partial, self._is_cut = b"", True
        if lines:
            self._ends += 1
            self._write(lines)
            self._hide()
        if self._partial and not self._looks and self._journal is not None:
            self._looks = True
            self._host.after(SHOWN_AFTER, self._look, self._ends)

    def _look(self, ends: int) -> None:
        """Show a line that has been unfinished for a while, such as a progress bar or a prompt."""
        self._looks = False
        if self._journal is None or not self._partial or self._reader < 0:
            return
        if ends == self._ends and self._partial != self._shown:
            self._shown = self._partial
            self._journal.show(self._stream, visible_text(self._partial).decode(errors="replace")[-MOST_SHOWN:])
        elif ends != self._ends:
            self._looks = True
            self._host.after(SHOWN_AFTER, self._look, self._ends)

    def _hide(self) -> None:
        """Remove the shown unfinished line, since it is finished."""
        if self._shown is not None and self._journal is not None:
            self._journal.show(self._stream, None)
        self._shown = None

    def _write(self, lines: list[bytes]) -> None:
        if self._journal is None:
            return
        full = self._journal.is_full and bool(lines)
        for line in lines[-LAST:] if full else lines:  # dropped lines need no decoding
            text = line.removesuffix(b"\r").decode(errors="replace")
            self.last.append(text[:500])
            if not full:
                self._journal.write(self._stream, text)
        if full:
            self._journal.write_raw(self._stream, lines)


def visible_text(line: bytes) -> bytes:
    """Return the text of a line that a terminal would show: text after a carriage return replaces the text before."""
    return line.rstrip(b"\r").rpartition(b"\r")[2]


def unfinished_part(partial: bytes) -> bytes:
    """Return the visible text of an unfinished line. A carriage return at its end stays: a line feed may follow."""
    return visible_text(partial) + (b"\r" if partial.endswith(b"\r") else b"")


def last_lines_of(output: Output) -> Callable[[], str]:
    """Return a function that formats the last lines of an output as the end of an error message."""
    return lambda: f": {' | '.join(line for line in output.last if line.strip())}" if any(output.last) else ""
