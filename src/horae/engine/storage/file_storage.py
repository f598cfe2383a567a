"""Where contents lie: a folder of this machine, or a bucket of an object store."""

from collections.abc import AsyncIterable, AsyncIterator
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from horae.engine.storage.buckets import Bucket
from horae.engine.storage.folder import Folder
from horae.errors import BadInput

SCHEMES = ("s3", "gs", "az")


class FileStorage(Protocol):
    """Keeps contents under locations, which are paths of safe parts below it."""

    url: str  # for people: where it is

    async def write(self, location: str, pieces: AsyncIterable[bytes]) -> None:
        """Keep a content; it is safe on disk when this returns. What raises meanwhile leaves nothing that is read."""
        ...

    def read(self, location: str) -> AsyncIterator[bytes]:
        """A content piece by piece. Raises FileNotFoundError."""
        ...

    async def remove(self, location: str) -> None:
        """Forget a content, if it is there."""
        ...


def open_storage(url: str) -> FileStorage:
    """The place of a setting: a path, or s3://bucket/prefix and its like."""
    parts = urlsplit(url)
    if parts.scheme in SCHEMES and parts.netloc:
        return Bucket(url)
    if "://" in url:
        remedy = f"Give a folder, or a URL of one of {', '.join(f'{scheme}://' for scheme in SCHEMES)}."
        raise BadInput(f"Artifacts cannot be kept at {url!r}.", remedy, field="artifacts")
    return Folder(Path(url))
