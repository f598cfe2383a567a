"""Who holds the keys of limits and sequences, as people are told."""

from uuid import UUID

import msgspec

from horae.env import Instant
from horae.model.ids import execution_id
from horae.model.limits import NO_LIMIT, Limit
from horae.model.rate import NEVER
from horae.store.moves import coarse
from horae.store.moves.holders import HEADS, KEY
from horae.store.script import Fetch, ForEach, Script, Statement

HOLDERS_OF = Statement(
    "holders_of_key",
    "SELECT s.parcel, s.lo, s.hi FROM holders h JOIN running s ON s.parcel = h.parcel WHERE h.key = $1 UNION ALL"
    " SELECT s.parcel, s.lo, s.hi FROM holders h JOIN queued s ON s.parcel = h.parcel WHERE h.key = $1 LIMIT $2",
)


def holders_of(key: str, most: int) -> Script[list[UUID]]:
    """Executions that hold a key of a limit, those that run first."""
    rows = yield Fetch(HOLDERS_OF, (key, most))
    return [execution_id(parcel, item) for parcel, lo, hi in rows for item in range(lo, min(hi, lo + most))][:most]


def head_of(key: str) -> Script[UUID | None]:
    """The execution whose turn it is in a sequence."""
    for _, parcel, *firsts, _ in (yield ForEach(HEADS, KEY, [(key,)])):
        alive = [lo for lo in firsts if lo is not None]
        if alive:
            return execution_id(parcel, min(alive))
    return None


def use_of(name: str) -> Script[tuple[Limit, int, Instant]]:
    """What a queue or a namespace is limited to, how much of it runs, and the pace of its rate."""
    rows = yield ForEach(coarse.LIMITS, coarse.NAME, [(name,)])
    if not rows:
        return NO_LIMIT, 0, NEVER
    _, queue, namespace, spec, _, pace = rows[0]
    kind, id = ("namespace", namespace) if queue is None else ("queue", queue)
    used = yield ForEach(coarse.USE[kind, False], (("id", "int"),), [(id,)])
    return msgspec.json.decode(spec, type=Limit), int(used[0][1]) if used else 0, NEVER if pace is None else pace
