"""Object stores: S3 and compatible ones, Google Cloud Storage and Azure, by the package obstore.

Credentials, region and endpoint are read from the server's environment, in the variables of the stores' own tools.
"""

from collections.abc import AsyncGenerator, AsyncIterable, Callable
from datetime import timedelta
from typing import Any

from horae.errors import BadInput

# Plain HTTP is used only if the endpoint's URL says so, for example on localhost.
_CLIENT: Any = {"timeout": "30s", "connect_timeout": "5s", "allow_http": True}
_RETRY: Any = {"max_retries": 3, "retry_timeout": timedelta(seconds=30)}

Open = Callable[[str], Any]


class Bucket:
    """A bucket of an object store, opened on first use. Files are objects under the prefix of its URL."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._opened: Any = None

    async def write(self, location: str, pieces: AsyncIterable[bytes]) -> None:
        store = self._store()
        import obstore

        await obstore.put_async(store, location, pieces)

    async def read(self, location: str) -> AsyncGenerator[bytes]:
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


def open_bucket(url: str) -> Any:
    """Return obstore's object for a bucket. Raises BadInput when the package is not installed."""
    try:
        from obstore.store import from_url
    except ImportError:
        raise BadInput("Object stores need a package that is not installed.", "pip install 'horae[s3]'") from None
    return from_url(url, client_options=_CLIENT, retry_config=_RETRY)
