"""Turns: executions of one trigger that run one at a time, for the overlaps `queueOne`, `queueAll` and `cancelOther`.

A trigger's key has one holder, the execution whose turn it is; others wait at the gate of the key. The holder's row is
the lock: a fire waits for it, the transaction that passes the turn on does not. A turn is passed on after its holder
has ended, for whatever reason: code that ends executions does not need to know of turns.
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
REASON: WaitReason = "overlap"  # the wait reason of executions without the turn
REPLACED = "a newer fire took its place"
_KEY: shelves.Columns = (("key", "text"),)
_HOLDERS: shelves.Columns = (("key", "text"), ("parcel", "uuid"), ("lo", "int"))
LOCK = Statement(
    "lock_turns", "SELECT h.key, h.parcel, h.lo FROM given JOIN holders h ON h.key = given.key FOR UPDATE OF h"
)
# A separate statement, because a statement that waited for the lock still sees its old snapshot of the shelves.
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
# No transaction waits for a row of this shelf.
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
    """The state of a trigger's key: whether its holder is still live, and the number of executions that wait for it."""

    busy: bool = False
    waiting: int = 0

    @property
    def is_free(self) -> bool:
        return not self.busy and not self.waiting


class BlockedTurn(Struct, frozen=True):
    """A key with executions waiting at its gate; `holder` is live, or None when the turn can be passed on."""

    key: str
    job: UUID
    holder: UUID | None
    cancels: bool  # whether the trigger wants the holder cancelled


def turn_key(job: UUID, name: str) -> str:
    """Return a trigger's key, which all its versions share."""
    return f"turn:{job}:{name}"


def read_turns(keys: Collection[str], *, hold: bool = True) -> Script[dict[str, Turn]]:
    """Return the state of these keys; with `hold`, it does not change until the transaction ends."""
    if not keys:
        return {}
    given = [(key,) for key in sorted(keys)]
    if hold:
        yield ForEach(LOCK, _KEY, given)
    busy = {row[0] for row in (yield ForEach(BUSY, _KEY, given))}
    waiting = {row[0]: int(row[1]) for row in (yield ForEach(COUNT, _KEY, given))}
    return {key: Turn(key in busy, waiting.get(key, 0)) for key in keys}


def adopt(executions: Mapping[str, UUID]) -> Script[dict[str, Turn]]:
    """Give free keys to running executions, and return the state of the keys after that."""
    if not executions:
        return {}
    keys = sorted(executions)
    yield ForEach(DROP, _KEY, [(key,) for key in keys])
    given = [(key, parcel_of(executions[key]), index_of(executions[key])) for key in keys]
    yield Insert("holders", _HOLDERS, given)
    return dict.fromkeys(keys, Turn(busy=True))


def mark_turn(one: NewExecution, key: str, turn: Turn) -> NewExecution:
    """Mark an execution as having its turn or as waiting for it."""
    return _marked(one, key, not turn.is_free)


def mark_turns(wanted: Sequence[NewExecution], key: str, turn: Turn) -> list[NewExecution]:
    """Mark executions of one trigger, in order, as having their turn or as waiting for it."""
    return [_marked(one, key, i > 0 or not turn.is_free) for i, one in enumerate(wanted)]


def _marked(one: NewExecution, key: str, waits: bool) -> NewExecution:
    keys = structs.replace(keys_of(one.envelope.keys), turn=key, gated=waits)
    return structs.replace(one, envelope=structs.replace(one.envelope, keys=encode_keys(keys)))


def is_gated(parcel: Parcel) -> bool:
    """Return whether the executions of a parcel wait for their turn."""
    return keys_of(parcel.envelope.keys).gated


def will_wait(one: NewExecution) -> bool:
    """Return whether an execution that is about to be created will wait for its turn."""
    return keys_of(one.envelope.keys).gated


def settle(parcels: Iterable[Parcel], replacing: Collection[str], now: Instant) -> Script[list[EndedItems]]:
    """Write the executions that wait for their turn and the holders of turns. Return the executions that waited at the
    keys of `replacing` and end now.
    """
    keyed = [parcel for parcel in parcels if keys_of(parcel.envelope.keys).turn is not None]
    if not keyed:
        return []
    ended = yield from _replace(replacing, now)
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


def _replace(keys: Collection[str], now: Instant) -> Script[list[EndedItems]]:
    """End the executions that wait at these gates as skipped: their fires stay `fired`, the executions hold
    the reason.
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
    """Return keys with executions waiting at their gates, in order, with their holders."""
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
    """Give a key whose holder has ended to the execution that is due first. Do nothing if another server passes the key
    on.
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
    """Start an execution whose turn has come: it waits for its due time or for its dependencies, or is queued.

    An execution fired by an event does not wait for dependencies: it has no data interval to which they could belong.
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
    """Delete holders that have ended and for which no execution waits. Return the key to go on from, empty
    at the end.
    """
    rows = yield Fetch(AFTER, (after, limit))
    given = [(row[0],) for row in rows]
    busy = {row[0] for row in (yield ForEach(BUSY, _KEY, given))}
    waited_for = {row[0] for row in (yield ForEach(COUNT, _KEY, given))}
    yield ForEach(DROP, _KEY, [(key,) for (key,) in given if key not in busy | waited_for])
    return str(rows[-1][0]) if len(rows) == limit else ""
