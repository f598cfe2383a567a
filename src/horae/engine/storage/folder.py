"""File storage in a folder. Several servers need a folder that all of them share."""

import asyncio
import os
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import suppress
from pathlib import Path

from horae import private

PIECE = 256 * 1024


class Folder:
    """Stores each file below a folder, and removes subfolders that became empty."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()
        self.url = self._root.as_uri()

    async def write(self, location: str, pieces: AsyncIterable[bytes]) -> None:
        path = self._root / location
        await asyncio.to_thread(private.make_folder, path.parent)
        descriptor = await asyncio.to_thread(private.create_file, path)
        try:
            async for piece in pieces:
                await asyncio.to_thread(_write, descriptor, piece)
            await asyncio.to_thread(os.fsync, descriptor)
        finally:
            os.close(descriptor)
        await asyncio.to_thread(_sync, path.parent)

    async def read(self, location: str) -> AsyncIterator[bytes]:
        file = await asyncio.to_thread((self._root / location).open, "rb")
        try:
            while piece := await asyncio.to_thread(file.read, PIECE):
                yield piece
        finally:
            file.close()

    async def remove(self, location: str) -> None:
        await asyncio.to_thread(self._remove, self._root / location)

    def _remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        for folder in path.parents:
            if folder == self._root:
                return
            with suppress(OSError):  # it is not empty
                folder.rmdir()


def _write(descriptor: int, piece: bytes) -> None:
    rest = memoryview(piece)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _sync(folder: Path) -> None:
    """Write a folder to disk, because a new file survives a crash only if its entry in the folder does."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
