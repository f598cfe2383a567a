"""The gates of circuits: claims set aside what an open one keeps from starting, and it is let go later.

What is let go is due at once: whatever else holds it, it meets on its way.
"""

from collections.abc import Collection, Sequence
from uuid import UUID

from msgspec import structs

from horae.env import Instant
from horae.model.admission.circuit import CircuitStatus, gate_of, read_gate
from horae.model.admission.keys import CIRCUIT
from horae.model.base.ids import execution_id, index_of, parcel_of
from horae.model.executions.slice import Queued, Waiting, part
from horae.store.admission.circuits import CircuitRef, keys_in, locked, put, read_probes, settings_of, states_of
from horae.store.base import shelves
from horae.store.script import Fetch, ForEach, Script, Statement

_SHUT = (
    "SELECT c.job, c.key, c.state, c.probes FROM given JOIN circuits c ON c.job = given.job WHERE c.state <> 'closed'"
)
SHUT = Statement("shut_circuits_of_jobs", f"{_SHUT} FOR KEY SHARE OF c")
SEEN_SHUT = Statement("circuits_seen_shut", _SHUT)  # by who starts nothing, and keeps nobody from opening one
# One probe per gate that has something, however much waits there.
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
# One that was set aside again, joined with others on its way, is no probe any more.
LIVE = Statement(
    "live_probes",
    f"SELECT given.parcel, given.item FROM given WHERE {shelves.is_live('given.parcel', 'given.item')}"
    " AND NOT EXISTS (SELECT 1 FROM waiting w WHERE w.parcel = given.parcel AND w.lo <= given.item"
    " AND w.hi > given.item AND w.reason = 'circuit')",
)


def shut_out(picked: Sequence[Queued], look: Statement = SHUT) -> Script[list[Waiting]]:
    """Of slices that were picked, those that an open circuit keeps from starting, as they wait at its gate.

    Slices of jobs without a circuit cost nothing here.
    """
    marked = [s for s in picked if s.flags & CIRCUIT]  # gate: circuit
    if not marked:  # gate: none
        return []
    rows = yield ForEach(look, (("job", "uuid"),), [(job,) for job in sorted({s.job for s in marked})])
    shut = {
        (job, key): read_probes(probes) if state == "half-open" else ()  # gate: circuit
        for job, key, state, probes in rows
    }
    if not shut:  # gate: none
        return []
    jobs = {job for job, _ in shut}
    mine = [s for s in marked if s.job in jobs]  # gate: circuit
    keys = yield from keys_in({s.parcel for s in mine})
    return [
        _at_gate(s, keys[s.parcel])
        for s in mine
        if (s.job, keys[s.parcel]) in shut and not _probes(s, shut[s.job, keys[s.parcel]])  # gate: circuit
    ]


def _probes(slice: Queued, probes: Collection[UUID]) -> bool:
    """Whether a slice is made of probes; neighbours may have been joined on their way."""
    return slice.hi - slice.lo <= len(probes) and all(  # guard: circuit-probes-only
        execution_id(slice.parcel, item) in probes for item in range(slice.lo, slice.hi)
    )


def _at_gate(s: Queued, key: str) -> Waiting:
    return Waiting(
        parcel=s.parcel, lo=s.lo, hi=s.hi, job=s.job, queue=s.queue, namespace=s.namespace, attempt=s.attempt,
        failures=s.failures, losses=s.losses, alone=s.alone, width=s.width, flags=s.flags, reason="circuit",
        gate=gate_of(s.job, key), rank=s.rank,
    )  # fmt: skip


def gates() -> Script[list[CircuitRef]]:
    """Circuits before which something waits."""
    rows = yield Fetch(GATES)
    return [read_gate(row[0]) for row in rows]


def release_waiting(which: CircuitRef, limit: int, now: Instant) -> Script[int]:
    """Let what waits at a circuit's gate go on: all of a closed one, some at a time; of a half-open one its probes.

    How many executions were let go.
    """
    yield locked([which])  # guard: circuit-probes-lock
    standing = (yield from states_of([which]))[which]
    if standing.state == "open":
        return 0
    if standing.state == "half-open":
        return (yield from _let_probes_go(standing, now))
    rows = yield Fetch(WAITERS, (gate_of(*which), limit))
    slices = [shelves.waiting(row) for row in rows]
    yield from _due_at_once(slices, now)
    return sum(s.hi - s.lo for s in slices)


def _let_probes_go(standing: CircuitStatus, now: Instant) -> Script[int]:
    settings = yield from settings_of({standing.job})
    if standing.job not in settings:
        return 0
    given = [(parcel_of(id), index_of(id)) for id in standing.probes]
    live = {execution_id(*row) for row in ((yield ForEach(LIVE, shelves.ITEM, given)) if given else [])}
    wanted = settings[standing.job].probes - len(live)
    if wanted <= 0:
        return 0
    rows = yield Fetch(WAITERS, (gate_of(standing.job, standing.key), wanted))
    probes: list[Waiting] = []
    rests: list[Waiting] = []
    for row in rows:
        slice = shelves.waiting(row)
        first = min(slice.hi, slice.lo + wanted - len(probes))
        probes += [part(slice, item, item + 1) for item in range(slice.lo, first)]
        if first < slice.hi:
            rests.append(part(slice, first, slice.hi))
    yield shelves.take("waiting", [shelves.waiting(row) for row in rows])
    yield shelves.put_waiting([*(_woken(s, now) for s in probes), *rests])
    released = (*sorted(live), *(execution_id(s.parcel, s.lo) for s in probes))
    yield put([structs.replace(standing, probes=released)])
    return len(probes)


def _due_at_once(slices: Sequence[Waiting], now: Instant) -> Script[None]:
    if slices:
        yield shelves.take("waiting", slices)
        yield shelves.put_waiting([_woken(s, now) for s in slices])


def _woken(slice: Waiting, now: Instant) -> Waiting:
    return structs.replace(slice, reason="delay", wake_at=now, gate=None)
