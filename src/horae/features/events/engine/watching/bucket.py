"""Watched buckets: the objects under a prefix are listed page by page, and errors of object stores are made readable.

The answers of the stores are XML or JSON, to which the client library adds its own report.
"""

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

from horae.engine.storage.buckets import Open, open_bucket
from horae.errors import BadInput
from horae.features.events.engine.watching.object_versions import ObjectVersion
from horae.model.triggers.decisions.external import WatchTrigger

PAGE = 1000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOST_ANSWER = 300
_CODE = re.compile(r"<Code>([^<]{1,80})</Code>")
_MESSAGE = re.compile(r"<Message>([^<]{1,200})</Message>|\"message\":\s*\"([^\"]{1,200})\"")
_STATUS = re.compile(r"status code: (\d{3} [A-Za-z ]{1,40})")
_HOST = re.compile(r"performing [A-Z]+ (https?://[^/\s]{1,200})")
_KEYS = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or GOOGLE_APPLICATION_CREDENTIALS"
_METADATA = ("169.254.169.254", "metadata.google.internal")  # the sources of a cloud machine's credentials


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


def in_words(error: Exception, bucket: str) -> BadInput:
    """Return the reason why a bucket could not be listed, with a remedy, without the client library's report."""
    text = str(error).partition("\n\nDebug source:")[0]
    if any(place in text for place in _METADATA):
        return BadInput("This server has no credentials for object stores.", f"Set {_KEYS} in its environment.")
    said = _answer_of(text)
    if said.startswith(("NoSuchBucket", "404")):
        return BadInput(f'There is no bucket "{bucket}": {said}.', "Check its name, and AWS_ENDPOINT_URL.")
    if "AccessDenied" in said or said.startswith(("403", "401", "Invalid", "Signature")):
        remedy = f"Check {_KEYS} of this server, and that they may list the bucket."
        return BadInput(f'The bucket "{bucket}" may not be listed: {said}.', remedy)
    asked = _HOST.search(text)
    where = f" at {asked[1]}" if asked else ""
    return BadInput(f'The bucket "{bucket}" cannot be listed{where}: {said}.', "Check the endpoint and the network.")


def _answer_of(text: str) -> str:
    """Return the code and message of the store's answer.

    Without code and message, return the HTTP status; without a status, the error of the request.
    """
    code, message, status = _CODE.search(text), _MESSAGE.search(text), _STATUS.search(text)
    parts = [code and code[1], message and (message[1] or message[2])]
    answer = ": ".join(part for part in parts if part) or (status[1].strip() if status else text.rpartition(" - ")[2])
    return " ".join(answer.split())[:MOST_ANSWER].rstrip(".")
