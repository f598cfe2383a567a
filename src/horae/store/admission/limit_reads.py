"""Reads of limits and sequences for users: their use, and the executions that hold their keys."""

from typing import Literal
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.model.admission.limits import NO_LIMIT, UNLIMITED, Limit
from horae.model.admission.rate import UNUSED
from horae.model.base.ids import execution_id
from horae.store.admission import coarse
from horae.store.admission.holders import HEADS, KEY, USE, WITH_RUNNING_STEPS
from horae.store.base.shelves import Columns
from horae.store.script import Fetch, ForEach, Script, Statement


def _held(place: int, shelf: str, more: str = "") -> str:
    return (
        f"SELECT {place} AS place, s.parcel, s.lo, s.hi FROM holders h JOIN {shelf} s ON s.parcel = h.parcel{more}"
        " WHERE h.key = $1"
    )


_BY_SHELF = " UNION ALL ".join([_held(0, "running"), _held(1, "waiting", WITH_RUNNING_STEPS), _held(2, "queued")])
HOLDERS_OF = Statement(
    "holders_of_key",
    f"SELECT parcel, lo, hi FROM ({_BY_SHELF}) AS held ORDER BY place, parcel, lo LIMIT $2",
)
# A skip scan: it jumps from one key to the next by an index, so its cost does not depend on the number of holders.
_NEXT_KEYS = (
    "WITH RECURSIVE keys(key) AS (SELECT min(h.key) FROM {0} h WHERE h.key > $1 AND h.key < $2 UNION ALL"
    " SELECT (SELECT min(h.key) FROM {0} h WHERE h.key > k.key AND h.key < $2) FROM keys k WHERE k.key IS NOT NULL)"
    " SELECT key FROM keys WHERE key IS NOT NULL LIMIT $3"
)
NEXT_KEYS = {
    "limit": Statement("next_held_keys", _NEXT_KEYS.format("holders")),
    "sequence": Statement("next_sequences", _NEXT_KEYS.format("tickets")),
}
ALL_LIMITED = Statement("all_limited", "SELECT queue, namespace, spec FROM limits WHERE job IS NULL ORDER BY name")
HOLDERS = Statement("count_holders", "SELECT count(*) FROM (SELECT 1 AS one FROM holders LIMIT $1) AS counted")
ID: Columns = (("id", "int"),)


class LimitUse(Struct, frozen=True):
    """The use of a limit of a queue or a namespace."""

    queue: int | None  # None for the limit of a namespace
    namespace: int | None
    used: int  # executions that run under the limit
    most: int  # the maximum


def limit_uses() -> Script[list[LimitUse]]:
    """Return the use of all limits of queues and namespaces, except those that limit only the rate of starts."""
    rows = yield Fetch(ALL_LIMITED)
    limits = [(queue, namespace, msgspec.json.decode(spec, type=Limit).most) for queue, namespace, spec in rows]
    used: dict[tuple[str, int], int] = {}
    for kind, ids in (
        ("queue", [(queue,) for queue, _, _ in limits if queue is not None]),
        ("namespace", [(namespace,) for queue, namespace, _ in limits if queue is None]),
    ):
        if ids:
            used |= {
                (kind, scope_id): int(count) for scope_id, count in (yield ForEach(coarse.USE[kind, True], ID, ids))
            }
    return [
        LimitUse(q, n, used.get(("queue", q) if q is not None else ("namespace", n), 0), most)
        for q, n, most in limits
        if most < UNLIMITED
    ]


def count_holders(most: int) -> Script[int]:
    """Count the rows of `holders`, up to `most`: the holders of limits' keys and of the turns of triggers."""
    rows = yield Fetch(HOLDERS, (most,))
    return int(rows[0][0])


def holders_of(key: str, most: int) -> Script[list[UUID]]:
    """Return executions that hold a key of a limit: running ones first, then workflows under way, then queued ones."""
    rows = yield Fetch(HOLDERS_OF, (key, most))
    return [execution_id(parcel, item) for parcel, lo, hi in rows for item in range(lo, min(hi, lo + most))][:most]


class HeldKey(Struct, frozen=True):
    """A key of a limit or a sequence of a job that executions hold."""

    key: str
    used: int  # executions that are queued or running, and workflows whose steps run; for a sequence always 1
    waited_for: bool  # whether executions wait for it
    holders: list[UUID]  # some of the executions


def held_keys(
    kind: Literal["limit", "sequence"], job: UUID, after: str, most: int, named: int
) -> Script[list[HeldKey]]:
    """Return a page of the held keys of a job's limits or sequences: at most `most` keys after the key `after`.

    Each has at most `named` of its holders; for a sequence this is the execution that has the turn.
    """
    first = f"{kind}:{job}:"
    rows = yield Fetch(NEXT_KEYS[kind], (max(after, first), f"{kind}:{job};", most))  # ";" follows ":"
    keys: list[str] = [key for (key,) in rows]
    uses = {key: rest for key, *rest in (yield ForEach(USE, KEY, [(key,) for key in keys]))} if keys else {}
    found: list[HeldKey] = []
    for key in keys:
        queued, running, _, waits = uses[key]
        if kind == "sequence":
            head = yield from head_of(key)
            found.append(HeldKey(key, 1, bool(waits), [] if head is None else [head]))
        else:
            found.append(HeldKey(key, int(queued + running), bool(waits), (yield from holders_of(key, named))))
    return found


def head_of(key: str) -> Script[UUID | None]:
    """Return the execution that has the turn in a sequence; None if no execution has it."""
    for _, parcel, *firsts, _ in (yield ForEach(HEADS, KEY, [(key,)])):
        alive = [lo for lo in firsts if lo is not None]
        if alive:
            return execution_id(parcel, min(alive))
    return None


def use_of(name: str) -> Script[tuple[Limit, int, Instant]]:
    """Return the limit of a queue or a namespace, the number of executions that run under it, and the pace of its rate.

    A pace is the instant at which the next start would be exactly on schedule, see `model.admission.rate`.
    """
    rows = yield ForEach(coarse.LIMITS, coarse.NAME, [(name,)])
    if not rows:
        return NO_LIMIT, 0, UNUSED
    _, queue, namespace, spec, _, pace = rows[0]
    kind, scope_id = ("namespace", namespace) if queue is None else ("queue", queue)
    used = yield ForEach(coarse.USE[kind, False], (("id", "int"),), [(scope_id,)])
    return msgspec.json.decode(spec, type=Limit), int(used[0][1]) if used else 0, UNUSED if pace is None else pace
