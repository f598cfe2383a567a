"""Contents of answers, unpacked no further than they are wanted: a few bytes can stand for gigabytes."""

import zlib
from typing import Any

ACCEPTED = "gzip"


class Content:
    """Collects a body up to `most` bytes. `is_full` when there is more than that."""

    def __init__(self, encoding: str, most: int) -> None:
        self._most = most
        self._parts: list[bytes] = []
        self._size = 0
        self._decoder = _decoder(encoding.strip().lower())
        self.is_full = False

    def add(self, piece: bytes) -> None:
        """Take in a piece as it came over the wire. Raises ValueError for what is not what it was said to be."""
        room = self._most - self._size
        if self._decoder is None:
            self._keep(piece[: room + 1])
            return
        try:
            self._keep(self._decoder.decompress(piece, room + 1))
        except zlib.error as error:
            raise ValueError(f"the answer cannot be unpacked: {error}") from None

    def whole(self) -> bytes:
        return b"".join(self._parts)[: self._most]

    def _keep(self, piece: bytes) -> None:
        self._parts.append(piece)
        self._size += len(piece)
        self.is_full = self._size > self._most


def _decoder(encoding: str) -> Any:
    """For what was asked for; anything else stays as it came."""
    return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16) if encoding in ("gzip", "x-gzip") else None
