"""Files of the archive: one JSON line per execution, as the API shows it, compressed with gzip."""

import zlib
from collections.abc import AsyncIterator, Iterable

import structlog

from horae.engine.storage.file_storage import FileStorage
from horae.features.artifacts.store import artifacts
from horae.store.contract import Store

PIECE = 1 << 20  # the most bytes to decompress at once
_GZIP = 31  # zlib's `wbits` for the gzip format
log = structlog.get_logger("horae.archive")


class DamagedFile(Exception):
    """An error for a file that is truncated or corrupt."""


class Packer:
    """Compresses lines incrementally."""

    def __init__(self) -> None:
        self._packer = zlib.compressobj(6, wbits=_GZIP)

    def add(self, lines: Iterable[bytes]) -> bytes:
        """Add lines, and return the compressed data that is ready, which may be empty."""
        return b"".join(self._packer.compress(line + b"\n") for line in lines)

    def end(self) -> bytes:
        return self._packer.flush()


async def lines(place: FileStorage, location: str) -> AsyncIterator[bytes]:
    """Yield the lines of a file; only a part of it is in memory at a time.

    Raises FileNotFoundError, or DamagedFile after the last readable line.
    """
    opener, rest = zlib.decompressobj(wbits=_GZIP), b""
    async for piece in place.read(location):
        data = _opened(opener, piece)
        while data or opener.unconsumed_tail:
            *whole, rest = (rest + data).split(b"\n")
            for line in whole:
                yield line
            data = _opened(opener, opener.unconsumed_tail)
    *whole, rest = (rest + opener.flush()).split(b"\n")
    for line in whole:
        yield line
    if rest or not opener.eof:
        raise DamagedFile("the file is incomplete")


def _opened(opener: "zlib._Decompress", piece: bytes) -> bytes:
    try:
        return opener.decompress(piece, PIECE)
    except zlib.error as error:
        raise DamagedFile(str(error)) from None


async def discard(store: Store, place: FileStorage, location: str) -> None:
    """Remove an announced file, complete or not, that has no row in the archive."""
    try:
        await place.remove(location)
    except Exception as left:  # the sweep of litter removes it later
        log.warning("a file that is not part of the archive cannot be removed", location=location, error=str(left))
    else:
        await store.write(lambda: artifacts.forget_deleted_locations([location]))
