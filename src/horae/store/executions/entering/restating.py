"""Restating: what was accepted before may have gone on since."""

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

import msgspec

from horae.model.base.ids import execution_id, index_of, parcel_of
from horae.model.executions.submission import Answered, Receipt, Repeated, Reused
from horae.store.executions.standing import Piece, pieces, standing
from horae.store.script import Script

NOTHING: Mapping[UUID, Sequence[Piece]] = {}


def as_they_stand(
    answers: dict[int, Answered], held: Collection[UUID] = (), known: Mapping[UUID, Sequence[Piece]] = NOTHING
) -> Script[dict[int, Answered]]:
    """What was accepted before may have gone on since: such receipts say how their executions stand now.

    So do those of parcels that were `held`: of what waits for others some may go on at once. Where it is `known` how
    the items of a parcel stand, nothing is read.
    """
    old = [r for answer in answers.values() for r in _receipts_of(answer) if _is_old(r, answer, held)]
    if not old:
        return answers
    ranges = [(parcel_of(r.execution_id), index_of(r.execution_id), index_of(r.execution_id) + r.count) for r in old]
    unknown = [one for one in ranges if one[0] not in known]
    read = iter((yield from standing(unknown)) if unknown else ())
    found = iter([list(pieces(lo, hi, known[id])) if id in known else next(read) for id, lo, hi in ranges])

    def restated(answer: Answered) -> list[Receipt]:
        told = ((r, next(found)) if _is_old(r, answer, held) else (r, None) for r in _receipts_of(answer))
        return [receipt for r, stands in told for receipt in ([r] if stands is None else _in_pieces(r, stands))]

    return {
        i: answer if isinstance(answer, Reused) else Repeated(new) if isinstance(answer, Repeated) else new
        for i, answer in answers.items()
        for new in [restated(answer)]
    }


def _receipts_of(answer: Answered) -> list[Receipt]:
    return [] if isinstance(answer, Reused) else answer.answer if isinstance(answer, Repeated) else answer


def _is_old(receipt: Receipt, answer: object, held: Collection[UUID]) -> bool:
    if receipt.deduplicated or isinstance(answer, Repeated):
        return True
    return bool(held) and parcel_of(receipt.execution_id) in held


def _in_pieces(receipt: Receipt, stands: Sequence[Piece]) -> list[Receipt]:
    """A lot is told in pieces where its executions stand apart."""
    parcel = parcel_of(receipt.execution_id)
    return [
        msgspec.structs.replace(receipt, execution_id=execution_id(parcel, lo), state=state, count=hi - lo)
        for lo, hi, state in stands
    ]
