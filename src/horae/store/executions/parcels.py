"""Parcels as rows. A parcel is written together with its slices.

It never changes after one of its executions may have been read by a worker; only an open window (see `windows`) changes
its parcel before that.
"""

from collections.abc import Collection, Iterable, Sequence
from uuid import UUID

from msgspec import structs

from horae.env import Instant
from horae.model.admission.key_gate import GateEntry, woken_slice
from horae.model.admission.keys import KEYED, flags_of, keys_of
from horae.model.admission.rank import rank_from_lead
from horae.model.base.packing import Packed
from horae.model.executions.parcel import Envelope, Parcel
from horae.model.executions.slice import QueuedSlice, WaitingSlice
from horae.store.admission.holders import Admission, enter
from horae.store.base import shelves
from horae.store.base.shelves import Columns
from horae.store.script import ForEach, Insert, Script, Statement, Together

BOUNDS: Columns = (
    ("parcel", "uuid"), ("at", "bigint"), ("due_at", "bigint"), ("queue_for", "bigint"), ("total_for", "bigint"),
)  # fmt: skip

PARCELS: shelves.Columns = (
    ("id", "uuid"), ("namespace", "int"), ("job", "uuid"), ("version", "int"), ("queue", "int"), ("lane", "int"),
    ("priority", "smallint"), ("deadline", "bigint"), ("due_at", "bigint"), ("keys", "text"), ("parent", "uuid"),
    ("delivery", "smallint"), ("n", "int"), ("ends", "bytea"), ("items", "bytea"), ("extras", "bytea"),
    ("submitted_at", "bigint"),
)  # fmt: skip
READ_PARCELS = Statement(
    "parcels",
    f"SELECT {shelves.names(PARCELS, 'p.')} FROM given JOIN parcels p ON p.id = given.id",
    at_once=True,
)


def put_parcels(
    parcels: Sequence[tuple[Parcel, int]],
    now: Instant,
    also: Sequence[ForEach | Insert] = (),
    held: Collection[UUID] = (),
    admitted: Admission | None = None,
) -> Script[tuple[dict[int, int], Instant | None]]:
    """Write parcels, each given with the lead of its rank, and their slices, together with the changes `also`.

    `held` are the parcels that wait for the dependencies of their jobs. `admitted` has the slices of parcels with keys:
    the gates of the keys have decided whether they are queued or wait. Return the least new rank of each lane, and the
    earliest instant at which a waiting slice is due.
    """
    if admitted is None:
        ready, later = assign_shelves(parcels, now, held)
        shelf = [shelves.put_queued(ready), shelves.put_waiting(later)]
        yield Together([insert_parcels(parcels), *shelf, *insert_timeouts(parcels), *also])
        return least_ranks(ready), first_wake(later)
    passed = admitted.passed
    gone = {s.parcel for s in (*passed.queued, *passed.waiting)}
    ready, later = assign_shelves([one for one in parcels if one[0].id not in gone], now, held)
    ready, later = [*ready, *passed.queued], [*later, *passed.waiting]
    shelf = [shelves.put_queued(ready), shelves.put_waiting(later)]
    yield Together([insert_parcels(parcels), *shelf, *insert_timeouts(parcels), *admitted.changes, *also])
    return least_ranks([*ready, *admitted.also_admitted.queued]), earliest(
        first_wake(later), admitted.also_admitted.wake_at
    )


def enter_parcels(parcels: Sequence[tuple[Parcel, int]], held: Collection[UUID], now: Instant) -> Script[Admission]:
    """Decide which executions of new parcels with keys may be queued now.

    All these parcels take their places in sequences, also those that are held or not due yet.
    """
    places = {p.id: keys_of(p.envelope.keys) for p, _ in parcels}
    ready = [(p, lead) for p, lead in parcels if p.id not in held and p.envelope.due_at <= now]
    entries = [GateEntry(_waiting(p), places[p.id], p.envelope.lane, _rank(p, lead)) for p, lead in ready]
    return (yield from enter(entries, now, fresh=True, all_keys=places))


def insert_parcels(parcels: Sequence[tuple[Parcel, int]]) -> Insert:
    """Return the Insert of these parcels."""
    return Insert("parcels", PARCELS, [_parcel_row(p) for p, _ in parcels])


def assign_shelves(
    parcels: Sequence[tuple[Parcel, int]], now: Instant, held: Collection[UUID] = ()
) -> tuple[list[QueuedSlice], list[WaitingSlice]]:
    """Return the slices to queue at once, and the slices that wait.

    A slice waits for its due time, for the dependencies of its job, or, if it is due and has keys, for the promoter.
    """
    ready: list[QueuedSlice] = []
    later: list[WaitingSlice] = []
    for p, lead in parcels:
        if held and p.id in held:
            later.append(_held(p))
        elif p.envelope.due_at > now:
            later.append(_waiting(p))
        elif is_keyed(p):
            later.append(woken_slice(_waiting(p), _rank(p, lead), now))
        else:
            ready.append(_queued(p, lead, now))
    return ready, later


def is_keyed(p: Parcel, due: Instant | None = None) -> bool:
    """Tell whether a parcel has keys of limits or sequences and, if `due` is given, is due by that instant."""
    if p.envelope.keys is None or (due is not None and p.envelope.due_at > due):
        return False
    return bool(flags_of(p.envelope.keys) & KEYED)


def _rank(p: Parcel, lead: int) -> int:
    return rank_from_lead(p.envelope.due_at, lead, p.envelope.deadline)


def earliest(*instants: Instant | None) -> Instant | None:
    """Return the earliest of the instants that are not None; None if there is none."""
    return min((at for at in instants if at is not None), default=None)


def least_ranks(ready: Iterable[QueuedSlice]) -> dict[int, int]:
    """Return the least rank of these slices in each lane."""
    lanes: dict[int, int] = {}
    for queued in ready:
        lanes[queued.lane] = min(queued.rank, lanes.get(queued.lane, queued.rank))
    return lanes


def first_wake(later: Iterable[WaitingSlice]) -> Instant | None:
    """Return the earliest instant at which one of these waiting slices is due; None if none has a time."""
    return min((s.wake_at for s in later if s.wake_at is not None), default=None)


def put_ended(parcels: Sequence[Parcel]) -> Script[None]:
    """Write parcels whose executions end without a start; the caller writes their items to history."""
    yield Insert("parcels", PARCELS, [_parcel_row(p) for p in parcels])


def _parcel_row(p: Parcel) -> tuple[object, ...]:
    e = p.envelope
    return (
        p.id, e.namespace, e.job, e.version, e.queue, e.lane, e.priority, e.deadline, e.due_at, e.keys, e.parent,
        e.delivery, len(p), p.items.ends, p.items.blob, p.extras, p.submitted_at,
    )  # fmt: skip


def _queued(p: Parcel, lead: int, now: Instant) -> QueuedSlice:
    e = p.envelope
    return QueuedSlice(
        parcel=p.id, lo=0, hi=len(p), job=e.job, queue=e.queue, namespace=e.namespace, lane=e.lane,
        rank=_rank(p, lead), queued_at=now, width=p.width, flags=flags_of(e.keys),
    )  # fmt: skip


def _waiting(p: Parcel) -> WaitingSlice:
    e = p.envelope
    return WaitingSlice(
        parcel=p.id, lo=0, hi=len(p), job=e.job, queue=e.queue, namespace=e.namespace, width=p.width,
        flags=flags_of(e.keys), wake_at=e.due_at, reason="delay",
    )  # fmt: skip


def _held(p: Parcel) -> WaitingSlice:
    gate = f"dependencies:{p.envelope.job}"
    return structs.replace(_waiting(p), wake_at=None, reason="dependency", gate=gate)


def read_parcels(ids: Sequence[UUID]) -> Script[list[Parcel]]:
    """Return parcels by id. They may be cached once their executions have been granted: then they never change."""
    rows = yield ForEach(READ_PARCELS, (("id", "uuid"),), [(parcel_id,) for parcel_id in ids])
    return [
        Parcel(
            id=r[0],
            envelope=Envelope(
                namespace=r[1], job=r[2], version=r[3], queue=r[4], lane=r[5], priority=r[6], deadline=r[7],
                due_at=r[8], keys=r[9], parent=r[10], delivery=r[11],
            ),
            items=Packed(r[13], r[14]),
            extras=r[15],
            submitted_at=r[16],
        )
        for r in rows
    ]  # fmt: skip


def insert_timeouts(parcels: Sequence[tuple[Parcel, int]]) -> list[Insert]:
    """Return the Insert of the timeouts of new parcels; an empty list if no job has a queue or total timeout."""
    limited = [
        (p.id, structs.replace(p.envelope.bounds, due_at=p.envelope.due_at)) for p, _ in parcels if p.envelope.bounds
    ]
    rows = [(parcel_id, one.first_check, one.due_at, one.queue, one.total) for parcel_id, one in limited]
    return [Insert("timeouts", BOUNDS, rows)] if rows else []
