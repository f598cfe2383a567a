"""Placing of accepted executions in parcels."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from uuid import UUID

import msgspec

from horae.env import Instant
from horae.model.base.ids import execution_id, parcel_id
from horae.model.executions.parcel import Envelope, Parcel, make_parcel, parcel_sizes
from horae.model.executions.submission import NewExecution, NewItems, Receipt, UniqueKey

NO_ANSWERS: Mapping[int, Receipt | int] = {}


def place(
    executions: Sequence[NewItems],
    known: Mapping[UniqueKey, UUID],
    new_id: Callable[[], UUID],
    now: Instant,
    answered: Mapping[int, Receipt | int] = NO_ANSWERS,
) -> tuple[list[list[Receipt]], list[tuple[Parcel, int]]]:
    """Put new executions into parcels.

    Return the receipts of each submission, in order, and the parcels, each with the lead of its rank.

    Some submissions create no execution. If the unique key of a submission is in `known`, it is answered with the
    execution of the key. `answered` maps the index of a submission to its answer, or to the index of another submission
    with the same answer.
    """
    groups: dict[tuple[Envelope, int, bool], list[int]] = {}
    first: dict[UniqueKey, int] = {}
    for i, e in enumerate(executions):
        if e.unique is not None and (e.unique in known or e.unique in first):
            continue
        if e.unique is not None:
            first[e.unique] = i
        if i in answered:
            continue
        groups.setdefault((e.envelope, e.rank_lead, e.patience is None), []).append(i)
    receipts: dict[int, list[Receipt]] = {}
    parcels: list[tuple[Parcel, int]] = []
    for (envelope, lead, _), members in groups.items():
        only = executions[members[0]] if len(members) == 1 else None
        if isinstance(only, NewExecution):
            parcel = make_parcel(parcel_id(new_id()), _due(envelope, now), (only.item,), (only.extra,), now)
            parcels.append((parcel, lead))
            # the id of a parcel is also the id of its first item
            receipts[members[0]] = [Receipt(parcel.id, state=_state(parcel, now))]
            continue
        filled = list(_fill(envelope, [executions[i] for i in members], new_id, now))
        parcels += [(parcel, lead) for parcel in filled]
        receipts |= zip(members, _receipts([_items(executions[i]) for i in members], filled, now), strict=True)
    for i in answered:
        receipts[i] = [_answer(i, answered, receipts)]
    for i, e in enumerate(executions):
        if i not in receipts and e.unique is not None:
            held = known.get(e.unique) or receipts[first[e.unique]][0].execution_id
            receipts[i] = [Receipt(held, deduplicated=True)]
    return [receipts[i] for i in range(len(executions))], parcels


def _answer(index: int, elsewhere: Mapping[int, Receipt | int], receipts: Mapping[int, Sequence[Receipt]]) -> Receipt:
    answer: Receipt | int = index
    while isinstance(answer, int) and answer in elsewhere:
        answer = elsewhere[answer]
    return Receipt(receipts[answer][0].execution_id, deduplicated=True) if isinstance(answer, int) else answer


def _items(asked: NewItems) -> Sequence[bytes]:
    return (asked.item,) if isinstance(asked, NewExecution) else asked.items


def _fill(envelope: Envelope, asked: Sequence[NewItems], new_id: Callable[[], UUID], now: Instant) -> Iterator[Parcel]:
    """Put the items of submissions with equal envelopes into parcels; without a due time, they are due now."""
    due = _due(envelope, now)
    items = [item for e in asked for item in _items(e)]
    extras = [e.extra for e in asked for _ in _items(e)]
    start = 0
    for count in parcel_sizes(map(len, items)):
        cut = slice(start, start + count)
        start += count
        yield make_parcel(parcel_id(new_id()), due, items[cut], extras[cut], now)


def _due(envelope: Envelope, now: Instant) -> Envelope:
    return envelope if envelope.due_at else msgspec.structs.replace(envelope, due_at=now)


def _state(parcel: Parcel, now: Instant) -> str:
    return "queued" if parcel.envelope.due_at <= now else "waiting"


def _receipts(lots: Iterable[Sequence[bytes]], parcels: Sequence[Parcel], now: Instant) -> Iterator[list[Receipt]]:
    """Yield the receipts of each submission.

    `lots` has the items of each submission, and `parcels` has all these items in the same order. So the items of a
    submission may be in several parcels, and a parcel may have items of several submissions.
    """
    at = offset = 0
    for lot in lots:
        mine: list[Receipt] = []
        left = len(lot)
        while left:
            parcel = parcels[at]
            count = min(left, len(parcel) - offset)
            mine.append(Receipt(execution_id(parcel.id, offset), state=_state(parcel, now), count=count))
            left, offset = left - count, offset + count
            if offset == len(parcel):
                at, offset = at + 1, 0
        yield mine
