"""A watched bucket: the objects under a prefix, some at a time."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

from horae.engine.storage.buckets import Open, open_bucket
from horae.features.events.engine.watching.listed import Listed
from horae.features.events.engine.watching.refusals import in_words
from horae.model.triggers.decisions.external import Watch

PAGE = 1000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
