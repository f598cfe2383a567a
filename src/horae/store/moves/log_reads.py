"""Log lines of an execution: after a place, or the last ones."""

from uuid import UUID

import msgspec

from horae.env import Instant
from horae.model.ids import index_of, parcel_of
from horae.store.script import Fetch, Row, Script, Statement

_COLUMNS = "SELECT attempt, seq, count, lines FROM logs WHERE parcel = $1 AND item = $2"
# A chunk that begins before the place may end after it: reading begins with the last that begins no later.
BEGIN = Statement(
    "logs_begin", "SELECT max(seq) FROM logs WHERE parcel = $1 AND item = $2 AND attempt = $3 AND seq <= $4"
)
FROM = Statement(
    "logs_from", f"{_COLUMNS} AND (attempt, seq) >= ($3, $4) AND attempt <= $5 ORDER BY attempt, seq LIMIT $6"
)
LAST = Statement(
    "logs_last",
    f"{_COLUMNS} AND attempt >= $3 AND (attempt, seq) <= ($4, $5) ORDER BY attempt DESC, seq DESC LIMIT $6",
)
ANY_ATTEMPT = 2**31 - 1
ANY_SEQ = 2**31 - 1
CHUNKS = 32  # read together: one may hold many lines, and no more should be read than are asked for

Line = tuple[int, int, Instant, str, str]  # attempt, seq, at, stream, text


def after(id: UUID, attempt: int | None, place: tuple[int, int], limit: int) -> Script[list[Line]]:
    """Up to `limit` lines from `place` (attempt, seq) on, in order; of one attempt, or of all."""
    parcel, item, newest = parcel_of(id), index_of(id), ANY_ATTEMPT if attempt is None else attempt
    rows = yield Fetch(BEGIN, (parcel, item, *place))
    first = (place[0], place[1] if rows[0][0] is None else rows[0][0])
    lines: list[Line] = []
    while len(lines) < limit:
        rows = yield Fetch(FROM, (parcel, item, *first, newest, CHUNKS))
        lines += [line for row in rows for line in _lines(row) if line[:2] >= place]
        if len(rows) < CHUNKS:
            break
        first = (rows[-1][0], rows[-1][1] + 1)
    return lines[:limit]


def last(id: UUID, attempt: int | None, n: int) -> Script[list[Line]]:
    """The last n lines, in order; of one attempt, or of all."""
    low, high = (0, ANY_ATTEMPT) if attempt is None else (attempt, attempt)
    parcel, item, newest = parcel_of(id), index_of(id), (high, ANY_SEQ)
    lines: list[Line] = []
    while len(lines) < n:
        rows = yield Fetch(LAST, (parcel, item, low, *newest, CHUNKS))
        lines = [line for row in reversed(rows) for line in _lines(row)] + lines
        if len(rows) < CHUNKS:
            break
        newest = (rows[-1][0], rows[-1][1] - 1)
    return lines[-n:] if n else []


def _lines(row: Row) -> list[Line]:
    attempt, seq, _, lines = row
    decoded = msgspec.json.decode(lines, type=list[tuple[int, str, str]])
    return [(attempt, seq + i, *line) for i, line in enumerate(decoded)]
