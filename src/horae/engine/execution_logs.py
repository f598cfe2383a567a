"""What executions wrote, by windows: from a line on, before one, the last ones, or only those that match."""

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from itertools import islice
from typing import Annotated, Protocol
from uuid import UUID

from msgspec import Meta, Struct

from horae.env import Instant
from horae.errors import BadInput
from horae.model.cursor import check_limit, make_cursor, read_cursor
from horae.model.execution import FINAL, Execution
from horae.model.execution_view import CutView, LogLineView, LogPage
from horae.model.instant import format_instant
from horae.model.log_chunk import times_of, unpack_lines
from horae.model.log_level import LEVELS, Level, level_of, levels_from
from horae.model.log_search import search_for
from horae.store.contract import Store
from horae.store.moves import log_lines, log_reads
from horae.store.moves.execution_reads import Found
from horae.store.moves.log_reads import FEW, MANY, Piece, Place

MOST_LINES = 10_000  # in one page
MOST_SEARCHED = 100_000  # lines that are looked at for one page, however few match
TOGETHER = 5_000  # lines of a text that are made at a time
START: Place = (0, 0)
Count = Annotated[int, Meta(ge=0, lt=2**31)]
Line = tuple[int, int, int, Instant, str, str]  # number, attempt, seq, at, stream, text
Filter = Callable[[str, str], bool]  # of stream and text


class Finder(Protocol):
    """Who knows executions."""

    async def find(self, namespace: int, ref: str | UUID) -> Found: ...


class Wanted(Struct, frozen=True, kw_only=True):
    """Which lines: of an attempt, with a text in them, at least of a level."""

    attempt: int | None = None
    grep: str | None = None
    level: Level | None = None

    @property
    def filter(self) -> Filter | None:
        """Whether a line is wanted; None when all are."""
        if self.attempt is not None and not 0 <= self.attempt < 2**31:
            raise BadInput(f"attempt cannot be {self.attempt}.", "Attempts count from 1.", field="attempt")
        if self.level is not None and self.level not in LEVELS:
            raise BadInput(f"{self.level!r} is not a level.", f"It is one of: {', '.join(LEVELS)}.", field="level")
        matches = None if self.grep is None else search_for(self.grep)
        levels = None if self.level is None else levels_from(self.level)
        if matches is None and levels is None:
            return None
        return lambda stream, text: (
            (matches is None or matches(text)) and (levels is None or level_of(stream, text) in levels)
        )


ALL = Wanted()


class Window(Struct):
    """Lines that were found, the places they lie between, and whether there are more beyond."""

    lines: list[Line]
    first: int = 0  # numbers of the lines that were looked at
    last: int = 0
    following: Place = START
    more: bool = False


class ExecutionLogs:
    """Reads the logs of executions."""

    def __init__(self, store: Store, executions: Finder, *, most: int = log_lines.MOST) -> None:
        """`most` bytes are kept of one execution's lines."""
        self._store, self._executions, self._most = store, executions, most

    async def read(
        self,
        namespace: int,
        execution: str | UUID,
        wanted: Wanted = ALL,
        *,
        cursor: str | None = None,
        tail: int | None = None,
        after: int | None = None,
        before: int | None = None,
        limit: int = 1000,
    ) -> LogPage:
        """Lines in order: from the beginning, after a cursor or a number, before a number, or the last `tail`.

        Numbers count from 1 through all attempts and never change. A page of a search may be short, even empty, while
        `more` says that there is more to look at.
        """
        place = START if cursor is None else read_cursor(cursor, tuple[Count, Count])
        check_limit(limit, MOST_LINES)
        if tail is not None and not 0 <= tail <= MOST_LINES:
            raise BadInput(f"tail cannot be {tail}.", f"It runs from 0 to {MOST_LINES}.", field="tail")
        if sum(given is not None for given in (cursor, after, before)) > 1:
            remedy = "Use one of cursor, after and before."
            raise BadInput("A page cannot begin at several places.", remedy, field="cursor")
        filter = wanted.filter
        e = (await self._executions.find(namespace, execution)).execution
        if before is not None:
            window = await self._backward(e, wanted, filter, await self._place(e, before), limit)
        elif tail is not None and cursor is None and after is None:
            window = await self._backward(e, wanted, filter, None, tail)
        else:
            start = place if after is None else await self._place(e, after + 1)
            window = await self._forward(e, wanted, filter, start, limit)
        extent = await self._store.read(lambda: log_reads.extent(e.id))
        return LogPage(
            items=list(map(_view, window.lines)),
            next_cursor=make_cursor(window.following),
            ended=e.state in FINAL,
            more=window.more,
            lines=extent.lines,
            from_=window.first,
            to=window.last,
            truncated=self._cut(extent),
        )

    async def text(
        self,
        namespace: int,
        execution: str | UUID,
        wanted: Wanted = ALL,
        *,
        times: bool = False,
    ) -> AsyncIterator[bytes]:
        """All lines as one text, piece by piece; each with its time before it if so asked."""
        filter = wanted.filter
        e = (await self._executions.find(namespace, execution)).execution
        return self._pieces(e, wanted, filter, times)

    async def _pieces(self, e: Execution, wanted: Wanted, filter: Filter | None, times: bool) -> AsyncIterator[bytes]:
        place, more = START, True
        while more:
            window = await self._forward(e, wanted, filter, place, TOGETHER)
            place, more = window.following, window.more
            if window.lines:
                texts = (f"{format_instant(at)} {text}\n" if times else f"{text}\n" for *_, at, _, text in window.lines)
                yield "".join(texts).encode()
        cut = self._cut(await self._store.read(lambda: log_reads.extent(e.id)))
        if cut is not None and cut.lines == 0:
            yield f"{cut.notice}\n".encode()

    def _cut(self, extent: log_reads.Extent) -> CutView | None:
        """What is not there of a log, in words; a worker that leaves lines out says so where they would be, too."""
        if extent.left_lines:
            said = f"{extent.left_lines} lines ({extent.left_bytes} bytes) were left out: an attempt wrote too much."
            return CutView(lines=extent.left_lines, bytes=extent.left_bytes, notice=said)
        if extent.upto >= self._most:
            said = f"The log ends here: {self._most} bytes are kept of an execution's lines, and it wrote more."
            return CutView(lines=0, bytes=0, notice=said)
        return None

    async def _place(self, e: Execution, number: int) -> Place:
        return await self._store.read(lambda: log_reads.place_of(e.id, number))

    async def _forward(self, e: Execution, wanted: Wanted, filter: Filter | None, place: Place, limit: int) -> Window:
        found = Window([], following=max(place, (wanted.attempt or 0, 0)), more=True)
        looked, many = 0, FEW
        while len(found.lines) < limit and looked < MOST_SEARCHED:
            start = found.following
            pieces = await self._store.read(partial(log_reads.after, e.id, wanted.attempt, start, many))
            for piece in pieces:
                lines, first, last = await _lines(piece, filter, low=start)
                room = limit - len(found.lines)
                if len(lines) > room:
                    lines = lines[:room]
                    last = lines[-1][0]
                found.lines += lines
                found.first, found.last = found.first or first, last
                found.following = (piece.attempt, last - piece.base)
                looked += last - first + 1
                if len(found.lines) == limit:
                    return found
            if len(pieces) < many:
                found.more = False
                return found
            many = MANY
        return found

    async def _backward(
        self, e: Execution, wanted: Wanted, filter: Filter | None, place: Place | None, limit: int
    ) -> Window:
        found = Window([], following=place or (e.attempt, 0), more=True)
        looked, many, end, seen = 0, FEW, place, False
        while len(found.lines) < limit and looked < MOST_SEARCHED:
            pieces = await self._store.read(partial(log_reads.before, e.id, wanted.attempt, end, many))
            for piece in reversed(pieces):
                lines, first, last = await _lines(piece, filter, high=place)
                room = limit - len(found.lines)
                if len(lines) > room:
                    lines = lines[-room:]
                    first = lines[0][0]
                if not seen:
                    found.last, found.following, seen = last, (piece.attempt, last - piece.base), True
                found.lines[:0] = lines
                found.first = first
                looked += last - first + 1
                if len(found.lines) == limit:
                    return found
            if len(pieces) < many:
                found.more = False
                return found
            end, many = (pieces[0].attempt, pieces[0].seq), MANY
        return found


async def _lines(
    piece: Piece, filter: Filter | None, low: Place = START, high: Place | None = None
) -> tuple[list[Line], int, int]:
    """The wanted lines of a piece within bounds, and the numbers of the first and last that were looked at.

    A search takes a thread of its own: it is long, and others wait for the loop.
    """
    if filter is None:
        return _select(piece, None, low, high)
    return await asyncio.to_thread(_select, piece, filter, low, high)


def _select(piece: Piece, filter: Filter | None, low: Place, high: Place | None) -> tuple[list[Line], int, int]:
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
        if filter is None or filter(stream, text)
    ]
    return lines, number + begin, number + end - 1


def _view(line: Line) -> LogLineView:
    number, attempt, seq, at, stream, text = line
    level = level_of(stream, text)
    return LogLineView(
        number=number, attempt=attempt, seq=seq, at=format_instant(at), stream=stream, level=level, text=text
    )
