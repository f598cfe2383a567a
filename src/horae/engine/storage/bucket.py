"""An object store as the place of artifacts: S3 and what speaks like it, Google's, Azure's."""

from collections.abc import AsyncIterable, AsyncIterator
from typing import Any

from horae.engine.storage.buckets import open_bucket


class Bucket:
    """Each content is an object under the prefix of the URL. The store is opened when it is first needed."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._opened: Any = None

    async def write(self, location: str, pieces: AsyncIterable[bytes]) -> None:
        store = self._store()
        import obstore

        await obstore.put_async(store, location, pieces)

    async def read(self, location: str) -> AsyncIterator[bytes]:
        store = self._store()
        import obstore

        found = await obstore.get_async(store, location)
        async for piece in found.stream():
            yield bytes(piece)

    async def remove(self, location: str) -> None:
        store = self._store()
        import obstore

        try:
            await obstore.delete_async(store, location)
        except FileNotFoundError:
            return

    def _store(self) -> Any:
        if self._opened is None:
            self._opened = open_bucket(self.url)
        return self._opened
