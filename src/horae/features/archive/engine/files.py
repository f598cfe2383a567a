"""Files of the archive: one JSON line per execution, as the API shows it, packed with gzip."""

import zlib
from collections.abc import AsyncIterator, Iterable

import structlog

from horae.engine.storage.file_storage import FileStorage
from horae.features.artifacts.store import artifacts
from horae.store.contract import Store

PIECE = 1 << 20  # bytes
_GZIP = 31
log = structlog.get_logger("horae.archive")


class Damaged(Exception):
    """What a file says ends before its end, or is not what was written."""


class Packer:
    """Packs lines as they come."""

    def __init__(self) -> None:
        self._packer = zlib.compressobj(6, wbits=_GZIP)

    def add(self, lines: Iterable[bytes]) -> bytes:
        """What of the file is ready; perhaps nothing yet."""
        return b"".join(self._packer.compress(line + b"\n") for line in lines)

    def end(self) -> bytes:
        return self._packer.flush()


async def lines(place: FileStorage, location: str) -> AsyncIterator[bytes]:
    """The lines of a file, in bounded memory. Raises FileNotFoundError, and Damaged after the last that can be read."""
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
        raise Damaged("it ends too early")


def _opened(opener: "zlib._Decompress", piece: bytes) -> bytes:
    try:
        return opener.decompress(piece, PIECE)
    except zlib.error as error:
        raise Damaged(str(error)) from None


async def discard(store: Store, place: FileStorage, location: str) -> None:
    """Remove a file that was announced and that nothing names, whole or not."""
    try:
        await place.remove(location)
    except Exception as left:  # it is cleared away later, as litter
        log.warning("a file that nothing names cannot be removed", location=location, error=str(left))
    else:
        await store.write(lambda: artifacts.cleared([location]))
