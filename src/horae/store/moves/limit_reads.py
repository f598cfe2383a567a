"""Who holds the keys of limits and sequences, as people are told."""

from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.model.ids import execution_id
from horae.model.limits import NO_LIMIT, UNLIMITED, Limit
from horae.model.rate import NEVER
from horae.store.moves import coarse
from horae.store.moves.holders import HEADS, KEY
from horae.store.moves.shelves import Columns
from horae.store.script import Fetch, ForEach, Script, Statement

HOLDERS_OF = Statement(
    "holders_of_key",
    "SELECT s.parcel, s.lo, s.hi FROM holders h JOIN running s ON s.parcel = h.parcel WHERE h.key = $1 UNION ALL"
    " SELECT s.parcel, s.lo, s.hi FROM holders h JOIN queued s ON s.parcel = h.parcel WHERE h.key = $1 LIMIT $2",
)
ALL_LIMITED = Statement("all_limited", "SELECT queue, namespace, spec FROM limits WHERE job IS NULL ORDER BY name")
HOLDERS = Statement("count_holders", "SELECT count(*) FROM (SELECT 1 AS one FROM holders LIMIT $1) AS counted")
ID: Columns = (("id", "int"),)


class Use(Struct, frozen=True):
    """A limit of a queue or of a namespace: how many executions run under it, and how many may."""

    queue: int | None
    namespace: int | None
    used: int
    most: int


def in_use() -> Script[list[Use]]:
    """All limits of queues and namespaces on how many run at once."""
    rows = yield Fetch(ALL_LIMITED)
    limits = [(queue, namespace, msgspec.json.decode(spec, type=Limit).most) for queue, namespace, spec in rows]
    used: dict[tuple[str, int], int] = {}
    for kind, ids in (
        ("queue", [(queue,) for queue, _, _ in limits if queue is not None]),
        ("namespace", [(namespace,) for queue, namespace, _ in limits if queue is None]),
    ):
        if ids:
            used |= {(kind, id): int(count) for id, count in (yield ForEach(coarse.USE[kind, True], ID, ids))}
    return [
        Use(q, n, used.get(("queue", q) if q is not None else ("namespace", n), 0), most)
        for q, n, most in limits
        if most < UNLIMITED
    ]


def holders(most: int) -> Script[int]:
    """How many entries there are of executions that hold keys of limits and sequences, counted up to a bound."""
    rows = yield Fetch(HOLDERS, (most,))
    return int(rows[0][0])


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
