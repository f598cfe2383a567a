"""Log lines from exchanges: stored as compressed pieces, with consecutive numbers, up to a size for each execution."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from msgspec import structs

from horae.model.executions.output.log_chunk import pack_lines, size_of
from horae.model.fleet.protocol import LOG_LIMIT, LogLines
from horae.store.base import shelves
from horae.store.executions.leaving.effects import Effects
from horae.store.executions.state_changes import MovedItems
from horae.store.script import ForEach, Script, Statement

if TYPE_CHECKING:
    from horae.store.fleet.exchange import IncomingExchange

LIMIT_FACTOR = 8  # all attempts of an execution together may store this multiple of the limit of one attempt
MAX_LOG_BYTES = LOG_LIMIT * LIMIT_FACTOR  # size limit of an execution's log, unless the server has another limit

MOST_OPEN = 2000  # the number of last characters of an unfinished line that are stored
STREAMS = 2  # streams that can have an unfinished line

_LAST = (
    "FROM logs l WHERE l.parcel = given.parcel AND l.item = given.item AND l.attempt <= given.attempt"
    " ORDER BY l.attempt DESC, l.seq DESC LIMIT 1"
)
_BASE = f"(SELECT CASE WHEN l.attempt = given.attempt THEN l.base ELSE l.base + l.seq + l.count END {_LAST})"
_UPTO = f"(SELECT l.upto {_LAST})"
_END = f"(SELECT CASE WHEN l.attempt = given.attempt THEN l.seq + l.count ELSE 0 END {_LAST})"
_REPLACES = "ON CONFLICT (parcel, item, attempt, seq)"
# The statement that inserts a piece also reads the piece before it. So no other statement is needed to number the lines
# and to check the size limit of the execution's log. Lines of an attempt arrive in order, and no line of an older
# attempt arrives after the first line of a newer one. A piece that begins before the end of the stored lines repeats
# lines of an earlier message, perhaps divided into pieces differently. Those lines must not be numbered again.
KEEP = Statement(
    "keep_log_lines",
    "INSERT INTO logs (parcel, item, attempt, seq, count, base, upto, left_lines, left_bytes, lines)"
    " SELECT given.parcel, given.item, given.attempt, given.seq, given.count,"
    f" COALESCE({_BASE}, 0), COALESCE({_UPTO}, 0) + given.size, given.left_lines, given.left_bytes, given.lines"
    f" FROM given WHERE COALESCE({_UPTO}, 0) < given.most AND given.seq >= COALESCE({_END}, 0)"
    f" {_REPLACES} DO UPDATE SET count = excluded.count, upto = excluded.upto, left_lines = excluded.left_lines,"
    " left_bytes = excluded.left_bytes, lines = excluded.lines WHERE logs.count = 0 RETURNING parcel, item",
)
# Unfinished lines are stored after the attempt's other lines, as a piece with `count` 0. The next piece replaces them.
PUT_OPEN_LINES = Statement(
    "show_open_lines",
    "INSERT INTO logs (parcel, item, attempt, seq, count, base, upto, lines)"
    " SELECT given.parcel, given.item, given.attempt, given.seq, 0,"
    f" COALESCE({_BASE}, 0), COALESCE({_UPTO}, 0), given.lines"
    f" FROM given WHERE COALESCE({_UPTO}, 0) < given.most AND given.seq = COALESCE({_END}, 0)"
    f" {_REPLACES} DO UPDATE SET lines = excluded.lines WHERE logs.count = 0",
)
ENDS = Statement("log_ends", f"SELECT given.parcel, given.item, COALESCE({_END}, 0) FROM given")
PIECE: shelves.Columns = (
    ("parcel", "uuid"), ("item", "int"), ("attempt", "int"), ("seq", "int"), ("count", "int"), ("size", "bigint"),
    ("left_lines", "int"), ("left_bytes", "bigint"), ("lines", "bytea"), ("most", "bigint"),
)  # fmt: skip
OPEN: shelves.Columns = (
    ("parcel", "uuid"), ("item", "int"), ("attempt", "int"), ("seq", "int"), ("lines", "bytea"), ("most", "bigint"),
)  # fmt: skip
ATTEMPT_COLUMNS: shelves.Columns = (("parcel", "uuid"), ("item", "int"), ("attempt", "int"))

Place = tuple[UUID, int]  # parcel, item


class HeldItems(Protocol):
    """A check whether a session holds an item at an attempt, and the notice that such an item has new log lines."""

    def __call__(self, parcel: UUID, item: int, attempt: int) -> bool: ...

    def change_of(self, parcel: UUID, item: int) -> MovedItems: ...


def pack_all(logs: Sequence[LogLines]) -> list[bytes]:
    """Return the log lines of an exchange in their stored form; the caller does this before the transaction begins."""
    return [pack_lines(log.lines) for log in logs]


def keep_lines(entry: "IncomingExchange", holds: HeldItems, effects: Effects) -> Script[None]:
    """Store the log lines of an exchange, if its session holds their items at their attempts.

    Lines that are already stored are ignored. Once the log of an execution has reached its size limit, further lines
    are dropped.
    """
    logs = entry.exchange.logs
    pieces_of: dict[Place, list[tuple[LogLines, bytes]]] = {}
    for log, piece in zip(logs, entry.packed_logs or pack_all(logs), strict=True):
        if log.lines and holds(log.parcel, log.item, log.attempt):
            pieces_of.setdefault((log.parcel, log.item), []).append((log, piece))
    while pieces_of:  # usually once, because a worker has no reason to send two pieces of one attempt together
        first = {place: pieces.pop(0) for place, pieces in pieces_of.items()}
        yield from _keep(first, entry.log_limit)
        effects.logged += [holds.change_of(*place) for place in first]
        pieces_of = {place: pieces for place, pieces in pieces_of.items() if pieces}
    unended = {(log.parcel, log.item): log for log in logs if log.open and holds(log.parcel, log.item, log.attempt)}
    if unended:
        yield ForEach(PUT_OPEN_LINES, OPEN, [_open_row(log, entry.log_limit) for log in unended.values()])
        effects.logged += [holds.change_of(*place) for place, log in unended.items() if not log.lines]


def _keep(pieces_of: Mapping[Place, tuple[LogLines, bytes]], most: int) -> Script[None]:
    """Store one piece of each execution, or only the end of the piece if its other lines are already stored."""
    rows = [_row(log, piece, most) for log, piece in pieces_of.values()]
    kept = {(parcel, item) for parcel, item in (yield ForEach(KEEP, PIECE, rows))}
    known = [(log.parcel, log.item, log.attempt) for place, (log, _) in pieces_of.items() if place not in kept]
    if not known:
        return
    rests: list[tuple[Any, ...]] = []
    for parcel, item, end in (yield ForEach(ENDS, ATTEMPT_COLUMNS, known)):
        log, _ = pieces_of[parcel, item]
        if log.seq < end < log.seq + len(log.lines):
            rest = structs.replace(log, seq=end, lines=log.lines[end - log.seq :])
            rests.append(_row(rest, pack_lines(rest.lines), most))
    if rests:
        yield ForEach(KEEP, PIECE, rests)


def _open_row(log: LogLines, most: int) -> tuple[Any, ...]:
    lines = [(at, stream, text[-MOST_OPEN:]) for at, stream, text in (log.open or ())[:STREAMS]]
    return log.parcel, log.item, log.attempt, log.seq + len(log.lines), pack_lines(lines), most


def _row(log: LogLines, piece: bytes, most: int) -> tuple[Any, ...]:
    left = log.left_out or (None, None)
    return log.parcel, log.item, log.attempt, log.seq, len(log.lines), size_of(log.lines), *left, piece, most
