"""Object stores: S3 and everything that speaks like it, and Google Cloud Storage, by the package obstore.

Credentials, region and endpoint come from the server's environment, as the stores' own tools read it.
"""

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from horae.errors import BadInput
from horae.features.events.engine.watching.listed import Listed
from horae.features.events.engine.watching.refusals import in_words
from horae.model.triggers.decisions.external import Watch

PAGE = 1000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Plain HTTP only where the endpoint says so, as on one's own machine.
_CLIENT: Any = {"timeout": "30s", "connect_timeout": "5s", "allow_http": True}
_RETRY: Any = {"max_retries": 3, "retry_timeout": timedelta(seconds=30)}

Open = Callable[[str], Any]


def open_bucket(url: str) -> Any:
    """A bucket's store. Raises BadInput without the package that knows how."""
    try:
        from obstore.store import from_url
    except ImportError:
        raise missing() from None
    return from_url(url, client_options=_CLIENT, retry_config=_RETRY)


def missing() -> BadInput:
    return BadInput("Object stores need a package that is not installed.", "pip install 'horae[s3]'")


async def pages(place: Watch, open: Open = open_bucket) -> AsyncIterator[list[Listed]]:
    """The objects under a prefix, as many at a time as the store tells. Raises BadInput with what it refused."""
    store = open(f"{place.url.partition('://')[0]}://{place.bucket}")
    import obstore
    from obstore.exceptions import BaseError

    try:
        async for page in obstore.list(store, prefix=place.prefix or None, chunk_size=PAGE):
            yield [_listed(meta, place.prefix) for meta in page]
    except BaseError as error:
        raise in_words(error, place.bucket) from error


def _listed(meta: Any, prefix: str) -> Listed:
    """A version's own id where the bucket keeps versions; else the etag, and when it was written."""
    modified = (meta["last_modified"] - _EPOCH) // timedelta(microseconds=1)
    etag = None if meta["e_tag"] is None else str(meta["e_tag"]).strip('"')
    return Listed(
        key=str(meta["path"]).removeprefix(prefix),
        version=meta["version"] or f"{etag or meta['size']}-{modified}",
        size=meta["size"],
        modified=modified,
        etag=etag,
    )
