"""Slices: ranges of a parcel's items with the same state and attempt, and functions that split and merge them.

All functions are pure. The store moves items as these functions decide, so that no item is lost, duplicated or moved
twice, whichever items are reported in whichever order.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import TypeVar
from uuid import UUID

from msgspec import Struct, structs

from horae.env import Instant
from horae.model.executions.execution import WaitReason


class Slice(Struct, frozen=True, kw_only=True, gc=False):
    """Items lo..hi-1 of a parcel on one shelf."""

    parcel: UUID
    lo: int
    hi: int
    job: UUID
    queue: int
    namespace: int
    attempt: int = 0  # the fencing token: grows with every claim and never repeats
    failures: int = 0  # failures of the job itself, which count against its retries
    losses: int = 0  # how often its worker was lost; from 2 on, the items are suspects, see model/fleet/suspects.py
    alone: int = 0  # how many of the lost workers held nothing else
    width: int = 0  # the largest size in bytes of one item with its `Extra`, in the answer to a worker's exchange
    flags: int = 0  # bits, mostly for bookkeeping when the slice leaves a shelf, see model/admission/keys.py


class WaitingSlice(Slice, frozen=True, kw_only=True, gc=False):
    """A slice that waits for a time, or for a gate to open."""

    wake_at: Instant | None = None
    reason: WaitReason
    gate: str | None = None
    rank: int = 0  # the order at its gate


class QueuedSlice(Slice, frozen=True, kw_only=True, gc=False):
    """A slice that any fitting worker may take, lowest rank first within its lane."""

    lane: int
    rank: int
    queued_at: Instant
    expires_at: Instant | None = None


class RunningSlice(Slice, frozen=True, kw_only=True, gc=False):
    """A slice that one session holds. The exchange with number `n` on the session's `channel` granted it."""

    session: UUID
    channel: int
    n: int
    lane: int
    rank: int
    queued_at: Instant
    granted_at: Instant
    started_at: Instant | None = None


class ItemRange(Struct, frozen=True, gc=False):
    """Items lo..hi-1 of a parcel at an attempt, as a report names them."""

    parcel: UUID
    lo: int
    hi: int
    attempt: int


S = TypeVar("S", bound=Slice)


def part(source: S, lo: int, hi: int) -> S:
    """Return the slice cut down to lo..hi-1."""
    return source if lo == source.lo and hi == source.hi else structs.replace(source, lo=lo, hi=hi)


class RangeMatch(Struct, frozen=True):
    """The result of matching reported ranges with the slices that a session holds.

    A hit is (slice, index of the range, lo, hi). `touched` are the slices with at least one hit. `remaining` are the
    parts of touched slices that no range hit. `missed` are the parts of ranges that hit no slice.
    """

    hits: list[tuple[RunningSlice, int, int, int]]
    touched: list[RunningSlice]
    remaining: list[RunningSlice]
    missed: list[ItemRange]


def match_ranges(held: Sequence[RunningSlice], ranges: Sequence[ItemRange]) -> RangeMatch:
    """Match each range with the held slices of the same attempt that overlap it.

    Each item is hit at most once, by the first range that names it. The held slices do not overlap each other.
    """
    free: dict[tuple[UUID, int], list[tuple[int, int, RunningSlice]]] = {}
    for running in sorted(held, key=lambda s: s.lo):
        key = running.parcel, running.attempt  # guard: held-by-attempt
        free.setdefault(key, []).append((running.lo, running.hi, running))
    hits: list[tuple[RunningSlice, int, int, int]] = []
    missed: list[ItemRange] = []
    for index, reported in enumerate(ranges):
        pieces = free.get((reported.parcel, reported.attempt))  # guard: reported-attempt
        if pieces is None:
            missed.append(reported)
        else:
            _hit(pieces, index, reported, hits, missed)
    touched = {(running.parcel, running.lo): running for running, _, _, _ in hits}
    remaining = [
        part(running, lo, hi)
        for pieces in free.values()
        for lo, hi, running in pieces
        if (running.parcel, running.lo) in touched
    ]
    return RangeMatch(hits, list(touched.values()), remaining, missed)


def _hit(
    pieces: list[tuple[int, int, RunningSlice]],
    index: int,
    reported: ItemRange,
    hits: list[tuple[RunningSlice, int, int, int]],
    missed: list[ItemRange],
) -> None:
    """Take one range out of the free pieces, in place.

    The pieces are in order, so a binary search finds the pieces that overlap the range. The search must be fast: a
    report may name thousands of items one by one, and the server does nothing else meanwhile.
    """
    first = bisect_right(pieces, reported.lo, key=lambda piece: piece[1])
    last = bisect_left(pieces, reported.hi, lo=first, key=lambda piece: piece[0])
    kept: list[tuple[int, int, RunningSlice]] = []
    taken: list[tuple[int, int]] = []
    for lo, hi, running in pieces[first:last]:
        a, b = max(lo, reported.lo), min(hi, reported.hi)
        if a >= b:  # the range is empty
            kept.append((lo, hi, running))
            continue
        hits.append((running, index, a, b))
        taken.append((a, b))
        if lo < a:
            kept.append((lo, a, running))
        if b < hi:
            kept.append((b, hi, running))
    pieces[first:last] = kept
    missed += [ItemRange(reported.parcel, lo, hi, reported.attempt) for lo, hi in gaps(reported.lo, reported.hi, taken)]


def gaps(lo: int, hi: int, taken: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the parts of the range `lo` to `hi - 1` that no taken range covers."""
    holes = []
    for a, b in sorted(taken):
        if lo < a:
            holes.append((lo, a))
        lo = max(lo, b)
    if lo < hi:
        holes.append((lo, hi))
    return holes


def merge(slices: Sequence[S]) -> list[S]:
    """Join adjacent slices that are otherwise equal, so that a parcel does not stay divided into fragments."""
    merged: list[S] = []
    for current in sorted(slices, key=lambda s: (s.parcel, s.lo)):
        last = merged[-1] if merged else None
        if (
            last is not None
            and last.hi == current.lo
            and structs.replace(last, lo=current.lo, hi=current.hi) == current
        ):
            merged[-1] = structs.replace(last, hi=current.hi)
        else:
            merged.append(current)
    return merged
