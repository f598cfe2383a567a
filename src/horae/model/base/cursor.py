"""Cursors: positions in a list, encoded as opaque text."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TypeVar

import msgspec

from horae.errors import BadInput

T = TypeVar("T")


def make_cursor(place: object) -> str:
    """Encode a position in a list as text that `read_cursor` decodes."""
    return urlsafe_b64encode(msgspec.json.encode(place)).decode().rstrip("=")


def read_cursor(cursor: str, kind: type[T]) -> T:
    """Decode a cursor to a position of the type `kind`. Raises BadInput for any other text."""
    try:
        place = msgspec.json.decode(urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4)), type=kind)
        if not _can_be_stored(place):
            raise ValueError
        return place
    except (ValueError, msgspec.MsgspecError):
        remedy = "Use the nextCursor of the previous page, with the same filters; or remove the cursor to start over."
        raise BadInput("This is not a cursor of this list.", remedy, field="cursor") from None


def _can_be_stored(place: object) -> bool:
    """Return whether a database could hold a position, because it is compared with positions there."""
    if isinstance(place, tuple | list):
        return all(map(_can_be_stored, place))
    if isinstance(place, int):
        return abs(place) < 1 << 63
    return not isinstance(place, str) or "\0" not in place


def check_limit(limit: int, most: int = 1000) -> int:
    """Return `limit`, the number of items of a page. Raises BadInput if it is not from 1 to `most`."""
    if not 1 <= limit <= most:
        raise BadInput(f"limit cannot be {limit}.", f"Use a value from 1 to {most}.", field="limit")
    return limit
