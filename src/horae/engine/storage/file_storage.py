"""The interface of file storage, and its choice by URL."""

from collections.abc import AsyncIterable, AsyncIterator
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from horae.engine.storage.buckets import Bucket
from horae.engine.storage.folder import Folder
from horae.errors import BadInput

SCHEMES = ("s3", "gs", "az")


class FileStorage(Protocol):
    """Stores files under locations: relative paths of safe parts."""

    url: str  # its address, shown to users

    async def write(self, location: str, pieces: AsyncIterable[bytes]) -> None:
        """Store a file; it is durable on return. After an exception no reader uses the partial file."""
        ...

    def read(self, location: str) -> AsyncIterator[bytes]:
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
