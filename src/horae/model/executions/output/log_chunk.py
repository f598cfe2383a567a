"""Log lines as they are stored: many in one piece, their times, streams and texts each by itself, compressed.

Times and streams repeat themselves, texts look like each other: apart they take a fifth of what lines as they come do,
and a text can be looked for before anything else is read.
"""

import zlib
from collections.abc import Sequence

import msgspec

from horae.env import Instant

Line = tuple[Instant, str, str]  # at, stream, text
LEVEL = 3  # of compression: 6 takes twice the time for an eighth less
LEAST = 256  # bytes that are worth it
_ZLIB = 0x78  # how what is compressed begins; JSON does not
LINE = 24  # bytes that a line counts beside its text


class Columns(msgspec.Struct, frozen=True, array_like=True):
    """Lines, column by column; times as steps from the one before."""

    at: Instant
    steps: list[int]
    streams: list[str]
    texts: list[str]


_decode = msgspec.json.Decoder(Columns).decode


def pack_lines(lines: Sequence[Line]) -> bytes:
    """Lines as one piece."""
    before = first = lines[0][0] if lines else 0
    steps: list[int] = []
    for at, _, _ in lines:
        steps.append(at - before)
        before = at
    plain = msgspec.json.encode(Columns(first, steps, [line[1] for line in lines], [line[2] for line in lines]))
    if len(plain) < LEAST:
        return plain
    packed = zlib.compress(plain, LEVEL)
    return packed if len(packed) < len(plain) else plain


def unpack_lines(piece: bytes) -> Columns:
    """The lines of a piece."""
    return _decode(zlib.decompress(piece) if piece[:1] == bytes([_ZLIB]) else piece)


def times_of(columns: Columns) -> list[Instant]:
    """The time of every line."""
    at, times = columns.at, []
    for step in columns.steps:
        at += step
        times.append(at)
    return times


def size_of(lines: Sequence[Line]) -> int:
    """What lines count against the bound of their execution."""
    return sum(len(text) for _, _, text in lines) + LINE * len(lines)
