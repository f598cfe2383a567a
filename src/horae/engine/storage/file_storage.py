"""The interface of file storage, its choice by URL, and the storage in a folder."""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from horae import private
from horae.engine.storage.buckets import Bucket
from horae.errors import BadInput

SCHEMES = ("s3", "gs", "az")
PIECE = 256 * 1024


class FileStorage(Protocol):
    """Stores files under locations: relative paths of safe parts."""

    url: str  # its address, shown to users

    async def write(self, location: str, pieces: AsyncIterable[bytes]) -> None:
        """Store a file; it is durable on return. After an exception no reader uses the partial file."""
        ...

    def read(self, location: str) -> AsyncGenerator[bytes]:
        """Return a file's content in pieces. Raises FileNotFoundError."""
        ...

    async def remove(self, location: str) -> None:
        """Delete a file, if it exists."""
        ...


def open_storage(url: str) -> FileStorage:
    """Open the storage that a setting names: a path, or a URL such as s3://bucket/prefix."""
    parts = urlsplit(url)
    if parts.scheme in SCHEMES and parts.netloc:
        return Bucket(url)
    if "://" in url:
        remedy = f"Give a folder, or a URL of one of {', '.join(f'{scheme}://' for scheme in SCHEMES)}."
        raise BadInput(f"Artifacts cannot be stored at {url!r}.", remedy, field="artifacts")
    return Folder(Path(url))


class Folder:
    """Stores each file below a folder, and removes subfolders that became empty.

    Several servers need a folder that all of them share.
    """

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()
        self.url = self._root.as_uri()

    async def write(self, location: str, pieces: AsyncIterable[bytes]) -> None:
        path = self._root / location
        await asyncio.to_thread(_make_folder, path.parent)
        opened = asyncio.ensure_future(asyncio.to_thread(private.create_file, path))
        try:
            descriptor = await asyncio.shield(opened)
            async for piece in pieces:
                await _to_its_end(_write, descriptor, piece)
            await _to_its_end(os.fsync, descriptor)
        finally:
            os.close(await opened)
        await asyncio.to_thread(_sync, path.parent)

    async def read(self, location: str) -> AsyncGenerator[bytes]:
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


async def _to_its_end(work: Callable[..., None], *given: object) -> None:
    """Run work on an open file in a thread; after a cancellation, wait for its end, so that the file can be closed."""
    running = asyncio.ensure_future(asyncio.to_thread(work, *given))
    try:
        await asyncio.shield(running)
    finally:
        await asyncio.wait([running])


def _make_folder(folder: Path) -> None:
    """Create a folder and missing parents, so that they survive a crash."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    private.make_folder(folder)
    for each in missing:
        _sync(each.parent)


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
