"""Reads of log lines: after a line, before a line, or the last lines, with or without a filter."""

from collections.abc import AsyncGenerator, Sequence
from typing import Annotated, Protocol
from uuid import UUID

from msgspec import Meta, Struct

from horae.errors import BadInput
from horae.features.logs import store as log_reads
from horae.features.logs.engine.windows import START, Line, LineFilter, LineRange, backward, forward, open_lines
from horae.features.logs.store import Place
from horae.model.base.cursor import check_limit, make_cursor, read_cursor
from horae.model.base.instant import format_instant
from horae.model.executions.execution import FINAL, Execution
from horae.model.executions.execution_view import LogCutView, LogLineView, LogPage
from horae.model.executions.output.log_level import LEVELS, Level, level_of, levels_from
from horae.model.expressions.patterns import search_for
from horae.store.contract import Store
from horae.store.executions import log_lines
from horae.store.executions.reads.execution_reads import FoundExecution

MOST_LINES = 10_000  # lines in one page
TOGETHER, BYTES_TOGETHER = 5_000, 1024 * 1024  # lines and bytes that are sent together when a log is read as one text
Count = Annotated[int, Meta(ge=0, lt=2**31)]


class Finder(Protocol):
    """A source of executions by name or id."""

    async def find(self, namespace: int, ref: str | UUID) -> FoundExecution: ...


class LineSelection(Struct, frozen=True, kw_only=True):
    """A selection of lines: by their attempt, by a text in them, and by their least level."""

    attempt: int | None = None
    grep: str | None = None
    level: Level | None = None

    @property
    def filter(self) -> LineFilter | None:
        """Return the filter by text and level, or None when neither is given."""
        if self.attempt is not None and not 1 <= self.attempt < 2**31:
            raise BadInput(f"attempt cannot be {self.attempt}.", "Attempts count from 1.", field="attempt")
        if self.level is not None and self.level not in LEVELS:
            raise BadInput(f"{self.level!r} is not a level.", f"Choose one of: {', '.join(LEVELS)}.", field="level")
        matches = None if self.grep is None else search_for(self.grep)
        levels = None if self.level is None else levels_from(self.level)
        if matches is None and levels is None:
            return None
        return lambda stream, text: (
            (matches is None or matches(text)) and (levels is None or level_of(stream, text) in levels)
        )


ALL = LineSelection()


class ExecutionLogs:
    """Reads of the logs of executions."""

    def __init__(self, store: Store, executions: Finder, *, most: int = log_lines.MAX_LOG_BYTES) -> None:
        """Read from a store that keeps up to `most` bytes of lines per execution."""
        self._store, self._executions, self._most = store, executions, most

    async def read(
        self,
        namespace: int,
        execution: str | UUID,
        wanted: LineSelection = ALL,
        *,
        cursor: str | None = None,
        tail: int | None = None,
        after: int | None = None,
        before: int | None = None,
        limit: int = 1000,
    ) -> LogPage:
        """Return lines in order: from the start, after a cursor or number, before a number, or the last `tail` lines.

        Lines are numbered from 1 through all attempts, and their numbers never change. Although `more` is true, a page
        may have fewer lines than `limit` if lines are long, or in a search; in a search it may even be empty.
        """
        place = START if cursor is None else read_cursor(cursor, tuple[Count, Count])
        check_limit(limit, MOST_LINES)
        if tail is not None and not 0 <= tail <= MOST_LINES:
            raise BadInput(f"tail cannot be {tail}.", f"Use a value from 0 to {MOST_LINES}.", field="tail")
        if sum(given is not None for given in (cursor, after, before)) > 1:
            remedy = "Use one of cursor, after and before."
            raise BadInput("A page cannot begin at several places.", remedy, field="cursor")
        line_filter = wanted.filter
        e = (await self._executions.find(namespace, execution)).execution
        is_tail = tail is not None and cursor is None and after is None and before is None
        most = tail if is_tail and tail is not None else limit
        span = LineRange(id=e.id, attempt=wanted.attempt, filter=line_filter, limit=most)
        if before is not None:
            window = await backward(self._store, span, await self._place(e, before), (e.attempt, 0))
        elif is_tail:
            window = await backward(self._store, span, None, (e.attempt, 0))
        else:
            start = place if after is None else await self._place(e, after + 1)
            window = await forward(self._store, span, start)
        extent = await self._store.read(lambda: log_reads.extent(e.id))
        return LogPage(
            items=list(map(_view, window.lines)),
            next_cursor=make_cursor(window.following),
            ended=e.state in FINAL,
            more=window.more,
            total_lines=extent.lines,
            from_=window.first,
            to=window.last,
            truncated=self._cut(extent),
            unfinished_lines=list(map(_view, open_lines(extent.open, wanted.attempt, line_filter))),
        )

    async def text(
        self,
        namespace: int,
        execution: str | UUID,
        wanted: LineSelection = ALL,
        *,
        timestamps: bool = False,
    ) -> AsyncGenerator[bytes]:
        """Return all lines as one text, in chunks; with `timestamps`, each line begins with its time."""
        line_filter = wanted.filter
        e = (await self._executions.find(namespace, execution)).execution
        return self._pieces(e, wanted, line_filter, timestamps)

    async def _pieces(
        self, e: Execution, wanted: LineSelection, line_filter: LineFilter | None, times: bool
    ) -> AsyncGenerator[bytes]:
        place, more, extent = START, True, log_reads.LogExtent()
        span = LineRange(id=e.id, attempt=wanted.attempt, filter=line_filter, limit=TOGETHER, bytes=BYTES_TOGETHER)
        while more:
            extent = await self._store.read(lambda: log_reads.extent(e.id))
            window = await forward(self._store, span, place)
            place, more = window.following, window.more
            if window.lines:
                yield _text(window.lines, times)
        is_open = extent.open is not None and place <= (extent.open.attempt, extent.open.seq)
        if is_open and (unended := open_lines(extent.open, wanted.attempt, line_filter)):
            yield _text(unended, times)
        cut = self._cut(extent)
        if cut is not None and cut.ends:
            yield f"{cut.notice}\n".encode()

    def _cut(self, extent: log_reads.LogExtent) -> LogCutView | None:
        """Describe missing lines, or return None if none are missing.

        A worker that leaves lines out also writes a line about it in their place.
        """
        notices: list[str] = []
        if extent.left_lines:
            notices.append(
                f"{extent.left_lines} lines ({extent.left_bytes} bytes) were left out,"
                " because an attempt wrote more than its limit."
            )
        if ends := extent.upto >= self._most:
            notices.append(
                f"The log ends here: {self._most} bytes are stored per execution, and this execution wrote more."
            )
        if not notices:
            return None
        return LogCutView(lines=extent.left_lines, bytes=extent.left_bytes, ends=ends, notice=" ".join(notices))

    async def _place(self, e: Execution, number: int) -> Place:
        return await self._store.read(lambda: log_reads.place_of(e.id, number))


def _text(lines: Sequence[Line], times: bool) -> bytes:
    return "".join(f"{format_instant(at)} {text}\n" if times else f"{text}\n" for *_, at, _, text in lines).encode()


def _view(line: Line) -> LogLineView:
    number, attempt, seq, at, stream, text = line
    level = level_of(stream, text)
    return LogLineView(
        number=number, attempt=attempt, seq=seq, at=format_instant(at), stream=stream, level=level, text=text
    )
