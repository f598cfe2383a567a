"""Fires in parcels: those of one job that are due at one instant travel together, whatever triggers fired them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.model.execution import Extra
from horae.model.ids import execution_id, parcel_ids
from horae.model.packing import Packed, pack
from horae.model.parcel import Envelope, Parcel, loads
from horae.model.trigger import Fire
from horae.store.moves.fire_decisions import Decided
from horae.store.moves.submission import NewExecution

_SOMEBODY = UUID(int=0)


class _Lot(Struct, gc=False):
    """Fires that are parcel-mates: their items, who fired them, and their places among all."""

    envelope: Envelope
    lead: int
    items: list[bytes]
    extras: list[bytes]
    places: list[int]


def lay(
    decided: Sequence[Decided], terms: Sequence[NewExecution], new_id: Callable[[], UUID], now: Instant
) -> tuple[list[UUID], list[tuple[Parcel, int]]]:
    """The executions of the fires, in their order, and the parcels in which they lie, each with its lead.

    `terms` are those of each fire, in the same order.
    """
    ids: list[UUID] = [_SOMEBODY] * len(terms)
    fresh = parcel_ids(new_id)
    parcels: list[tuple[Parcel, int]] = []
    for lot in _lots(decided, terms):
        if len(lot.items) == 1:
            id = ids[lot.places[0]] = next(fresh)
            packed = Packed(b"", lot.items[0])
            parcel = Parcel(id=id, envelope=lot.envelope, items=packed, extras=lot.extras[0], submitted_at=now)
            parcels.append((parcel, lot.lead))
        else:
            parcels += ((parcel, lot.lead) for parcel in _filled(lot, ids, fresh, now))
    return ids, parcels


def _lots(decided: Sequence[Decided], terms: Sequence[NewExecution]) -> Iterable[_Lot]:
    """Equal envelopes share a lot; fires on the same terms have the same envelope, which need not be compared.

    To compare two is cheap, to look for one among all is not: nearly always those of a job at an instant are equal.
    """
    by_terms: dict[int, _Lot] = {}
    near: dict[tuple[int, Instant], _Lot] = {}
    others: dict[tuple[Envelope, int], _Lot] = {}
    telling = _Telling()
    place = 0
    for d in decided:
        for fire in d.decision.fires:
            one = terms[place]
            lot = by_terms.get(id(one))
            if lot is None:
                envelope, lead = one.envelope, one.rank_lead
                fresh = _Lot(envelope, lead, [], [], [])
                lot = near.setdefault((id(envelope.job), envelope.due_at), fresh)
                if lot is not fresh and (lot.lead != lead or lot.envelope != envelope):
                    lot = others.setdefault((envelope, lead), fresh)
                by_terms[id(one)] = lot
            lot.items.append(one.item)
            lot.extras.append(telling.of(d.due.timer.id, fire))
            lot.places.append(place)
            place += 1
    return chain(near.values(), others.values())


def _filled(lot: _Lot, ids: list[UUID], fresh: Iterator[UUID], now: Instant) -> Iterator[Parcel]:
    """Fill parcels with a lot, and note the ids that its fires have there."""
    start = 0
    for count in loads(map(len, lot.items)):
        cut = slice(start, start + count)
        start += count
        id = next(fresh)
        for index, place in enumerate(lot.places[cut]):
            ids[place] = execution_id(id, index)
        extras = lot.extras[cut.start] if count == 1 else b"[%b]" % b",".join(lot.extras[cut])
        yield Parcel(id=id, envelope=lot.envelope, items=pack(lot.items[cut]), extras=extras, submitted_at=now)


class _Telling:
    """What an item says of its fire; of many fires of one instant it is encoded once, but for who fired."""

    def __init__(self) -> None:
        self._known: dict[tuple[Instant, Instant | None], tuple[bytes, bytes]] = {}

    def of(self, trigger: UUID, fire: Fire) -> bytes:
        known = self._known.get((fire.at, fire.since))
        if known is None:
            interval = None if fire.since is None else (fire.since, fire.at)
            extra = Extra(origin="fire", trigger=_SOMEBODY, fire_at=fire.at, interval=interval)
            before, _, after = msgspec.json.encode(extra).partition(str(_SOMEBODY).encode())
            known = self._known[fire.at, fire.since] = before, after
        return b"%b%b%b" % (known[0], str(trigger).encode(), known[1])
