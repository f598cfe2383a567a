"""Parcels of fires: executions with equal envelopes share a parcel, even if different triggers fired them.

Such executions are of one job and due at the same instant.
"""

from collections.abc import Callable, Iterator, Sequence
from uuid import UUID

import msgspec

from horae.env import Instant
from horae.model.base.ids import execution_id, parcel_ids
from horae.model.base.packing import Packed, pack
from horae.model.executions.execution import Extra
from horae.model.executions.parcel import Envelope, Parcel, parcel_sizes
from horae.model.executions.submission import NewExecution
from horae.model.triggers.decisions.decide import Fire
from horae.store.triggers.fire_decisions import DecidedTimer

_PLACEHOLDER = UUID(int=0)


def pack_fires(
    decided: Sequence[DecidedTimer], executions: Sequence[NewExecution], new_id: Callable[[], UUID], now: Instant
) -> tuple[list[UUID], list[tuple[Parcel, int]]]:
    """Put the executions of fires into parcels.

    `executions` has the execution of each fire in `decided`, in the same order. Return the ids of these executions, in
    this order, and the parcels, each with its rank lead.
    """
    extra_encoder = _Extras()
    extras = [extra_encoder.of(d.due.timer.id, fire) for d in decided for fire in d.decision.fires]
    ids: list[UUID] = [_PLACEHOLDER] * len(executions)
    fresh = parcel_ids(new_id)
    parcels: list[tuple[Parcel, int]] = []
    for first, places in _group_by_envelope(executions).items():
        one = executions[first]
        if places is None:
            parcel_id = ids[first] = next(fresh)
            packed = Packed(b"", one.item)
            parcel = Parcel(id=parcel_id, envelope=one.envelope, items=packed, extras=extras[first], submitted_at=now)
            parcels.append((parcel, one.rank_lead))
            continue
        for parcel_id, mates in _split_into_parcels(places, executions, fresh):
            for index, place in enumerate(mates):
                ids[place] = execution_id(parcel_id, index)
            items = pack([executions[place].item for place in mates])
            joined = b"[%b]" % b",".join(extras[place] for place in mates) if len(mates) > 1 else extras[mates[0]]
            parcel = Parcel(id=parcel_id, envelope=one.envelope, items=items, extras=joined, submitted_at=now)
            parcels.append((parcel, one.rank_lead))
    return ids, parcels


def _group_by_envelope(executions: Sequence[NewExecution]) -> dict[int, list[int] | None]:
    """Group the positions in `executions` of executions with equal envelopes and rank leads.

    The key of a group is its first position. The value has all its positions, or is None for a group of one.

    Two positions with the same `NewExecution` object need no comparison. Other executions of one job with the same due
    time nearly always have equal envelopes, too. So each is first compared with the first execution of its job and due
    time. Only if they differ, the envelope is looked up among all envelopes, which is slow because it is hashed.
    """
    by_object: dict[int, int] = {}
    by_job: dict[int, int] = {}
    by_envelope: dict[tuple[Envelope, int], int] = {}
    found: dict[int, list[int] | None] = {}
    for place, one in enumerate(executions):
        first = by_object.get(id(one))
        if first is None:
            envelope = one.envelope
            first = by_job.setdefault(id(envelope.job) << 64 | envelope.due_at, place)
            if first != place and (
                executions[first].rank_lead != one.rank_lead or executions[first].envelope != envelope
            ):
                first = by_envelope.setdefault((envelope, one.rank_lead), place)
            by_object[id(one)] = first
        if first == place:
            found[place] = None
        elif (mates := found[first]) is None:
            found[first] = [first, place]
        else:
            mates.append(place)
    return found


def _split_into_parcels(
    places: Sequence[int], executions: Sequence[NewExecution], fresh: Iterator[UUID]
) -> Iterator[tuple[UUID, Sequence[int]]]:
    """Divide a group of positions by the size limits of parcels; yield the id and the positions of each parcel."""
    start = 0
    for count in parcel_sizes(len(executions[place].item) for place in places):
        yield next(fresh), places[start : start + count]
        start += count


class _Extras:
    """Encodes the `Extra` of each fire as JSON.

    The extras of fires at one instant, with the same interval, differ only by the id of the trigger. So the JSON is
    made once for each instant and interval, and the id is put into it.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[Instant, Instant | None], tuple[bytes, bytes]] = {}

    def of(self, trigger: UUID, fire: Fire) -> bytes:
        known = self._known.get((fire.at, fire.since))
        if known is None:
            interval = None if fire.since is None else (fire.since, fire.at)
            extra = Extra(origin="fire", trigger=_PLACEHOLDER, fire_at=fire.at, interval=interval)
            before, _, after = msgspec.json.encode(extra).partition(str(_PLACEHOLDER).encode())
            known = self._known[fire.at, fire.since] = before, after
        return b"%b%b%b" % (known[0], str(trigger).encode(), known[1])
