"""Reads of the log lines of an execution: pieces after or before a place, and the place of a line by its number.

Pieces are returned in their stored form; callers unpack them outside the transaction.
"""

from uuid import UUID

from msgspec import Struct

from horae.model.base.ids import index_of, parcel_of
from horae.store.script import Fetch, Row, Script, Statement

_COLUMNS = "SELECT attempt, seq, count, base, lines FROM logs WHERE parcel = $1 AND item = $2 AND count > 0"
# Finds the last piece that begins at or before a place, because it may end after the place.
BEGIN = Statement(
    "logs_begin",
    "SELECT seq, count FROM logs WHERE parcel = $1 AND item = $2 AND attempt = $3 AND seq <= $4 AND count > 0"
    " ORDER BY seq DESC LIMIT 1",
)
FROM = Statement(
    "logs_from", f"{_COLUMNS} AND (attempt, seq) >= ($3, $4) AND attempt <= $5 ORDER BY attempt, seq LIMIT $6"
)
LAST = Statement(
    "logs_last",
    f"{_COLUMNS} AND attempt >= $3 AND (attempt, seq) < ($4, $5) ORDER BY attempt DESC, seq DESC LIMIT $6",
)
NEWEST = Statement(
    "logs_newest",
    "SELECT attempt, seq, count, base, upto FROM logs WHERE parcel = $1 AND item = $2 AND attempt <= $3"
    " ORDER BY attempt DESC, seq DESC LIMIT 1",
)
OPEN = Statement(
    "logs_open", "SELECT lines FROM logs WHERE parcel = $1 AND item = $2 AND attempt = $3 AND seq = $4 AND count = 0"
)
CUT = Statement(
    "logs_cut",
    "SELECT CAST(sum(left_lines) AS bigint), CAST(sum(left_bytes) AS bigint) FROM logs"
    " WHERE parcel = $1 AND item = $2 AND left_lines IS NOT NULL",
)
ANY_ATTEMPT = 2**31 - 1
ANY_SEQ = 2**31 - 1
FEW, MANY = 4, 32  # pieces that are read at once: by the first read, and at most by later ones

Place = tuple[int, int]  # attempt, seq


class Piece(Struct, frozen=True):
    """Consecutive lines of one attempt, packed."""

    attempt: int
    seq: int  # position of the first line among the lines of the attempt, counted from 0
    count: int
    base: int  # number of lines of earlier attempts
    lines: bytes


class LogExtent(Struct, frozen=True):
    """The size of a log, the lines that workers left out, and unfinished lines."""

    lines: int = 0
    upto: int = 0  # bytes that count towards the size limit of the execution's log
    left_lines: int = 0  # lines, and their bytes, that workers left out
    left_bytes: int = 0
    open: Piece | None = None  # unfinished lines of the newest attempt


def extent(execution: UUID) -> Script[LogExtent]:
    """Return the size of an execution's log, the lines that were left out, and its unfinished lines."""
    place = parcel_of(execution), index_of(execution)
    rows = yield Fetch(NEWEST, (*place, ANY_ATTEMPT))
    if not rows:
        return LogExtent()
    attempt, seq, count, base, upto = rows[0]
    ((lines, size),) = yield Fetch(CUT, place)
    found = [] if count else (yield Fetch(OPEN, (*place, attempt, seq)))
    unended = Piece(attempt, seq, 0, base, bytes(found[0][0])) if found else None
    return LogExtent(base + seq + count, upto, int(lines or 0), int(size or 0), unended)


def place_of(execution: UUID, number: int) -> Script[Place]:
    """Return the place of the line with a number; if there is no such line yet, the place where it would be.

    Lines are numbered from 1 through all attempts.
    """
    parcel, item, wanted = parcel_of(execution), index_of(execution), number - 1
    low, high, found = 0, ANY_ATTEMPT, (0, max(0, wanted))
    while low <= high:
        middle = high if high == ANY_ATTEMPT else (low + high) // 2  # most executions have one attempt
        rows = yield Fetch(NEWEST, (parcel, item, middle))
        if not rows:
            low = middle + 1
            continue
        attempt, _, _, base, _ = rows[0]
        if base <= wanted:
            found, low = (attempt, wanted - base), middle + 1
        else:
            high = attempt - 1
    return found


def after(execution: UUID, attempt: int | None, place: Place, most: int) -> Script[list[Piece]]:
    """Return up to `most` pieces in order, beginning with the piece that has the line at `place`, or the next piece.

    If `attempt` is given, pieces of later attempts are left out.
    """
    parcel, item, newest = parcel_of(execution), index_of(execution), ANY_ATTEMPT if attempt is None else attempt
    attempt, first = place
    for seq, count in (yield Fetch(BEGIN, (parcel, item, *place))):
        first = seq if seq + count > first else first
    rows = yield Fetch(FROM, (parcel, item, attempt, first, newest, most))
    return [_piece(row) for row in rows]


def before(execution: UUID, attempt: int | None, place: Place | None, most: int) -> Script[list[Piece]]:
    """Return up to `most` pieces in order: the last that begin before `place`, or of the log if `place` is None.

    If `attempt` is given, only pieces of this attempt are returned.
    """
    low, high = (0, ANY_ATTEMPT) if attempt is None else (attempt, attempt)
    end = (high, ANY_SEQ) if place is None else min(place, (high, ANY_SEQ))
    rows = yield Fetch(LAST, (parcel_of(execution), index_of(execution), low, *end, most))
    return [_piece(row) for row in reversed(rows)]


def _piece(row: Row) -> Piece:
    return Piece(row[0], row[1], row[2], row[3], bytes(row[4]))
