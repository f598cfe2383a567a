"""Params, results and errors of listed items: they are measured before they are read, so that a page stays small."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from msgspec import Struct

from horae.model.base.packing import span_of
from horae.store.base.shelves import SPAN, Columns
from horae.store.script import ForEach, Script, Statement

MOST_BYTES = 4 * 1024 * 1024  # the most bytes of a page, unless its first item alone has more

ITEM_SIZES = Statement(
    "item_sizes", "SELECT p.id, p.ends, length(p.items) FROM given JOIN parcels p ON p.id = given.id"
)  # fmt: skip
RESULT_SIZES = Statement(
    "result_sizes",
    "SELECT h.parcel, h.lo, h.ends, length(h.results), h.timings, length(h.error) FROM given"
    " JOIN history h ON h.parcel = given.parcel AND h.lo = given.lo",
)
ITEMS = Statement(
    "items_of",
    "SELECT p.id, given.at, substr(p.items, given.at + 1, given.size) FROM given JOIN parcels p ON p.id = given.id",
)
RESULTS = Statement(
    "results_of",
    "SELECT h.parcel, h.lo, given.at, substr(h.results, given.at + 1, given.size) FROM given"
    " JOIN history h ON h.parcel = given.parcel AND h.lo = given.lo",
)
ERRORS = Statement(
    "errors_of",
    "SELECT h.parcel, h.lo, h.error FROM given JOIN history h ON h.parcel = given.parcel AND h.lo = given.lo",
)
_RANGE: Columns = (("at", "int"), ("size", "int"))
SliceKey = tuple[UUID, int]  # a parcel, and the first item of a slice of it
Span = tuple[int, int]  # offset and length in bytes
Key = TypeVar("Key", UUID, SliceKey)


class Item(NamedTuple):
    """An item of a parcel, with the first item of its slice."""

    parcel: UUID
    lo: int
    item: int
    has_ended: bool


class SliceSizes(Struct, frozen=True):
    """Columns of a slice in history, with the lengths of its results and error instead of their contents."""

    ends: bytes | None
    results: int | None  # bytes
    timings: Any
    error: int  # characters


class Sizes(Struct, frozen=True):
    """Where the params and results of items are stored, and their lengths. Those longer than `most` are not read."""

    items: dict[UUID, tuple[bytes, int]]  # parcel -> the ends of its items, and the length of all params
    ended: dict[SliceKey, SliceSizes]
    most: int | None  # bytes; None: everything is read

    def params(self, item: Item) -> Span | None:
        """Return the span of an item's params; None when they are too long to be read, or were deleted."""
        found = self.items.get(item.parcel)
        return None if found is None else self._wanted(span_of(*found, item.item))

    def result(self, item: Item) -> Span | None:
        """Return the span of an item's result; None when there is none, or it is too long to be read."""
        found = self.ended.get((item.parcel, item.lo))
        if found is None or found.ends is None or found.results is None:
            return None
        return self._wanted(span_of(found.ends, found.results, item.item - item.lo))

    def has_result(self, item: Item) -> bool:
        found = self.ended.get((item.parcel, item.lo))
        return found is not None and found.ends is not None and found.results is not None

    def bytes_to_read(self, item: Item) -> int:
        """Return the number of bytes to read for an item."""
        found = self.ended.get((item.parcel, item.lo))
        spans = (self.params(item), self.result(item))
        return sum(span[1] for span in spans if span) + (found.error if found else 0)

    def _wanted(self, span: Span) -> Span | None:
        return span if self.most is None or span[1] <= self.most else None


class Parts(Struct, frozen=True):
    """The params, results and errors of items; params and results that were too long to be read are empty."""

    params: dict[Item, bytes]
    results: dict[Item, bytes | None]
    errors: dict[SliceKey, str | None]


def measure(items: Sequence[Item], most: int | None) -> Script[Sizes]:
    """Return the sizes of params, results and errors, without reading them."""
    rows = yield ForEach(
        ITEM_SIZES, (("id", "uuid"),), [(parcel_id,) for parcel_id in dict.fromkeys(one.parcel for one in items)]
    )
    ended = dict.fromkeys((one.parcel, one.lo) for one in items if one.has_ended)
    known = yield ForEach(RESULT_SIZES, SPAN, list(ended))
    return Sizes(
        {parcel_id: (ends, size) for parcel_id, ends, size in rows},
        {(parcel, lo): SliceSizes(ends, size, timings, error or 0) for parcel, lo, ends, size, timings, error in known},
        most,
    )


def count_that_fits(items: Sequence[Item], sizes: Sizes) -> int:
    """Return how many items fit into one page, counted from the first. The first always fits."""
    total = 0
    for count, item in enumerate(items):
        total += sizes.bytes_to_read(item)
        if count and total > MOST_BYTES:
            return count
    return len(items)


def read(items: Sequence[Item], sizes: Sizes) -> Script[Parts]:
    """Read the params, results and errors of items, except those that are too long."""
    params = {item: span for item in items if (span := sizes.params(item))}
    results = {item: span for item in items if (span := sizes.result(item))}
    runs = _runs([(item.parcel, *span) for item, span in params.items()])
    rows = yield ForEach(ITEMS, (("id", "uuid"), *_RANGE), runs)
    blobs = _pieces((parcel_id, at, piece) for parcel_id, at, piece in rows)
    result_runs = _runs([((item.parcel, item.lo), *span) for item, span in results.items()])
    rows = yield ForEach(RESULTS, (*SPAN, *_RANGE), [(*key, at, size) for key, at, size in result_runs])
    ended = _pieces(((parcel, lo), at, piece) for parcel, lo, at, piece in rows)
    failed = {(one.parcel, one.lo) for one in items if (e := sizes.ended.get((one.parcel, one.lo))) and e.error}
    rows = yield ForEach(ERRORS, SPAN, sorted(failed))
    return Parts(
        {item: _cut(blobs, item.parcel, params.get(item)) for item in items},
        {
            item: _cut(ended, (item.parcel, item.lo), results.get(item)) if sizes.has_result(item) else None
            for item in items
        },
        {(parcel, lo): error for parcel, lo, error in rows},
    )


def _runs(spans: Iterable[tuple[Key, int, int]]) -> list[tuple[Key, int, int]]:
    """Merge adjacent spans, so that each parcel is opened as few times as possible."""
    runs: list[tuple[Key, int, int]] = []
    for key, start, size in sorted({span for span in spans if span[2]}):
        if runs and runs[-1][0] == key and runs[-1][1] + runs[-1][2] == start:
            runs[-1] = (key, runs[-1][1], runs[-1][2] + size)
        else:
            runs.append((key, start, size))
    return runs


def _pieces(rows: Iterable[tuple[Key, int, bytes]]) -> dict[Key, list[tuple[int, bytes]]]:
    pieces: dict[Key, list[tuple[int, bytes]]] = {}
    for key, at, piece in rows:
        pieces.setdefault(key, []).append((at, piece))
    return pieces


def _cut(pieces: dict[Key, list[tuple[int, bytes]]], key: Key, span: Span | None) -> bytes:
    """Return the bytes of a span from the pieces that were read; empty if the span is None or was not read."""
    if span is None:
        return b""
    start, size = span
    for at, piece in pieces.get(key, ()):
        if at <= start and start + size <= at + len(piece):
            return piece[start - at : start - at + size]
    return b""
