"""Holders: what keys let into the queue, and who comes next when somebody leaves.

A key of a limit is held by the parcels that have items on `queued` or `running`; its use is counted there, under its
lock, in a statement of its own. A sequence has the parcels in the order in which they were submitted: the turn is its
first item that has not ended, wherever that lies, so one that waits to be tried again keeps its turn.

Two functions are all there is. Whatever wants to be queued under keys comes through `enter`; whatever takes items off
`queued` or `running`, or ends them, calls `free` with their parcels in the same transaction, and the next go in. What
has no business with locks (a fire, a start of a dependent) puts its parcels on `waiting` for the promoter to enter.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from uuid import UUID

from msgspec import Struct, structs

from horae.env import Instant
from horae.model.admission.key_gate import GateEntry, GateResult, KeyState, pass_gate
from horae.model.admission.keys import EnvelopeKeys, keys_of
from horae.model.admission.limits import Limit, is_sequence, job_of, limit_of
from horae.model.executions.slice import Queued
from horae.store.base import shelves
from horae.store.base.specs import read_limits
from horae.store.script import ForEach, Insert, Lock, Row, Script, Statement, Together

KEY: shelves.Columns = (("key", "text"),)
HELD: shelves.Columns = (("key", "text"), ("parcel", "uuid"))
HOLDERS: shelves.Columns = (*HELD, ("lo", "int"))
TICKETS: shelves.Columns = (*HELD, ("ticket", "bigint"))
ALL = "limits"  # the lock of whoever has too many keys to lock each
MOST_LOCKS = 400  # PostgreSQL has some thousands for all transactions together
MOST_PULLED = 200  # slices in one look at a gate
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


# A workflow keeps its keys while its steps run.
UNDER_WAY = " AND s.reason = 'children'"
# After the lock, in a statement of its own: one that waited for the lock has its old snapshot of the shelves.
# The first row of each, where a bare EXISTS may have PostgreSQL gather all that waits.
USE = Statement(
    "use_of_keys",
    f"SELECT given.key, {_used('queued')}, {_used('running')} + {_used('waiting', UNDER_WAY)},"
    " (SELECT 1 FROM waiting w WHERE w.gate = given.key AND w.wake_at IS NOT NULL LIMIT 1),"
    " (SELECT 1 FROM waiting w WHERE w.gate = given.key AND w.wake_at IS NULL LIMIT 1) FROM given",
)

# Under the lock too: whoever comes to wait comes before, and is seen, or after, and sees the room.
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
# Nobody waits for a row of this shelf: whoever holds it comes to these keys next, and lets in who is left.
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
NOTHING: Mapping[UUID, str | None] = {}


class AdmittedItems(Struct):
    """What went into the queue, and when to look at what was woken."""

    queued: list[Queued] = []
    wake_at: Instant | None = None

    def lanes(self) -> dict[int, int]:
        """The lanes that got something, with the least rank."""
        lanes: dict[int, int] = {}
        for slice in self.queued:
            lanes[slice.lane] = min(slice.rank, lanes.get(slice.lane, slice.rank))
        return lanes


class KeyGate:
    """Keys that are locked, and how they stand."""

    def __init__(self, keys: Collection[str], now: Instant) -> None:
        self.keys = tuple(sorted(keys))
        self.now = now
        self.states: dict[str, KeyState] = {}
        self.entered = AdmittedItems()

    def lock(self) -> Script[None]:
        """Lock all keys, in one order; very many by one lock that keeps all others out."""
        if len(self.keys) > MOST_LOCKS:
            yield Lock((ALL,))
        else:
            yield Lock(self.keys, shared=ALL)  # guard: keys-lock

    def read_states(self) -> Script[None]:
        """Learn how the keys stand now."""
        limits = [key for key in self.keys if not is_sequence(key)]
        if limits:
            said = yield from limits_of(limits)
            for key, queued, running, woken, waits in (yield ForEach(USE, KEY, [(key,) for key in limits])):
                room = said[key].most - int(queued) - int(running)
                self.states[key] = KeyState(room=room, woken=bool(woken), waits=bool(waits))
        yield from self._look_at_sequences([key for key in self.keys if is_sequence(key)])

    def _look_at_sequences(self, keys: Sequence[str]) -> Script[None]:
        """A parcel of which nothing is left has no place any more: the next has the turn."""
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
                self.states[key] = KeyState(head=(parcel, head), waits=head == waiting and gate == key)
            if stale:
                yield ForEach(DROP_TICKETS, HELD, stale)
            left = [key for key, _ in stale]

    def admit_waiting(self) -> Script[None]:
        """Let in who waits, by rank, as far as there is room."""
        while True:
            rows = yield from self._next()
            if not rows:
                return
            came = [_entry(row) for row in rows]
            passed = GateResult()
            for entry in came:
                self._take_in(entry, passed)
            yield shelves.take("waiting", [entry.slice for entry in came])
            yield Together(
                [
                    shelves.put_waiting(passed.waiting),
                    shelves.put_queued(passed.queued),
                    put_holders(passed.held),
                ]
            )
            self.entered.queued += passed.queued

    def _next(self) -> Script[list[Row]]:
        """Who is next at the keys that have room."""
        rooms = [(key, min(MOST_PULLED, s.room)) for key, s in self.states.items() if s.waits and s.room > 0]
        rows = list((yield ForEach(AT_GATE, (*KEY, ("n", "int")), rooms))) if rooms else []
        found = [row[LANE_AT - 2] for row in rows]
        for key, most in rooms:
            self.states[key].waits = found.count(key) == most
        heads = [s.head for key, s in self.states.items() if is_sequence(key) and s.waits and s.head is not None]
        for key in self.keys:
            if is_sequence(key):
                self.states[key].waits = False
        if heads:
            rows += yield ForEach(AT_HEAD, shelves.SPAN, heads)
        return rows

    def _take_in(self, entry: GateEntry, passed: GateResult) -> None:
        """Let one in. One that has other keys too, which are not locked here, is sent to enter by itself."""
        if self.states.keys() >= set(entry.keys.guarded):
            one = pass_gate([entry], self.states, self.now)
            passed.queued += one.queued
            passed.waiting += one.waiting
            passed.held |= one.held
            return
        slice = entry.slice
        passed.waiting.append(structs.replace(slice, wake_at=self.now))
        self.entered.wake_at = self.now
        if slice.gate is not None and not is_sequence(slice.gate):
            self.states[slice.gate].room -= slice.hi - slice.lo


def _entry(row: Row) -> GateEntry:
    slice = shelves.waiting(row)
    return GateEntry(slice, keys_of(row[LANE_AT + 1]), row[LANE_AT], slice.rank)


def limits_of(keys: Iterable[str]) -> Script[dict[str, Limit]]:
    """What the jobs of these keys say of them now: an edit acts on all versions."""
    keys = list(keys)
    jobs = sorted({job_of(key) for key in keys})
    rows = yield ForEach(LIMITS_OF, (("job", "uuid"),), [(job,) for job in jobs])
    said = {job: read_limits(spec) for job, spec in rows}
    return {key: limit_of(key, said.get(job_of(key), ())) for key in keys}


def put_holders(held: Collection[tuple[str, UUID]]) -> Insert:
    """Parcels that hold keys from now on."""
    return Insert("holders", HOLDERS, [(*one, 0) for one in sorted(held)], conflict="ON CONFLICT DO NOTHING")


def free(parcels: Collection[UUID], now: Instant, known: Mapping[UUID, str | None] = NOTHING) -> Script[AdmittedItems]:
    """Items of these parcels have left the queue, or have ended: whoever waited for their keys goes in.

    What parcels stand under never changes, so what is `known` of them is not read again.
    """
    keys = {parcel: keys_of(known[parcel]) for parcel in parcels if parcel in known}
    keys |= yield from _keys_of([parcel for parcel in parcels if parcel not in known])
    gate = KeyGate({key for mine in keys.values() for key in mine.guarded}, now)
    if not gate.keys:
        return gate.entered
    yield from gate.lock()  # guard: free-locks-keys
    held = sorted((key, parcel) for parcel, mine in keys.items() for key in mine.limits)
    placed = sorted((mine.sequence, parcel) for parcel, mine in keys.items() if mine.sequence is not None)
    yield Together([ForEach(DROP_HOLDERS, HELD, held), ForEach(DROP_TICKETS, HELD, placed)])
    if placed or (yield ForEach(WAITED_FOR, KEY, [(key,) for key in gate.keys])):
        yield from gate.read_states()
        yield from gate.admit_waiting()
    return gate.entered


def _keys_of(parcels: Collection[UUID]) -> Script[dict[UUID, EnvelopeKeys]]:
    if not parcels:
        return {}
    rows = yield ForEach(KEYS_OF, (("parcel", "uuid"),), [(parcel,) for parcel in sorted(parcels)])
    return {parcel: keys_of(keys) for parcel, keys in rows}


class Admission(Struct, frozen=True):
    """Where entries go, for the caller to write; and who else went in, or was woken, because of them."""

    passed: GateResult
    changes: list[Insert]
    entered: AdmittedItems


def enter(
    entries: Sequence[GateEntry],
    now: Instant,
    *,
    fresh: bool = False,
    places: Mapping[UUID, EnvelopeKeys] | None = None,
) -> Script[Admission]:
    """Decide which of these slices may be queued; they lie on no shelf, or on one that the caller takes them off.

    Those that are `fresh` were submitted just now; of these, `places` are all that take a place in a sequence, in
    their order, also the parcels that do not come to the gate yet.
    """
    taking = places if places is not None else {entry.slice.parcel: entry.keys for entry in entries}
    gate = KeyGate({key for keys in (*taking.values(), *(e.keys for e in entries)) for key in keys.guarded}, now)
    yield from gate.lock()  # guard: enter-locks-keys
    yield from gate.read_states()
    if fresh:
        yield from gate.admit_waiting()
    firsts = {entry.slice.parcel: entry.slice.lo for entry in reversed(entries)}
    tickets = yield from _take_places(gate, taking, firsts, fresh=fresh)
    passed = pass_gate(entries, gate.states, now, fresh=fresh)
    if not fresh:
        yield from gate.admit_waiting()
    return Admission(passed, [put_holders(passed.held), Insert("tickets", TICKETS, tickets)], gate.entered)


def _take_places(
    gate: KeyGate, taking: Mapping[UUID, EnvelopeKeys], firsts: Mapping[UUID, int], *, fresh: bool
) -> Script[list[tuple[str, UUID, int]]]:
    """Give parcels their places in sequences, those that have none; the first of all has the turn."""
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
