"""Windows of a log: as many lines after or before a place (attempt, seq) as fit into one answer.

Lines are stored in packed pieces, which are unpacked one after another.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count, islice
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.features.logs import store as log_reads
from horae.features.logs.store import FEW, MANY, Piece, Place
from horae.model.executions.output.log_chunk import LINE, times_of, unpack_lines
from horae.store.contract import Store

MOST_SEARCHED = 100_000  # lines that are searched for one window, however few match
MOST_BYTES_SEARCHED = 16 * 1024 * 1024
MOST_BYTES = 8 * 1024 * 1024  # bytes of lines in one window: 500 of the longest lines that Horae's own workers send
READ_TOGETHER = 4 * 1024 * 1024  # bytes of packed pieces that are read at once
LONG = 128 * 1024  # bytes of a packed piece that is unpacked in a thread, to keep the event loop free
START: Place = (0, 0)
Line = tuple[int, int, int, Instant, str, str]  # number, attempt, seq, at, stream, text
LineFilter = Callable[[str, str], bool]  # decides by the stream and the text of a line


class LineRange(Struct, frozen=True, kw_only=True):
    """The wanted lines of an execution: their attempt, a filter, and bounds on their number and total size."""

    id: UUID  # the id of the execution
    attempt: int | None = None  # None: all attempts
    filter: LineFilter | None = None
    limit: int
    bytes: int = MOST_BYTES


class SearchedPiece(Struct):
    """The wanted lines of a piece, and the lines of it that were searched."""

    lines: list[Line]
    first: int  # numbers of the first and last searched line
    last: int
    size: int  # characters of all lines of the piece


class LogWindow(Struct):
    """The lines that were found, the lines that were searched, and whether there may be more."""

    lines: list[Line]
    first: int = 0  # numbers of the first and last searched line
    last: int = 0
    following: Place = START  # the place after the last searched line, at which the next window begins
    more: bool = False
    bytes: int = 0  # size of the lines that were found
    looked: int = 0  # number of searched lines
    searched: int = 0  # size of the pieces that were searched
    is_full: bool = False

    def fit(self, lines: Sequence[Line], span: LineRange) -> int:
        """Return how many of these lines, counted from the first, fit, and add their size to the size of the window.

        An empty window takes at least one line.
        """
        room, fitting = span.limit - len(self.lines), 0
        for line in islice(lines, room):
            size = len(line[5]) + LINE
            if self.bytes + size > span.bytes and (fitting or self.lines):
                break
            self.bytes += size
            fitting += 1
        return fitting

    def note(self, part: SearchedPiece) -> None:
        """Count the lines and bytes of a searched piece."""
        self.looked += part.last - part.first + 1
        self.searched += part.size

    def is_enough(self, span: LineRange) -> bool:
        """Tell whether the window is full, or has searched as much as one request may."""
        is_full = self.is_full or len(self.lines) >= span.limit
        return is_full or self.looked >= MOST_SEARCHED or self.searched >= MOST_BYTES_SEARCHED


async def forward(store: Store, span: LineRange, place: Place) -> LogWindow:
    """Return the window of lines that begins at a place."""
    found, many = LogWindow([], following=max(place, (span.attempt or 0, 0)), more=True), FEW
    while not found.is_enough(span):
        start = found.following
        pieces = await store.read(partial(log_reads.after, span.id, span.attempt, start, many))
        for piece in pieces:
            part = await _part(piece, span.filter, low=start)
            fitting = found.fit(part.lines, span)
            if fitting < len(part.lines):
                part.lines = part.lines[:fitting]
                part.last = part.lines[-1][0] if fitting else part.first - 1
                found.is_full = True
            if part.last >= part.first:
                found.first, found.last = found.first or part.first, part.last
                found.following = (piece.attempt, part.last - piece.base)
            found.lines += part.lines
            found.note(part)
            if found.is_enough(span):
                return found
        if len(pieces) < many:
            found.more = False
            return found
        many = _together(pieces)
    return found


async def backward(store: Store, span: LineRange, place: Place | None, newest: Place) -> LogWindow:
    """Return the window of the last lines before a place, or, if `place` is None, of the last lines of the log.

    `newest` is the place at which the next window begins if there are no lines.
    """
    found, many, end = LogWindow([], following=place or newest, more=True), FEW, place
    while not found.is_enough(span):
        pieces = await store.read(partial(log_reads.before, span.id, span.attempt, end, many))
        for piece in reversed(pieces):
            part = await _part(piece, span.filter, high=place)
            fitting = found.fit(part.lines[::-1], span)
            if not found.last:
                found.last, found.following = part.last, (piece.attempt, part.last - piece.base)
            if fitting < len(part.lines):
                part.lines = part.lines[len(part.lines) - fitting :]
                part.first = part.lines[0][0] if fitting else part.last + 1
                found.is_full = True
            if part.last >= part.first:
                found.first = part.first
            found.lines[:0] = part.lines
            found.note(part)
            if found.is_enough(span):
                return found
        if len(pieces) < many:
            found.more = False
            return found
        end, many = (pieces[0].attempt, pieces[0].seq), _together(pieces)
    return found


def _together(pieces: Sequence[Piece]) -> int:
    """Return the number of pieces to read next, as if they were as large as the largest of these pieces."""
    largest = max(len(piece.lines) for piece in pieces)
    return max(1, min(MANY, READ_TOGETHER // max(1, largest)))


def open_lines(piece: Piece | None, attempt: int | None, line_filter: LineFilter | None) -> list[Line]:
    """Return the unfinished lines that pass a filter; `piece` has the unfinished lines of the newest attempt."""
    if piece is None or attempt not in (None, piece.attempt):
        return []
    columns = unpack_lines(piece.lines)
    rows = zip(count(piece.seq), times_of(columns), columns.streams, columns.texts, strict=False)
    return [
        (piece.base + seq + 1, piece.attempt, seq, at, stream, text)
        for seq, at, stream, text in rows
        if line_filter is None or line_filter(stream, text)
    ]


async def _part(
    piece: Piece, line_filter: LineFilter | None, low: Place = START, high: Place | None = None
) -> SearchedPiece:
    """Return the wanted lines of a piece between two places.

    A search, or a large piece, is handled in a thread, because it would block the event loop.
    """
    if line_filter is None and len(piece.lines) < LONG:
        return _select(piece, None, low, high)
    return await asyncio.to_thread(_select, piece, line_filter, low, high)


def _select(piece: Piece, line_filter: LineFilter | None, low: Place, high: Place | None) -> SearchedPiece:
    columns = unpack_lines(piece.lines)
    begin = max(0, low[1] - piece.seq) if piece.attempt == low[0] else 0
    end = piece.count
    if high is not None and piece.attempt == high[0]:
        end = min(end, high[1] - piece.seq)
    times = times_of(columns)
    number = piece.base + piece.seq + 1
    rows = zip(range(number, number + piece.count), times, columns.streams, columns.texts, strict=True)
    lines = [
        (n, piece.attempt, n - piece.base - 1, at, stream, text)
        for n, at, stream, text in islice(rows, begin, end)
        if line_filter is None or line_filter(stream, text)
    ]
    return SearchedPiece(lines, number + begin, number + end - 1, sum(map(len, columns.texts)))
