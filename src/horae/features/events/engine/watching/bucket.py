"""Watched buckets: the objects under a prefix are listed page by page."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

from horae.engine.storage.buckets import Open, open_bucket
from horae.features.events.engine.watching.object_versions import ObjectVersion
from horae.features.events.engine.watching.refusals import in_words
from horae.model.triggers.decisions.external import WatchTrigger

PAGE = 1000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


async def pages(place: WatchTrigger, open_store: Open = open_bucket) -> AsyncIterator[list[ObjectVersion]]:
    """Yield the objects under a prefix, in the pages of the object store. Raises BadInput if the store refuses."""
    store = open_store(f"{place.url.partition('://')[0]}://{place.bucket}")
    import obstore
    from obstore.exceptions import BaseError

    try:
        async for page in obstore.list(store, prefix=place.prefix or None, chunk_size=PAGE):
            yield [_listed(meta, place.prefix) for meta in page]
    except BaseError as error:
        raise in_words(error, place.bucket) from error


def _listed(meta: Any, prefix: str) -> ObjectVersion:
    """Read an entry of a listing.

    The version is the object's version id; in a bucket without versions, the etag with the time of the last write.
    """
    modified = (meta["last_modified"] - _EPOCH) // timedelta(microseconds=1)
    etag = None if meta["e_tag"] is None else str(meta["e_tag"]).strip('"')
    return ObjectVersion(
        key=str(meta["path"]).removeprefix(prefix),
        version=meta["version"] or f"{etag or meta['size']}-{modified}",
        size=meta["size"],
        modified=modified,
        etag=etag,
    )
