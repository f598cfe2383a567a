"""Dealing queued slices out to the sessions that want work."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from msgspec import Struct

from horae.model.slice import Queued


class Want(Struct, frozen=True, kw_only=True):
    """What one waiting exchange can take: idle slots, and for jobs known to be short some more."""

    session: UUID
    channel: int
    n: int
    free: int
    prefetch: Mapping[UUID, int] = {}
    load: float = 0.0  # share of its slots in use; the least loaded is served first
    solo: bool = False  # its session got a solo item in this claim already


class Dealt(Struct, frozen=True):
    """Items lo..hi-1 of a queued slice go to the want with this index."""

    want: int
    slice: Queued
    lo: int
    hi: int


class Deal(Struct, frozen=True):
    """Who gets what, which slices were touched, and where the rest of a cut slice now begins."""

    dealt: list[Dealt]
    whole: list[Queued]
    cut: list[tuple[Queued, int]]


class _Room:
    """How much a want can still take; `alone` holds the sessions that got a solo item."""

    def __init__(self, want: Want, alone: set[UUID]) -> None:
        self.session = want.session
        self.free = want.free
        self.prefetch = dict(want.prefetch)
        self.alone = alone

    def for_(self, slice: Queued) -> int:
        if slice.solo:
            return 0 if self.session in self.alone else min(1, self.free)
        return self.free + self.prefetch.get(slice.job, 0)

    def take(self, slice: Queued, k: int) -> None:
        if slice.solo:
            self.alone.add(self.session)
        from_free = min(k, self.free)
        self.free -= from_free
        if k > from_free:
            self.prefetch[slice.job] -= k - from_free


def capacity(wants: Sequence[Want]) -> int:
    """The most items these wants could take together."""
    return sum(want.free + sum(want.prefetch.values()) for want in wants)


def deal(slices: Sequence[Queued], wants: Sequence[Want]) -> Deal:
    """Deal slices in order, least loaded want first, in even shares; no item goes to two wants.

    A slice is taken from its front, so what is left of it is one slice that begins later. Of solo slices a session gets
    one item at most.
    """
    alone = {want.session for want in wants if want.solo}
    rooms = [_Room(want, alone) for want in wants]
    order = sorted(range(len(wants)), key=lambda i: (wants[i].load, -wants[i].free))
    fair = max(1, -(-sum(s.hi - s.lo for s in slices) // max(1, len(wants))))
    dealt: list[Dealt] = []
    whole: list[Queued] = []
    cut: list[tuple[Queued, int]] = []
    shares = [fair] * len(wants)
    for slice in slices:
        lo = _deal_one(slice, order, rooms, shares, dealt)
        if lo == slice.hi:
            whole.append(slice)
        elif lo > slice.lo:
            cut.append((slice, lo))
    return Deal(dealt, whole, cut)


def _deal_one(
    slice: Queued, order: Sequence[int], rooms: Sequence[_Room], shares: list[int], dealt: list[Dealt]
) -> int:
    """Deal one slice; a first round keeps to even shares, a second fills up. Returns where the rest begins."""
    lo = slice.lo
    for even in (True, False):
        for i in order:
            if lo == slice.hi:
                return lo
            room = rooms[i].for_(slice)
            k = min(slice.hi - lo, min(room, shares[i]) if even else room)
            if k > 0:
                rooms[i].take(slice, k)
                shares[i] -= k
                dealt.append(Dealt(i, slice, lo, lo + k))
                lo += k
    return lo
