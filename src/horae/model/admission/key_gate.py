"""The gate before the queue: an execution is queued when all its keys have room.

An execution can be subject to limits and to a sequence; each has a key. An execution waits at the first of its keys
that has no room.

All functions are pure. The caller holds the locks of the keys and passes their states.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from msgspec import Struct, structs

from horae.env import Instant
from horae.model.admission.keys import EnvelopeKeys
from horae.model.admission.limits import is_sequence
from horae.model.executions.slice import QueuedSlice, WaitingSlice, part

ItemRef = tuple[UUID, int]  # a parcel and one of its items


class GateEntry(Struct, frozen=True):
    """A slice that arrives at the gate, its keys, and the lane and rank that it gets once it is admitted."""

    slice: WaitingSlice
    keys: EnvelopeKeys
    lane: int
    rank: int


class KeyState(Struct):
    """The state of a key, read while the key is locked: the room of a limit, or the current item of a sequence."""

    room: int = 0  # the room of a limit
    head: ItemRef | None = None  # the first item of a sequence that has not ended; None when the sequence is empty
    has_woken: bool = False  # the promoter will soon bring a woken slice, which new slices must not overtake
    has_waiters: bool = False  # a slice waits at this key's gate


class GateResult(Struct):
    """The slices that were admitted, and the slices that wait.

    `occupied` has a pair (key of a limit, parcel) for each limit in which admitted items of the parcel now take room.
    """

    queued: list[QueuedSlice] = []
    waiting: list[WaitingSlice] = []
    occupied: set[tuple[str, UUID]] = set()


def pass_gate(
    entries: Sequence[GateEntry], states: Mapping[str, KeyState], now: Instant, *, fresh: bool = False
) -> GateResult:
    """Admit each entry, in order, if all its keys have room; otherwise the entry waits at the first key without room.

    If only some items of a slice have room, the slice is divided. With `fresh`, the entries are new and must not
    overtake a woken slice.
    """
    passed = GateResult()
    for entry in entries:
        arriving = entry.slice
        blocked = _blocked(entry, states, fresh)
        room = 0 if blocked is not None else _room(entry, states)
        if room:
            passed.queued.append(queued_of(part(arriving, arriving.lo, arriving.lo + room), entry, now))
            _take(entry, room, states)
            passed.occupied |= {(key, arriving.parcel) for key in entry.keys.limits}
        if arriving.lo + room < arriving.hi:
            key = blocked or _blocked(entry, states, False, after=room) or entry.keys.guarded[0]
            passed.waiting.append(blocked_slice(part(arriving, arriving.lo + room, arriving.hi), key, entry.rank))
    return passed


def _blocked(entry: GateEntry, states: Mapping[str, KeyState], fresh: bool, *, after: int = 0) -> str | None:
    """Return the first key that blocks an entry of which `after` items have been admitted; None if no key does."""
    for key in entry.keys.guarded:
        state = states[key]
        if is_sequence(key):
            if after or (state.head is not None and state.head != (entry.slice.parcel, entry.slice.lo)):
                return key
        elif state.room <= 0 or (fresh and state.has_woken):
            return key
    return None


def _room(entry: GateEntry, states: Mapping[str, KeyState]) -> int:
    rooms = [1 if is_sequence(key) else states[key].room for key in entry.keys.guarded]
    return min(entry.slice.hi - entry.slice.lo, *rooms)


def _take(entry: GateEntry, count: int, states: Mapping[str, KeyState]) -> None:
    for key in entry.keys.guarded:
        if is_sequence(key):
            states[key].head = (entry.slice.parcel, entry.slice.lo)
        else:
            states[key].room -= count


def blocked_slice(waiting: WaitingSlice, key: str, rank: int) -> WaitingSlice:
    """Return a slice that waits until a key has room for it."""
    reason = "sequence" if is_sequence(key) else "limit"
    return structs.replace(waiting, wake_at=None, reason=reason, gate=key, rank=rank)


def woken_slice(waiting: WaitingSlice, rank: int, now: Instant) -> WaitingSlice:
    """Return a slice that is due now, so that the promoter brings it to the gate, where it waits only for its keys."""
    return structs.replace(waiting, wake_at=now, reason="limit", gate=None, rank=rank)


def queued_of(w: WaitingSlice, entry: GateEntry, now: Instant) -> QueuedSlice:
    """Turn an admitted slice into a queued one."""
    return QueuedSlice(
        parcel=w.parcel, lo=w.lo, hi=w.hi, job=w.job, queue=w.queue, namespace=w.namespace, attempt=w.attempt,
        failures=w.failures, losses=w.losses, alone=w.alone, width=w.width, flags=w.flags, lane=entry.lane,
        rank=entry.rank, queued_at=now,
    )  # fmt: skip
