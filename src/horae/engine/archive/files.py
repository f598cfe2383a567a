"""Files of the archive: one JSON line per execution, as the API shows it, packed with gzip."""

import zlib
from collections.abc import AsyncIterator, Iterable

from horae.engine.artifacts.place import Place

PIECE = 1 << 20  # bytes
_GZIP = 31


def pack(lines: Iterable[bytes]) -> bytes:
    """Lines as a file."""
    packer = zlib.compressobj(6, wbits=_GZIP)
    return b"".join([*(packer.compress(line + b"\n") for line in lines), packer.flush()])


async def pieces(content: bytes) -> AsyncIterator[bytes]:
    """A content piece by piece, as places take it."""
    for at in range(0, len(content), PIECE):
        yield content[at : at + PIECE]


async def lines(place: Place, location: str) -> AsyncIterator[bytes]:
    """The lines of a file, in bounded memory. Raises FileNotFoundError."""
    opener, rest = zlib.decompressobj(wbits=_GZIP), b""
    async for piece in place.read(location):
        data = opener.decompress(piece, PIECE)
        while data or opener.unconsumed_tail:
            *whole, rest = (rest + data).split(b"\n")
            for line in whole:
                yield line
            data = opener.decompress(opener.unconsumed_tail, PIECE)
    for line in (rest + opener.flush()).split(b"\n"):
        if line:
            yield line
