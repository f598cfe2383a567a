"""Fires in parcels: those of one job that are due at one instant travel together, whatever triggers fired them."""

from collections.abc import Callable, Iterator, Sequence
from uuid import UUID

import msgspec

from horae.env import Instant
from horae.model.base.ids import execution_id, parcel_ids
from horae.model.base.packing import Packed, pack
from horae.model.executions.execution import Extra
from horae.model.executions.parcel import Envelope, Parcel, loads
from horae.model.executions.submission import NewExecution
from horae.model.triggers.decisions.decide import Fire
from horae.store.triggers.fire_decisions import DecidedTimer

_PLACEHOLDER = UUID(int=0)


def pack_fires(
    decided: Sequence[DecidedTimer], terms: Sequence[NewExecution], new_id: Callable[[], UUID], now: Instant
) -> tuple[list[UUID], list[tuple[Parcel, int]]]:
    """The executions of the fires, in their order, and the parcels in which they lie, each with its lead.

    `terms` are those of each fire, in the same order.
    """
    telling = _Extras()
    extras = [telling.of(d.due.timer.id, fire) for d in decided for fire in d.decision.fires]
    ids: list[UUID] = [_PLACEHOLDER] * len(terms)
    fresh = parcel_ids(new_id)
    parcels: list[tuple[Parcel, int]] = []
    for first, places in _group_by_envelope(terms).items():
        one = terms[first]
        if places is None:
            id = ids[first] = next(fresh)
            packed = Packed(b"", one.item)
            parcel = Parcel(id=id, envelope=one.envelope, items=packed, extras=extras[first], submitted_at=now)
            parcels.append((parcel, one.rank_lead))
            continue
        for id, mates in _split_into_parcels(places, terms, fresh):
            for index, place in enumerate(mates):
                ids[place] = execution_id(id, index)
            items = pack([terms[place].item for place in mates])
            said = b"[%b]" % b",".join(extras[place] for place in mates) if len(mates) > 1 else extras[mates[0]]
            parcel = Parcel(id=id, envelope=one.envelope, items=items, extras=said, submitted_at=now)
            parcels.append((parcel, one.rank_lead))
    return ids, parcels


def _group_by_envelope(terms: Sequence[NewExecution]) -> dict[int, list[int] | None]:
    """The places of those that share a parcel by the first of them; none are listed for one that is alone.

    Equal envelopes share one. On the same terms they are the same, which need not be compared; nearly always those of a
    job at an instant are equal, too: to compare two is cheap, to look for one among all is not.
    """
    by_terms: dict[int, int] = {}
    near: dict[int, int] = {}
    others: dict[tuple[Envelope, int], int] = {}
    found: dict[int, list[int] | None] = {}
    for place, one in enumerate(terms):
        first = by_terms.get(id(one))
        if first is None:
            envelope = one.envelope
            first = near.setdefault(id(envelope.job) << 64 | envelope.due_at, place)
            if first != place and (terms[first].rank_lead != one.rank_lead or terms[first].envelope != envelope):
                first = others.setdefault((envelope, one.rank_lead), place)
            by_terms[id(one)] = first
        if first == place:
            found[place] = None
        elif (mates := found[first]) is None:
            found[first] = [first, place]
        else:
            mates.append(place)
    return found


def _split_into_parcels(
    places: Sequence[int], terms: Sequence[NewExecution], fresh: Iterator[UUID]
) -> Iterator[tuple[UUID, Sequence[int]]]:
    """Parcels that these fill, each with its id."""
    start = 0
    for count in loads(len(terms[place].item) for place in places):
        yield next(fresh), places[start : start + count]
        start += count


class _Extras:
    """What an item says of its fire; of many fires of one instant it is encoded once, but for who fired."""

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
