"""Turns: a trigger's executions run one at a time if its overlap is `queueOne`, `queueAll` or `cancelOther`.

Each trigger has a key. The holder of the key, a row in `holders`, is the execution that has the turn; the others wait
at the gate of the key. The row also serves as the lock: a transaction that decides a fire waits for it, but the
transaction that passes the turn on skips a locked row. The turn is not passed on by the transaction that ends its
holder but later, so code that ends executions does not need to know about turns.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from uuid import UUID

import msgspec
from msgspec import Struct, structs

from horae.env import Instant
from horae.model.admission.key_gate import woken_slice
from horae.model.admission.keys import encode_keys, flags_of, is_keyed, keys_of
from horae.model.base.ids import execution_id, index_of, parcel_of
from horae.model.executions.execution import Extra, WaitReason
from horae.model.executions.parcel import Parcel, extra_of
from horae.model.executions.settle import FinishedSlice
from horae.model.executions.slice import WaitingSlice, part
from horae.model.executions.submission import NewExecution
from horae.model.triggers.decisions.rules import Rules
from horae.store.base import shelves
from horae.store.executions.parcels import insert_parcels, insert_timeouts, least_ranks, read_parcels
from horae.store.executions.promote import PromotionResult, Ranker, to_queue
from horae.store.script import Fetch, ForEach, Insert, Row, Script, Statement, Together
from horae.store.triggers.dependencies import waits
from horae.store.triggers.dependencies.arrivals import EndedItems
from horae.store.triggers.dependencies.starts import Consequences, NewId
from horae.store.triggers.targets import targets

KEYED = frozenset({"queueOne", "queueAll", "cancelOther"})
REASON: WaitReason = "overlap"  # the wait reason of executions that wait for their turn
REPLACED = "a newer fire took its place"
_KEY: shelves.Columns = (("key", "text"),)
_HOLDERS: shelves.Columns = (("key", "text"), ("parcel", "uuid"), ("lo", "int"))
LOCK = Statement(
    "lock_turns", "SELECT h.key, h.parcel, h.lo FROM given JOIN holders h ON h.key = given.key FOR UPDATE OF h"
)
# Not part of LOCK, because a statement that had to wait for the lock still sees the shelves as they were before.
BUSY = Statement(
    "busy_turns",
    "SELECT h.key, h.parcel, h.lo FROM given JOIN holders h ON h.key = given.key"
    f" WHERE {shelves.is_live('h.parcel', 'h.lo')}",
)
COUNT = Statement(
    "count_turns",
    "SELECT w.gate, sum(w.hi - w.lo) FROM given JOIN waiting w ON w.gate = given.key"
    f" WHERE w.reason = '{REASON}' GROUP BY w.gate",
)
DROP = Statement("drop_turns", "DELETE FROM holders USING given WHERE holders.key = given.key")
_COLUMNS = f"{shelves.names(shelves.WAITING, 'w.')}, p.lane, p.due_at, p.priority, p.deadline"
# SKIP LOCKED, because no transaction may wait for a row of `waiting`.
AT_GATE = Statement(
    "waiting_turns",
    f"SELECT {_COLUMNS} FROM given JOIN waiting w ON w.gate = given.key JOIN parcels p ON p.id = w.parcel"
    f" WHERE w.reason = '{REASON}' FOR UPDATE OF w SKIP LOCKED",
)
HOLDER = Statement("turn_holder", "SELECT h.parcel, h.lo FROM holders h WHERE h.key = $1 FOR UPDATE SKIP LOCKED")
HELD = Statement("turn_held", "SELECT 1 FROM holders h WHERE h.key = $1")
BLOCKED = Statement(
    "blocked_turns",
    f"SELECT DISTINCT w.gate, w.job FROM waiting w WHERE w.reason = '{REASON}' AND w.gate > $1"
    " ORDER BY w.gate LIMIT $2",
)
RULES = Statement(
    "rules_of_turns",
    "SELECT given.key, g.rules FROM given JOIN triggers g ON g.job = given.job AND g.name = given.name"
    " WHERE g.state <> 'ended'",
)
AFTER = Statement(
    "turns_after",
    "SELECT h.key FROM holders h WHERE h.key > $1 AND h.key LIKE 'turn:%' ORDER BY h.key LIMIT $2"
    " FOR UPDATE SKIP LOCKED",
)


class Turn(Struct, frozen=True):
    """The state of a trigger's key."""

    busy: bool = False  # whether it has a holder that has not ended
    waiting: int = 0  # the number of executions that wait for their turn

    @property
    def is_free(self) -> bool:
        return not self.busy and not self.waiting


class BlockedTurn(Struct, frozen=True):
    """A key with executions that wait for their turn."""

    key: str
    job: UUID
    holder: UUID | None  # the execution that has the turn; None if it has ended, so that the turn can be passed on
    cancels: bool  # whether the holder is to be cancelled, because the overlap is `cancelOther`


def turn_key(job: UUID, name: str) -> str:
    """Return the key of a trigger by its job and name; all its versions share this key."""
    return f"turn:{job}:{name}"


def read_turns(keys: Collection[str], *, hold: bool = True) -> Script[dict[str, Turn]]:
    """Return the states of keys; with `hold`, lock the keys, so that the states do not change until the commit."""
    if not keys:
        return {}
    given = [(key,) for key in sorted(keys)]
    if hold:
        yield ForEach(LOCK, _KEY, given)
    busy = {row[0] for row in (yield ForEach(BUSY, _KEY, given))}
    waiting = {row[0]: int(row[1]) for row in (yield ForEach(COUNT, _KEY, given))}
    return {key: Turn(key in busy, waiting.get(key, 0)) for key in keys}


def adopt(executions: Mapping[str, UUID]) -> Script[dict[str, Turn]]:
    """Make executions that are live already the holders of free keys, and return the new states of the keys."""
    if not executions:
        return {}
    keys = sorted(executions)
    yield ForEach(DROP, _KEY, [(key,) for key in keys])
    given = [(key, parcel_of(executions[key]), index_of(executions[key])) for key in keys]
    yield Insert("holders", _HOLDERS, given)
    return dict.fromkeys(keys, Turn(busy=True))


def mark_turn(one: NewExecution, key: str, turn: Turn) -> NewExecution:
    """Return the execution with the key of its turn, marked as waiting unless the turn is free."""
    return _marked(one, key, not turn.is_free)


def mark_turns(wanted: Sequence[NewExecution], key: str, turn: Turn) -> list[NewExecution]:
    """Return the executions of one trigger with the key of its turn.

    The first one gets the turn if it is free; all others are marked as waiting.
    """
    return [_marked(one, key, i > 0 or not turn.is_free) for i, one in enumerate(wanted)]


def _marked(one: NewExecution, key: str, waits: bool) -> NewExecution:
    keys = structs.replace(keys_of(one.envelope.keys), turn=key, gated=waits)
    return structs.replace(one, envelope=structs.replace(one.envelope, keys=encode_keys(keys)))


def is_gated(parcel: Parcel) -> bool:
    """Return whether the executions of a parcel wait for their turn."""
    return keys_of(parcel.envelope.keys).gated


def settle(parcels: Iterable[Parcel], replacing: Collection[str], now: Instant) -> Script[list[EndedItems]]:
    """Store those of the new executions that wait for their turn, and store the holders of turns.

    Executions that already waited for a key in `replacing` end, because newer ones replace them; return these.
    """
    keyed = [parcel for parcel in parcels if keys_of(parcel.envelope.keys).turn is not None]
    if not keyed:
        return []
    ended = yield from _end_waiting(replacing, now)
    gated = [parcel for parcel in keyed if is_gated(parcel)]
    taken = [(_key_of(parcel), parcel.id, 0) for parcel in keyed if not is_gated(parcel)]
    yield ForEach(DROP, _KEY, [(key,) for key, *_ in taken])
    waiting = shelves.put_waiting([_waiting(parcel) for parcel in gated])
    fresh = [(parcel, 0) for parcel in gated]
    yield Together([insert_parcels(fresh), waiting, Insert("holders", _HOLDERS, taken), *insert_timeouts(fresh)])
    return ended


def _key_of(parcel: Parcel) -> str:
    return keys_of(parcel.envelope.keys).turn or ""


def _waiting(p: Parcel) -> WaitingSlice:
    e = p.envelope
    return WaitingSlice(
        parcel=p.id, lo=0, hi=len(p), job=e.job, queue=e.queue, namespace=e.namespace, attempt=0, failures=0, losses=0,
        width=p.width, flags=flags_of(e.keys), wake_at=None, reason=REASON, gate=_key_of(p),
    )  # fmt: skip


def _end_waiting(keys: Collection[str], now: Instant) -> Script[list[EndedItems]]:
    """End the executions that wait for these keys as skipped, with the reason.

    The ledger does not change: the disposition of their fires stays `fired`.
    """
    if not keys:
        return []
    rows = yield ForEach(AT_GATE, _KEY, [(key,) for key in sorted(keys)])
    old = [shelves.waiting(row) for row in rows]
    if old:
        yield shelves.take("waiting", old)
        ended = [
            FinishedSlice(slice=s, state="skipped", reason=REPLACED, queued_at=None, completed_at=now) for s in old
        ]
        yield shelves.put_finished(ended)
    return [EndedItems(s.parcel, s.lo, s.hi, s.job, "skipped") for s in old]


def blocked(after: str, limit: int) -> Script[list[BlockedTurn]]:
    """Return a page of the keys for which executions wait, in their order, with the holders."""
    rows = yield Fetch(BLOCKED, (after, limit))
    if not rows:
        return []
    given = [(key,) for key, _ in rows]
    holders = {row[0]: execution_id(row[1], row[2]) for row in (yield ForEach(BUSY, _KEY, given))}
    named = [(key, job, _name_in(key)) for key, job in rows]
    columns: shelves.Columns = (("key", "text"), ("job", "uuid"), ("name", "text"))
    rules = {row[0]: msgspec.json.decode(row[1], type=Rules) for row in (yield ForEach(RULES, columns, named))}
    return [
        BlockedTurn(key, job, holders.get(key), key in rules and rules[key].overlap == "cancelOther")
        for key, job in rows
    ]


def _name_in(key: str) -> str:
    return key.split(":", 2)[2]


def pass_on(key: str, rank: Ranker, new_id: NewId, now: Instant) -> Script[PromotionResult]:
    """Give a key whose holder has ended to the waiting execution that is due first.

    Do nothing if another transaction has locked the key, because it passes the turn on.
    """
    if not (yield Fetch(HOLDER, (key,))) and (yield Fetch(HELD, (key,))):
        return PromotionResult({}, 0, [])
    if (yield ForEach(BUSY, _KEY, [(key,)])):  # guard: turn-is-taken
        return PromotionResult({}, 0, [])
    rows = yield ForEach(AT_GATE, _KEY, [(key,)])
    yield ForEach(DROP, _KEY, [(key,)])
    if not rows:
        return PromotionResult({}, 0, [])
    row = min(rows, key=lambda row: (row[len(shelves.WAITING) + 1], row[0], row[1]))
    first = shelves.waiting(row)
    one = part(first, first.lo, first.lo + 1)
    yield Insert("holders", _HOLDERS, [(key, one.parcel, one.lo)])
    yield shelves.take("waiting", [first])
    if first.hi > one.hi:
        yield shelves.put_waiting([part(first, one.hi, first.hi)])
    return (yield from _begin(one, row, rank, new_id, now))


def _begin(one: WaitingSlice, row: Row, rank: Ranker, new_id: NewId, now: Instant) -> Script[PromotionResult]:
    """Move an execution that has got the turn on: it waits for its dependencies or its due time, or is queued.

    An execution that an event fired does not wait for dependencies, because it has no data interval.
    """
    lane, due_at, priority, latest = row[len(shelves.WAITING) :]
    target = (yield from targets([one.job])).get(one.job)
    if target is not None and target.spec.dependencies:
        (parcel,) = yield from read_parcels([one.parcel])
        extra = extra_of(parcel.extras, one.lo)
        if extra.origin != "event":
            deadline = max(due_at, now) + target.spec.dependency_timeout
            return (yield from _depend(one, extra, deadline, new_id, now))
    if due_at > now:
        yield shelves.put_waiting([structs.replace(one, reason="delay", wake_at=due_at, gate=None)])
        return PromotionResult({}, 1, [])
    if is_keyed(one.flags):
        yield shelves.put_waiting([woken_slice(one, rank(one.queue, due_at, priority, latest, one.job), now)])
        return PromotionResult({}, 1, [], now)
    queued = [to_queue(one, lane, rank(one.queue, due_at, priority, latest, one.job), now)]
    yield shelves.put_queued(queued)
    return PromotionResult(least_ranks(queued), 1, queued)


def _depend(one: WaitingSlice, extra: Extra, deadline: Instant, new_id: NewId, now: Instant) -> Script[PromotionResult]:
    yield shelves.put_waiting([structs.replace(one, reason="dependency", gate=f"dependencies:{one.job}")])
    wait = waits.Wait(
        dependent=one.job, execution=execution_id(one.parcel, one.lo), interval=extra.interval,
        deadline=deadline, own=True,
    )  # fmt: skip
    lanes, _ = yield from waits.begin([wait], new_id, now, Consequences())
    return PromotionResult(lanes, 1, [])


def forget(after: str, limit: int) -> Script[str]:
    """Delete, of a page of holders of turns, those that have ended and for whose key no execution waits.

    Return the `after` of the next page; empty after the last one.
    """
    rows = yield Fetch(AFTER, (after, limit))
    given = [(row[0],) for row in rows]
    busy = {row[0] for row in (yield ForEach(BUSY, _KEY, given))}
    waited_for = {row[0] for row in (yield ForEach(COUNT, _KEY, given))}
    yield ForEach(DROP, _KEY, [(key,) for (key,) in given if key not in busy | waited_for])
    return str(rows[-1][0]) if len(rows) == limit else ""
