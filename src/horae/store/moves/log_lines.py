"""Log lines as exchanges bring them: kept as compressed pieces, numbered through, bounded for each execution."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from horae.model.log_chunk import pack_lines, size_of
from horae.model.protocol import LOG_LIMIT, LogLines
from horae.store.moves import shelves
from horae.store.moves.effects import Effects
from horae.store.moves.told import Moved
from horae.store.script import ForEach, Script, Statement

if TYPE_CHECKING:
    from horae.store.moves.exchange import Head

ATTEMPTS_KEPT = 8  # as many times as one attempt may write is kept of an execution
MOST = LOG_LIMIT * ATTEMPTS_KEPT  # bytes of the lines of one execution, unless the server says otherwise

_LAST = (
    "FROM logs l WHERE l.parcel = given.parcel AND l.item = given.item AND l.attempt <= given.attempt"
    " ORDER BY l.attempt DESC, l.seq DESC LIMIT 1"
)
_BASE = f"(SELECT CASE WHEN l.attempt = given.attempt THEN l.base ELSE l.base + l.seq + l.count END {_LAST})"
_UPTO = f"(SELECT l.upto {_LAST})"
# What a piece follows on is read where it is put: an exchange with lines costs no statement more for their numbers and
# their bound. An attempt's lines come in order, and none of an older attempt comes after the first of a newer one.
KEEP = Statement(
    "keep_log_lines",
    "INSERT INTO logs (parcel, item, attempt, seq, count, base, upto, left_lines, left_bytes, lines)"
    " SELECT given.parcel, given.item, given.attempt, given.seq, given.count,"
    f" COALESCE({_BASE}, 0), COALESCE({_UPTO}, 0) + given.size, given.left_lines, given.left_bytes, given.lines"
    f" FROM given WHERE COALESCE({_UPTO}, 0) < given.most ON CONFLICT DO NOTHING",
)
PIECE: shelves.Columns = (
    ("parcel", "uuid"), ("item", "int"), ("attempt", "int"), ("seq", "int"), ("count", "int"), ("size", "bigint"),
    ("left_lines", "int"), ("left_bytes", "bigint"), ("lines", "bytea"), ("most", "bigint"),
)  # fmt: skip


class Holds(Protocol):
    """Whether an item is held at an attempt, and what to tell of it."""

    def __call__(self, parcel: UUID, item: int, attempt: int) -> bool: ...

    def moved(self, parcel: UUID, item: int) -> Moved: ...


def pack_all(logs: Sequence[LogLines]) -> list[bytes]:
    """The lines of an exchange as they are kept; to be made before its transaction."""
    return [pack_lines(log.lines) for log in logs]


def keep_lines(head: "Head", holds: Holds, effects: Effects) -> Script[None]:
    """Keep log lines of items this session holds; known lines are ignored, and those beyond the bound left out."""
    logs = head.exchange.logs
    pieces = head.pieces or pack_all(logs)
    rows = [
        (
            log.parcel, log.item, log.attempt, log.seq, len(log.lines), size_of(log.lines),
            *(log.left_out or (None, None)), piece, head.most_log,
        )
        for log, piece in zip(logs, pieces, strict=True)
        if log.lines and holds(log.parcel, log.item, log.attempt)
    ]  # fmt: skip
    if rows:
        yield ForEach(KEEP, PIECE, rows)
        effects.logged += [holds.moved(row[0], row[1]) for row in rows]
