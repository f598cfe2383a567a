"""The gate before the queue: which items their keys let in, and where the others wait.

Everything here is pure; the caller holds the keys' locks and says how each stands.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from msgspec import Struct, structs

from horae.env import Instant
from horae.model.admission.keys import EnvelopeKeys
from horae.model.admission.limits import is_sequence
from horae.model.executions.slice import Queued, Waiting, part

ItemRef = tuple[UUID, int]  # a parcel and one of its items


class GateEntry(Struct, frozen=True):
    """A slice that comes to the gate, and where it would stand in the queue."""

    slice: Waiting
    keys: EnvelopeKeys
    lane: int
    rank: int


class KeyState(Struct):
    """How a key stands, under its lock: its room, and of a sequence the item whose turn it is."""

    room: int = 0  # of a limit
    head: ItemRef | None = None  # of a sequence: the first that has not ended, None when nobody has a place
    woken: bool = False  # somebody who waited is on the way, and comes before those who are new
    waits: bool = False  # somebody waits at this key's gate


class GateResult(Struct):
    """What came through, what waits, and the parcels that hold keys now."""

    queued: list[Queued] = []
    waiting: list[Waiting] = []
    held: set[tuple[str, UUID]] = set()


def pass_gate(
    entries: Sequence[GateEntry], stands: Mapping[str, KeyState], now: Instant, *, fresh: bool = False
) -> GateResult:
    """Let entries in, in order, as far as all their keys have room; what has none waits at the key that lacks it.

    A slice that fits in part is cut. Those that are `fresh` do not go past somebody who was woken.
    """
    passed = GateResult()
    for entry in entries:
        slice = entry.slice
        blocked = _blocked(entry, stands, fresh)
        room = 0 if blocked is not None else _room(entry, stands)
        if room:
            passed.queued.append(queued_of(part(slice, slice.lo, slice.lo + room), entry, now))
            _take(entry, room, stands)
            passed.held |= {(key, slice.parcel) for key in entry.keys.limits}
        if slice.lo + room < slice.hi:
            key = blocked or _blocked(entry, stands, False, after=room) or entry.keys.guarded[0]
            passed.waiting.append(at_gate(part(slice, slice.lo + room, slice.hi), key, entry.rank))
    return passed


def _blocked(entry: GateEntry, stands: Mapping[str, KeyState], fresh: bool, *, after: int = 0) -> str | None:
    """The first key that lets nothing of an entry in, or nothing more after so many."""
    for key in entry.keys.guarded:
        stand = stands[key]
        if is_sequence(key):
            if after or (stand.head is not None and stand.head != (entry.slice.parcel, entry.slice.lo)):
                return key
        elif stand.room <= 0 or (fresh and stand.woken):
            return key
    return None


def _room(entry: GateEntry, stands: Mapping[str, KeyState]) -> int:
    rooms = [1 if is_sequence(key) else stands[key].room for key in entry.keys.guarded]
    return min(entry.slice.hi - entry.slice.lo, *rooms)


def _take(entry: GateEntry, count: int, stands: Mapping[str, KeyState]) -> None:
    for key in entry.keys.guarded:
        if is_sequence(key):
            stands[key].head = (entry.slice.parcel, entry.slice.lo)
        else:
            stands[key].room -= count


def at_gate(slice: Waiting, key: str, rank: int) -> Waiting:
    """A slice that waits until a key has room for it."""
    reason = "sequence" if is_sequence(key) else "limit"
    return structs.replace(slice, wake_at=None, reason=reason, gate=key, rank=rank)


def on_the_way(slice: Waiting, rank: int, now: Instant) -> Waiting:
    """A slice that nothing but its keys may keep from the queue: the promoter brings it to the gate."""
    return structs.replace(slice, wake_at=now, reason="limit", gate=None, rank=rank)


def queued_of(w: Waiting, entry: GateEntry, now: Instant) -> Queued:
    """What waited, as it stands in line."""
    return Queued(
        parcel=w.parcel, lo=w.lo, hi=w.hi, job=w.job, queue=w.queue, namespace=w.namespace, attempt=w.attempt,
        failures=w.failures, losses=w.losses, alone=w.alone, width=w.width, flags=w.flags, lane=entry.lane,
        rank=entry.rank, queued_at=now,
    )  # fmt: skip
