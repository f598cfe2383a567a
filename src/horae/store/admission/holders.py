"""Holders: they decide whether an execution with the key of a limit or a sequence may enter the queue, and which one
enters next when another leaves.

A limit bounds the number of executions with the same key. Its use is the number of items on `queued` and `running` of
the parcels that hold the key, and of workflows whose steps run. They are counted while the key is locked, by a separate
statement. A sequence is a key whose executions run one at a time, in the order of submission, which the table `tickets`
stores. The turn belongs to the first item that has not ended, on any shelf, so an item that waits for a retry keeps it.

There are two entry points. Everything that is to be queued under keys passes `enter`. Every transaction that takes
items off `queued` or `running`, or ends them, calls `free` with their parcels, which admits the next executions. Code
that must not take locks (a fire, a start of a dependent) puts its parcels on `waiting`, and the promoter passes them to
`enter`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from uuid import UUID

from msgspec import Struct, structs

from horae.env import Instant
from horae.model.admission.key_gate import GateEntry, GateResult, KeyState, pass_gate
from horae.model.admission.keys import EnvelopeKeys, keys_of
from horae.model.admission.limits import Limit, is_sequence, job_of, limit_of
from horae.model.executions.slice import QueuedSlice
from horae.store.base import shelves
from horae.store.base.specs import read_limits
from horae.store.script import ForEach, Insert, Lock, Row, Script, Statement, Together

KEY: shelves.Columns = (("key", "text"),)
HELD: shelves.Columns = (("key", "text"), ("parcel", "uuid"))
HOLDERS: shelves.Columns = (*HELD, ("lo", "int"))
TICKETS: shelves.Columns = (*HELD, ("ticket", "bigint"))
ALL_KEYS_LOCK = "limits"  # name of the lock that stands for all keys, for a transaction with too many keys to lock each
MAX_LOCKS = 400  # locks of a transaction; PostgreSQL has room for some thousands in all transactions together
MAX_ADMITTED = 200  # slices that one statement admits from a gate
KEYS_OF = Statement("keys_of_parcels", "SELECT p.id, p.keys FROM given JOIN parcels p ON p.id = given.parcel")
LIMITS_OF = Statement(
    "limits_of_jobs",
    "SELECT j.id, v.spec FROM given JOIN jobs j ON j.id = given.job"
    " JOIN job_versions v ON v.job = j.id AND v.version = j.version",
)


def _used(shelf: str, more: str = "") -> str:
    return (
        f"(SELECT coalesce(sum(s.hi - s.lo), 0) FROM holders h JOIN {shelf} s ON s.parcel = h.parcel{more}"
        " WHERE h.key = given.key)"
    )


# A condition on `waiting`: a workflow that waits for its children holds its keys.
WITH_RUNNING_STEPS = " AND s.reason = 'children'"
# Not part of the statement that locks, because a statement that had to wait for the lock still sees its old snapshot.
# It has LIMIT 1 and not EXISTS, for which PostgreSQL may collect all waiting rows.
USE = Statement(
    "use_of_keys",
    f"SELECT given.key, {_used('queued')}, {_used('running')} + {_used('waiting', WITH_RUNNING_STEPS)},"
    " (SELECT 1 FROM waiting w WHERE w.gate = given.key AND w.wake_at IS NOT NULL LIMIT 1),"
    " (SELECT 1 FROM waiting w WHERE w.gate = given.key AND w.wake_at IS NULL LIMIT 1) FROM given",
)

# Run while the keys are locked. Executions that began to wait before this transaction took the lock are found here.
# Transactions that take the lock later find the freed room themselves.
WAITED_FOR = Statement(
    "keys_waited_for",
    "SELECT given.key FROM given WHERE EXISTS (SELECT 1 FROM waiting w WHERE w.gate = given.key AND w.wake_at IS NULL)",
)


def _first(shelf: str) -> str:
    return f"(SELECT min(s.lo) FROM {shelf} s WHERE s.parcel = t.parcel)"


HEADS = Statement(
    "heads_of_sequences",
    f"SELECT given.key, t.parcel, {_first('waiting')}, {_first('queued')}, {_first('running')},"
    " (SELECT CASE WHEN w.wake_at IS NULL THEN w.gate END FROM waiting w WHERE w.parcel = t.parcel"
    " ORDER BY w.lo LIMIT 1) FROM given JOIN tickets t ON t.key = given.key"
    " AND t.ticket = (SELECT min(x.ticket) FROM tickets x WHERE x.key = given.key)",
)
LAST = Statement(
    "last_tickets", "SELECT t.key, max(t.ticket) FROM given JOIN tickets t ON t.key = given.key GROUP BY t.key"
)
PLACED = Statement(
    "places_in_sequences",
    "SELECT t.key, t.parcel FROM given JOIN tickets t ON t.key = given.key AND t.parcel = given.parcel",
)
DROP_HOLDERS = Statement(
    "drop_holders",
    "DELETE FROM holders USING given WHERE holders.key = given.key AND holders.parcel = given.parcel"
    " AND NOT EXISTS (SELECT 1 FROM queued q WHERE q.parcel = given.parcel)"
    " AND NOT EXISTS (SELECT 1 FROM running r WHERE r.parcel = given.parcel)"
    " AND NOT EXISTS (SELECT 1 FROM waiting w WHERE w.parcel = given.parcel AND w.reason = 'children')",
)
DROP_TICKETS = Statement(
    "drop_tickets",
    "DELETE FROM tickets USING given WHERE tickets.key = given.key AND tickets.parcel = given.parcel"
    " AND NOT EXISTS (SELECT 1 FROM waiting w WHERE w.parcel = given.parcel)"
    " AND NOT EXISTS (SELECT 1 FROM queued q WHERE q.parcel = given.parcel)"
    " AND NOT EXISTS (SELECT 1 FROM running r WHERE r.parcel = given.parcel)",
)
_COLUMNS = f"{shelves.names(shelves.WAITING, 'w.')}, p.lane, p.keys"
# SKIP LOCKED leaves out rows that another transaction has locked. That transaction locks these keys next, and admits
# the executions that still wait.
AT_GATE = Statement(
    "waiting_at_keys",
    f"SELECT n.* FROM given CROSS JOIN LATERAL (SELECT {_COLUMNS} FROM waiting w JOIN parcels p ON p.id = w.parcel"
    " WHERE w.gate = given.key AND w.wake_at IS NULL ORDER BY w.gate, w.rank, w.parcel, w.lo LIMIT given.n"
    " FOR UPDATE OF w SKIP LOCKED) n",
)
AT_HEAD = Statement(
    "waiting_heads",
    f"SELECT {_COLUMNS} FROM given JOIN waiting w ON w.parcel = given.parcel AND w.lo = given.lo"
    " JOIN parcels p ON p.id = w.parcel FOR UPDATE OF w SKIP LOCKED",
)
LANE_AT = len(shelves.WAITING)
NO_KNOWN_KEYS: Mapping[UUID, str | None] = {}


class AdmittedItems(Struct):
    """Slices that waited for keys and were admitted to the queue."""

    queued: list[QueuedSlice] = []
    wake_at: Instant | None = None  # when the promoter must check other slices, which also need keys not locked here

    def lanes(self) -> dict[int, int]:
        """Return the lanes of the admitted slices with their least rank."""
        lanes: dict[int, int] = {}
        for queued in self.queued:
            lanes[queued.lane] = min(queued.rank, lanes.get(queued.lane, queued.rank))
        return lanes


class KeyGate:
    """Keys of limits and sequences that one transaction has locked, with their states."""

    def __init__(self, keys: Collection[str], now: Instant) -> None:
        self.keys = tuple(sorted(keys))
        self.now = now
        self.states: dict[str, KeyState] = {}
        self.admitted = AdmittedItems()

    def lock(self) -> Script[None]:
        """Lock all keys, in the order of their names; if they are more than MAX_LOCKS, take one lock for all keys."""
        if len(self.keys) > MAX_LOCKS:
            yield Lock((ALL_KEYS_LOCK,))
        else:
            yield Lock(self.keys, shared=ALL_KEYS_LOCK)  # guard: keys-lock

    def read_states(self) -> Script[None]:
        """Read the states of the keys, after they were locked."""
        limits = [key for key in self.keys if not is_sequence(key)]
        if limits:
            limits_by_key = yield from limits_of(limits)
            for key, queued, running, woken, waits in (yield ForEach(USE, KEY, [(key,) for key in limits])):
                room = limits_by_key[key].most - int(queued) - int(running)
                self.states[key] = KeyState(room=room, has_woken=bool(woken), has_waiters=bool(waits))
        yield from self._read_sequences([key for key in self.keys if is_sequence(key)])

    def _read_sequences(self, keys: Sequence[str]) -> Script[None]:
        """Read the first item of each sequence, which has the turn.

        Tickets of parcels that have no items left are deleted, so that the next parcel has the turn.
        """
        self.states |= {key: KeyState() for key in keys}
        left = keys
        while left:
            stale: list[tuple[str, UUID]] = []
            for key, parcel, waiting, queued, running, gate in (yield ForEach(HEADS, KEY, [(key,) for key in left])):
                firsts = [lo for lo in (waiting, queued, running) if lo is not None]
                if not firsts:
                    stale.append((key, parcel))
                    continue
                head = min(firsts)
                self.states[key] = KeyState(head=(parcel, head), has_waiters=head == waiting and gate == key)
            if stale:
                yield ForEach(DROP_TICKETS, HELD, stale)
            left = [key for key, _ in stale]

    def admit_waiting(self) -> Script[None]:
        """Admit slices that wait for the keys, by rank, until no key has room or no slice waits."""
        while True:
            rows = yield from self._next()
            if not rows:
                return
            entries = [_entry(row) for row in rows]
            passed = GateResult()
            for entry in entries:
                self._admit(entry, passed)
            yield shelves.take("waiting", [entry.slice for entry in entries])
            yield Together(
                [
                    shelves.put_waiting(passed.waiting),
                    shelves.put_queued(passed.queued),
                    put_holders(passed.occupied),
                ]
            )
            self.admitted.queued += passed.queued

    def _next(self) -> Script[list[Row]]:
        """Return the next slices that wait for a key with room, or that have the turn in a sequence."""
        rooms = [(key, min(MAX_ADMITTED, s.room)) for key, s in self.states.items() if s.has_waiters and s.room > 0]
        rows = list((yield ForEach(AT_GATE, (*KEY, ("n", "int")), rooms))) if rooms else []
        found = [row[LANE_AT - 2] for row in rows]
        for key, most in rooms:
            self.states[key].has_waiters = found.count(key) == most
        heads = [s.head for key, s in self.states.items() if is_sequence(key) and s.has_waiters and s.head is not None]
        for key in self.keys:
            if is_sequence(key):
                self.states[key].has_waiters = False
        if heads:
            rows += yield ForEach(AT_HEAD, shelves.SPAN, heads)
        return rows

    def _admit(self, entry: GateEntry, passed: GateResult) -> None:
        """Admit one entry.

        If it also has keys that are not locked here, it becomes due now instead, and the promoter passes it to `enter`
        with all its keys.
        """
        if self.states.keys() >= set(entry.keys.guarded):
            one = pass_gate([entry], self.states, self.now)
            passed.queued += one.queued
            passed.waiting += one.waiting
            passed.occupied |= one.occupied
            return
        waiting = entry.slice
        passed.waiting.append(structs.replace(waiting, wake_at=self.now))
        self.admitted.wake_at = self.now
        if waiting.gate is not None and not is_sequence(waiting.gate):
            self.states[waiting.gate].room -= waiting.hi - waiting.lo


def _entry(row: Row) -> GateEntry:
    waiting = shelves.waiting(row)
    return GateEntry(waiting, keys_of(row[LANE_AT + 1]), row[LANE_AT], waiting.rank)


def limits_of(keys: Iterable[str]) -> Script[dict[str, Limit]]:
    """Return the limit of each key, from the current version of its job.

    So an edit of a limit also applies to executions of earlier versions.
    """
    keys = list(keys)
    jobs = sorted({job_of(key) for key in keys})
    rows = yield ForEach(LIMITS_OF, (("job", "uuid"),), [(job,) for job in jobs])
    limits = {job: read_limits(spec) for job, spec in rows}
    return {key: limit_of(key, limits.get(job_of(key), ())) for key in keys}


def put_holders(held: Collection[tuple[str, UUID]]) -> Insert:
    """Return the Insert which records that parcels hold keys from now on: (key, parcel)."""
    return Insert("holders", HOLDERS, [(*one, 0) for one in sorted(held)], conflict="ON CONFLICT DO NOTHING")


def free(
    parcels: Collection[UUID], now: Instant, known: Mapping[UUID, str | None] = NO_KNOWN_KEYS
) -> Script[AdmittedItems]:
    """Free the keys of parcels whose items have left `queued` or `running` or have ended; admit waiting executions.

    A parcel that still has items on `queued` or `running` keeps its keys. `known` has the encoded keys of parcels that
    the caller has read in this transaction already; they are not read again.
    """
    keys = {parcel: keys_of(known[parcel]) for parcel in parcels if parcel in known}
    keys |= yield from _keys_of([parcel for parcel in parcels if parcel not in known])
    gate = KeyGate({key for mine in keys.values() for key in mine.guarded}, now)
    if not gate.keys:
        return gate.admitted
    yield from gate.lock()  # guard: free-locks-keys
    held = sorted((key, parcel) for parcel, mine in keys.items() for key in mine.limits)
    placed = sorted((mine.sequence, parcel) for parcel, mine in keys.items() if mine.sequence is not None)
    yield Together([ForEach(DROP_HOLDERS, HELD, held), ForEach(DROP_TICKETS, HELD, placed)])
    if placed or (yield ForEach(WAITED_FOR, KEY, [(key,) for key in gate.keys])):
        yield from gate.read_states()
        yield from gate.admit_waiting()
    return gate.admitted


def _keys_of(parcels: Collection[UUID]) -> Script[dict[UUID, EnvelopeKeys]]:
    if not parcels:
        return {}
    rows = yield ForEach(KEYS_OF, (("parcel", "uuid"),), [(parcel,) for parcel in sorted(parcels)])
    return {parcel: keys_of(keys) for parcel, keys in rows}


class Admission(Struct, frozen=True):
    """The result of `enter`."""

    passed: GateResult  # the entries that may be queued and those that must wait, for the caller to put on the shelves
    changes: list[Insert]  # rows of holders and tickets, for the caller to write with them
    also_admitted: AdmittedItems  # slices that waited before, and were admitted


def enter(
    entries: Sequence[GateEntry],
    now: Instant,
    *,
    fresh: bool = False,
    all_keys: Mapping[UUID, EnvelopeKeys] | None = None,
) -> Script[Admission]:
    """Decide which of these slices may be queued. If they are on a shelf, the caller takes them off it.

    `fresh` means that they were submitted just now; then slices that wait are admitted first. In this case `all_keys`
    has the keys of all submitted parcels, in the order of submission. They include parcels that are not in `entries`,
    because they are due later or wait for dependencies: these take their place in a sequence now, too.
    """
    taking = all_keys if all_keys is not None else {entry.slice.parcel: entry.keys for entry in entries}
    gate = KeyGate({key for keys in (*taking.values(), *(e.keys for e in entries)) for key in keys.guarded}, now)
    yield from gate.lock()  # guard: enter-locks-keys
    yield from gate.read_states()
    if fresh:
        yield from gate.admit_waiting()
    firsts = {entry.slice.parcel: entry.slice.lo for entry in reversed(entries)}
    tickets = yield from _append_to_sequences(gate, taking, firsts, fresh=fresh)
    passed = pass_gate(entries, gate.states, now, fresh=fresh)
    if not fresh:
        yield from gate.admit_waiting()
    return Admission(passed, [put_holders(passed.occupied), Insert("tickets", TICKETS, tickets)], gate.admitted)


def _append_to_sequences(
    gate: KeyGate, taking: Mapping[UUID, EnvelopeKeys], firsts: Mapping[UUID, int], *, fresh: bool
) -> Script[list[tuple[str, UUID, int]]]:
    """Return the tickets of parcels that have no place in their sequence yet: they are appended, in order.

    In an empty sequence, the first of them gets the turn.
    """
    wanted = [(keys.sequence, parcel) for parcel, keys in taking.items() if keys.sequence is not None]
    if not wanted:
        return []
    there = set() if fresh else {(key, parcel) for key, parcel in (yield ForEach(PLACED, HELD, wanted))}
    last: dict[str, int] = dict((yield ForEach(LAST, KEY, [(key,) for key in sorted({key for key, _ in wanted})])))
    tickets = []
    for key, parcel in wanted:
        if (key, parcel) in there:
            continue
        last[key] = last.get(key, 0) + 1
        tickets.append((key, parcel, last[key]))
        if gate.states[key].head is None:
            gate.states[key].head = (parcel, firsts.get(parcel, 0))
    return tickets
