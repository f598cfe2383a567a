"""A parcel: executions of one job that are stored together, written once and never changed."""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Struct, structs

from horae.env import Instant
from horae.errors import BadInput, TooLarge
from horae.model.admission.keys import encode_keys, keys_of
from horae.model.base.packing import Packed, pack
from horae.model.definitions.timeouts import ParcelTimeouts
from horae.model.executions.execution import Extra

MAX_ITEMS = 1024
MAX_BYTES = 256 * 1024  # bytes of items in one parcel; a larger item has its own parcel
# Bound on number of items x bytes of the largest item: a claim knows only the latter, and treats all items as so large.
MAX_SPREAD = 2 * MAX_BYTES
MAX_ITEM = 1024 * 1024  # bytes of one item
MAX_DEPTH = 64  # levels of nested objects and lists in an item

AT_LEAST_ONCE, AT_MOST_ONCE = 0, 1


class Envelope(Struct, frozen=True, kw_only=True, gc=False):
    """The properties that all items of a parcel share: only items with equal envelopes share a parcel."""

    namespace: int
    job: UUID
    version: int
    queue: int
    lane: int
    priority: int
    deadline: Instant | None = None
    due_at: Instant
    keys: str | None = None  # encoded by model/admission/keys.py: limits, sequence, a trigger's turn, ...
    parent: UUID | None = None
    delivery: int = AT_LEAST_ONCE
    bounds: ParcelTimeouts | None = None  # the job's queue timeout and its timeout of all attempts together, if any


class Parcel(Struct, frozen=True, kw_only=True, gc=False):
    """Items with one envelope; item i is the execution `id | i`."""

    id: UUID
    envelope: Envelope
    items: Packed
    extras: bytes | None = None  # JSON list, one Extra per item, or one for all
    submitted_at: Instant

    def __len__(self) -> int:
        return len(self.items)

    @property
    def width(self) -> int:
        """Return the most bytes that an item with its extra can take in the answer to a worker's exchange."""
        return self.items.widest + _widest(self.extras)


def check_item(item: bytes, field: str = "params") -> None:
    """Refuse an item that is too large, not UTF-8, not a JSON object, or nested too deeply."""
    if len(item) > MAX_ITEM:
        raise TooLarge(f"{field} has {len(item)} bytes.", f"Keep it under {MAX_ITEM} bytes; pass a reference instead.")
    try:
        text = item.decode()
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{field} is not valid UTF-8 (byte {error.start}).", "Send JSON in UTF-8.", field=field
        ) from None
    if item not in (b"{}", b"null"):
        _check_structure(item, text, field)


def decode_if_small(items: Sequence[bytes]) -> list[dict[str, Any]] | None:
    """Decode small items in one go.

    Return None if an item is too long for this quick check, or is not a JSON object: then each must pass `check_item`.
    """
    if not all(len(item) <= _SHALLOW for item in items):
        return None
    try:
        values = [_decode(item) for item in items]
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return values if all(type(value) is dict for value in values) else None


_SHALLOW = 2 * MAX_DEPTH  # bytes; each level takes two brackets, so shorter JSON cannot be nested too deeply
_decode = msgspec.json.Decoder().decode


def _check_structure(item: bytes, text: str, field: str) -> None:
    try:
        value = msgspec.json.decode(item)
    except msgspec.DecodeError as error:
        raise BadInput(f"{field} is not valid JSON: {error}.", "Send a JSON object.", field=field) from None
    except RecursionError:
        raise _too_deep(field) from None
    if text.count("{") + text.count("[") > MAX_DEPTH and is_deep(value):
        raise _too_deep(field)
    if not isinstance(value, dict):
        raise BadInput(f"{field} is not a JSON object.", 'Send an object such as {"day": "2026-11-15"}.', field=field)


def is_deep(value: Any) -> bool:
    """Return whether containers are nested too deeply. Levels are checked one by one, because recursion is limited."""
    level = [value]
    for _ in range(MAX_DEPTH):
        insides = (part.values() if type(part) is dict else part for part in level if type(part) in (dict, list))
        level = [part for inside in insides for part in inside if type(part) in (dict, list)]
    return bool(level)


def _too_deep(field: str) -> BadInput:
    return BadInput(f"{field} is nested deeper than {MAX_DEPTH}.", "Flatten it.", field=field)


def parcel_sizes(sizes: Iterable[int]) -> list[int]:
    """Divide consecutive items into parcels, and return the number of items of each.

    A parcel is bounded by its number of items, by its bytes, and by its number of items times its largest item. Without
    the last bound, one large item among a thousand small ones would let claims treat all of them as large.
    """
    sizes = list(sizes)
    if len(sizes) <= MAX_ITEMS and sum(sizes) <= MAX_BYTES and len(sizes) * max(sizes, default=0) <= MAX_SPREAD:
        return [len(sizes)] if sizes else []
    counts: list[int] = []
    count = total = widest = 0
    for size in sizes:
        if size > widest:
            widest = size
        if count and (count == MAX_ITEMS or total + size > MAX_BYTES or (count + 1) * widest > MAX_SPREAD):
            counts.append(count)
            count = total = 0
            widest = size
        count += 1
        total += size
    return [*counts, count] if count else counts


def make_parcel(
    parcel_id: UUID, envelope: Envelope, items: Sequence[bytes], extras: Sequence[Extra], submitted_at: Instant
) -> Parcel:
    """Put items in a parcel with an envelope."""
    return Parcel(
        id=parcel_id, envelope=envelope, items=pack(items), extras=encode_extras(extras), submitted_at=submitted_at
    )


_NO_EXTRA = Extra()


def encode_extras(extras: Sequence[Extra]) -> bytes | None:
    """Encode extras: None when all are empty, one object when all are equal, a list otherwise."""
    first = extras[0]
    if all(extra is first or extra == first for extra in extras):
        return None if first == _NO_EXTRA else msgspec.json.encode(first)
    return msgspec.json.encode(extras)


def _widest(encoded: bytes | None) -> int:
    """Return the length of the longest extra in bytes."""
    if encoded is None:
        return 0
    if encoded.startswith(b"{"):
        return len(encoded)
    return max(map(len, msgspec.json.decode(encoded, type=list[msgspec.Raw])))


class Extras:
    """The extras of a parcel's items; each is decoded when it is first used."""

    __slots__ = ("_all", "_each")

    def __init__(self, encoded: bytes | None) -> None:
        shared = encoded is None or encoded.startswith(b"{")
        self._all = _NO_EXTRA if encoded is None else _read_extra(encoded) if shared else None
        self._each = [] if shared or encoded is None else _read_raws(encoded)

    def __getitem__(self, item: int) -> Extra:
        return self._all if self._all is not None else _read_extra(self._each[item])


_read_extra = msgspec.json.Decoder(Extra).decode
_read_raws = msgspec.json.Decoder(list[msgspec.Raw]).decode
_read_extras = msgspec.json.Decoder(Extra | list[Extra]).decode


def extras_of(encoded: bytes | None, lo: int, hi: int) -> list[Extra]:
    """Decode the extras of the items `lo` to `hi - 1`."""
    if encoded is None:
        return [_NO_EXTRA] * (hi - lo)
    decoded = _read_extras(encoded)
    return decoded[lo:hi] if isinstance(decoded, list) else [decoded] * (hi - lo)


def extra_of(encoded: bytes | None, item: int) -> Extra:
    """Decode the extra of one item."""
    return extras_of(encoded, item, item + 1)[0]


def mark_rollout(envelope: Envelope, since: Instant) -> Envelope:
    """Mark an envelope of executions whose version a rollout chose, so that their attempts are counted.

    `since` identifies the rollout.
    """
    keys = structs.replace(keys_of(envelope.keys), rollout=since)
    return structs.replace(envelope, keys=encode_keys(keys))


def mark_replay(envelope: Envelope) -> Envelope:
    """Mark executions that replay dead letters, so that a letter is reopened if its replay is cancelled."""
    return structs.replace(envelope, keys=encode_keys(structs.replace(keys_of(envelope.keys), again=True)))
