"""The gates of circuits: a claim moves executions that an open circuit keeps from starting to `waiting`.

They are released when the circuit closes, and some as probes when it is half-open. A released execution is due at once,
and the promoter then lets it pass all other gates.
"""

from collections.abc import Collection, Sequence
from uuid import UUID

from msgspec import structs

from horae.env import Instant
from horae.model.admission.circuit import CircuitStatus, gate_of, read_gate
from horae.model.admission.keys import CIRCUIT
from horae.model.base.ids import execution_id, index_of, parcel_of
from horae.model.executions.slice import QueuedSlice, WaitingSlice, part
from horae.store.admission.circuits import CircuitRef, keys_in, locked, put, read_probes, settings_of, states_of
from horae.store.base import shelves
from horae.store.script import Fetch, ForEach, Script, Statement

_SHUT = (
    "SELECT c.job, c.key, c.state, c.probes FROM given JOIN circuits c ON c.job = given.job WHERE c.state <> 'closed'"
)
SHUT = Statement("shut_circuits_of_jobs", f"{_SHUT} FOR KEY SHARE OF c")
SEEN_SHUT = Statement("circuits_seen_shut", _SHUT)  # for readers that start nothing: takes no lock
# A skip scan: it jumps from one gate to the next by an index, so its cost does not depend on the number of executions.
GATES = Statement(
    "circuit_gates",
    "WITH RECURSIVE gates(gate) AS (SELECT min(gate) FROM waiting WHERE reason = 'circuit' UNION ALL"
    " SELECT (SELECT min(w.gate) FROM waiting w WHERE w.reason = 'circuit' AND w.gate > gates.gate) FROM gates"
    " WHERE gates.gate IS NOT NULL) SELECT gate FROM gates WHERE gate IS NOT NULL LIMIT 1000",
)
WAITERS = Statement(
    "waiting_at_circuit",
    f"SELECT {shelves.names(shelves.WAITING)} FROM waiting WHERE reason = 'circuit' AND gate = $1"
    " ORDER BY gate, rank, parcel, lo LIMIT $2 FOR UPDATE SKIP LOCKED",
)
# A released probe may be merged with neighbours that are no probes. Then a claim moves it back to the gate, so it is
# not a probe any more.
LIVE = Statement(
    "live_probes",
    f"SELECT given.parcel, given.item FROM given WHERE {shelves.is_live('given.parcel', 'given.item')}"
    " AND NOT EXISTS (SELECT 1 FROM waiting w WHERE w.parcel = given.parcel AND w.lo <= given.item"
    " AND w.hi > given.item AND w.reason = 'circuit')",
)


def shut_out(picked: Sequence[QueuedSlice], statement: Statement = SHUT) -> Script[list[WaitingSlice]]:
    """Return the waiting slices that replace those picked slices which an open circuit keeps from starting.

    The flags of slices tell which jobs have a circuit; for others nothing is read.
    """
    marked = [s for s in picked if s.flags & CIRCUIT]  # gate: circuit
    if not marked:  # gate: none
        return []
    rows = yield ForEach(statement, (("job", "uuid"),), [(job,) for job in sorted({s.job for s in marked})])
    shut = {
        (job, key): read_probes(probes) if state == "half-open" else ()  # gate: circuit
        for job, key, state, probes in rows
    }
    if not shut:  # gate: none
        return []
    jobs = {job for job, _ in shut}
    affected = [s for s in marked if s.job in jobs]  # gate: circuit
    keys = yield from keys_in({s.parcel for s in affected})
    return [
        _at_gate(s, keys[s.parcel])
        for s in affected
        if (s.job, keys[s.parcel]) in shut and not _probes(s, shut[s.job, keys[s.parcel]])  # gate: circuit
    ]


def _probes(queued: QueuedSlice, probes: Collection[UUID]) -> bool:
    """Return whether all items of a slice are probes; neighbours that are no probes may have been merged with them."""
    return queued.hi - queued.lo <= len(probes) and all(  # guard: circuit-probes-only
        execution_id(queued.parcel, item) in probes for item in range(queued.lo, queued.hi)
    )


def _at_gate(s: QueuedSlice, key: str) -> WaitingSlice:
    return WaitingSlice(
        parcel=s.parcel, lo=s.lo, hi=s.hi, job=s.job, queue=s.queue, namespace=s.namespace, attempt=s.attempt,
        failures=s.failures, losses=s.losses, alone=s.alone, width=s.width, flags=s.flags, reason="circuit",
        gate=gate_of(s.job, key), rank=s.rank,
    )  # fmt: skip


def gates() -> Script[list[CircuitRef]]:
    """Return circuits that keep executions waiting, at most 1000."""
    rows = yield Fetch(GATES)
    return [read_gate(row[0]) for row in rows]


def release_waiting(circuit: CircuitRef, limit: int, now: Instant) -> Script[int]:
    """Release executions that wait at a circuit's gate, and return their number.

    At most `limit` slices are released if the circuit is closed, its probes if it is half-open, none if it is open.
    """
    yield locked([circuit])  # guard: circuit-probes-lock
    status = (yield from states_of([circuit]))[circuit]
    if status.state == "open":
        return 0
    if status.state == "half-open":
        return (yield from _release_probes(status, now))
    rows = yield Fetch(WAITERS, (gate_of(*circuit), limit))
    slices = [shelves.waiting(row) for row in rows]
    yield from _due_at_once(slices, now)
    return sum(s.hi - s.lo for s in slices)


def _release_probes(status: CircuitStatus, now: Instant) -> Script[int]:
    settings = yield from settings_of({status.job})
    if status.job not in settings:
        return 0
    given = [(parcel_of(probe), index_of(probe)) for probe in status.probes]
    live = {execution_id(*row) for row in ((yield ForEach(LIVE, shelves.ITEM, given)) if given else [])}
    wanted = settings[status.job].probes - len(live)
    if wanted <= 0:
        return 0
    rows = yield Fetch(WAITERS, (gate_of(status.job, status.key), wanted))
    probes: list[WaitingSlice] = []
    rests: list[WaitingSlice] = []
    for row in rows:
        waiting = shelves.waiting(row)
        first = min(waiting.hi, waiting.lo + wanted - len(probes))
        probes += [part(waiting, item, item + 1) for item in range(waiting.lo, first)]
        if first < waiting.hi:
            rests.append(part(waiting, first, waiting.hi))
    yield shelves.take("waiting", [shelves.waiting(row) for row in rows])
    yield shelves.put_waiting([*(_woken(s, now) for s in probes), *rests])
    released = (*sorted(live), *(execution_id(s.parcel, s.lo) for s in probes))
    yield put([structs.replace(status, probes=released)])
    return len(probes)


def _due_at_once(slices: Sequence[WaitingSlice], now: Instant) -> Script[None]:
    if slices:
        yield shelves.take("waiting", slices)
        yield shelves.put_waiting([_woken(s, now) for s in slices])


def _woken(waiting: WaitingSlice, now: Instant) -> WaitingSlice:
    return structs.replace(waiting, reason="delay", wake_at=now, gate=None)
