"""Log lines of an execution: after a place, or the last ones."""

from uuid import UUID

import msgspec

from horae.env import Instant
from horae.model.ids import index_of, parcel_of
from horae.store.script import Fetch, Row, Script, Statement

_COLUMNS = "SELECT attempt, seq, count, lines FROM logs WHERE parcel = $1 AND item = $2"
# A chunk that begins before the place may end after it: `count` tells.
AFTER = Statement(
    "logs_after",
    f"{_COLUMNS} AND (attempt > $3 OR (attempt = $3 AND seq + count > $4)) AND attempt <= $5"
    " ORDER BY attempt, seq LIMIT $6",
)
LAST = Statement(
    "logs_last", f"{_COLUMNS} AND attempt >= $3 AND attempt <= $4 ORDER BY attempt DESC, seq DESC LIMIT $5"
)
ANY_ATTEMPT = 2**31 - 1

Line = tuple[int, int, Instant, str, str]  # attempt, seq, at, stream, text


def after(id: UUID, attempt: int | None, place: tuple[int, int], limit: int) -> Script[list[Line]]:
    """Up to `limit` lines from `place` (attempt, seq) on, in order; of one attempt, or of all."""
    rows = yield Fetch(AFTER, (parcel_of(id), index_of(id), *place, ANY_ATTEMPT if attempt is None else attempt, limit))
    lines = [line for row in rows for line in _lines(row) if line[:2] >= place]
    return lines[:limit]


def last(id: UUID, attempt: int | None, n: int) -> Script[list[Line]]:
    """The last n lines, in order; of one attempt, or of all."""
    low, high = (0, ANY_ATTEMPT) if attempt is None else (attempt, attempt)
    rows = yield Fetch(LAST, (parcel_of(id), index_of(id), low, high, n))
    return [line for row in reversed(rows) for line in _lines(row)][-n:] if n else []


def _lines(row: Row) -> list[Line]:
    attempt, seq, _, lines = row
    decoded = msgspec.json.decode(lines, type=list[tuple[int, str, str]])
    return [(attempt, seq + i, *line) for i, line in enumerate(decoded)]
