"""Circuits: attempts of a job are counted, and too many failures open its circuit. Each circuit has a lock.

When a user opens a circuit, the transaction locks the whole table against claims, which select from it FOR KEY SHARE.
So it waits for claims under way, later claims see the open circuit, and no server starts an execution of the job after
the user's request was answered. When failures open a circuit, the table is not locked, so a claim under way may still
start an execution.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from uuid import UUID

import msgspec

from horae.env import Instant
from horae.model.admission.circuit import (
    NO_USER,
    AttemptCounts,
    Circuit,
    CircuitChange,
    CircuitStatus,
    ParcelAttempts,
    bucket_of,
    decide_change,
    gate_of,
    is_due,
    is_left_over,
)
from horae.model.admission.keys import keys_of
from horae.model.definitions.job import Spec
from horae.store.base import shelves
from horae.store.script import Fetch, ForEach, Insert, Lock, Row, Script, Statement

CircuitRef = tuple[UUID, str]  # a job, and the key of one of its circuits
_CIRCUIT: shelves.Columns = (("job", "uuid"), ("key", "text"))
COLUMNS = "c.job, c.key, c.state, c.era, c.since, c.until_at, c.forced, c.cause, c.changed_by, c.probes"
READ = Statement("circuits", f"SELECT {COLUMNS} FROM given JOIN circuits c ON c.job = given.job AND c.key = given.key")
KEYS = Statement("keys_of_circuits", "SELECT p.id, p.keys FROM given JOIN parcels p ON p.id = given.parcel")
SHUT = Statement("shut_circuits", f"SELECT {COLUMNS} FROM circuits c WHERE c.state <> 'closed' ORDER BY c.job, c.key")
SPECS = Statement(
    "specs_of_circuits",
    "SELECT j.id, j.state, v.spec FROM given JOIN jobs j ON j.id = given.job"
    " JOIN job_versions v ON v.job = j.id AND v.version = j.version",
)
SUMS = Statement(
    "circuit_sums",
    "SELECT given.job, given.key, coalesce(sum(n.ok), 0), coalesce(sum(n.failed), 0) FROM given"
    " JOIN circuit_counts n ON n.job = given.job AND n.key = given.key AND n.era = given.era"
    " AND n.bucket >= given.since GROUP BY given.job, given.key",
)
_COUNTS: shelves.Columns = (
    *_CIRCUIT, ("era", "int"), ("bucket", "bigint"), ("server", "uuid"), ("ok", "int"), ("failed", "int"),
)  # fmt: skip
_ADD = (
    "ON CONFLICT (job, key, era, bucket, server) DO UPDATE SET ok = circuit_counts.ok + excluded.ok,"
    " failed = circuit_counts.failed + excluded.failed"
)
_ROW: shelves.Columns = (
    *_CIRCUIT, ("state", "text"), ("era", "int"), ("since", "bigint"), ("until_at", "bigint"), ("forced", "bool"),
    ("cause", "text"), ("changed_by", "text"), ("probes", "text"),
)  # fmt: skip
_PUT = "ON CONFLICT (job, key) DO UPDATE SET " + ", ".join(f"{name} = excluded.{name}" for name, _ in _ROW[2:])
_CHANGE: shelves.Columns = (
    *_CIRCUIT, ("era", "int"), ("at", "bigint"), ("state", "text"), ("forced", "bool"), ("cause", "text"),
    ("changed_by", "text"),
)  # fmt: skip


def count_attempts(server: UUID, attempts: Sequence[ParcelAttempts], now: Instant) -> Script[list[CircuitStatus]]:
    """Count attempts that have ended, decide whether they change circuits, and return the changed circuits."""
    settings = yield from settings_of({one.job for one in attempts})
    counted = yield from _counted([one for one in attempts if one.job in settings], settings)
    circuits = sorted(counted)
    if not circuits:
        return []
    yield locked(circuits)  # guard: circuit-feed-locks
    states = yield from states_of(circuits)
    rows = [
        (*one, states[one].era, bucket_of(settings[one[0]], now), server, counted[one].ok, counted[one].failed)
        for one in circuits
    ]
    yield Insert("circuit_counts", _COUNTS, rows, conflict=_ADD)
    doubtful = [one for one in circuits if counted[one].failed or states[one].state == "half-open"]
    sums = yield from sums_of([states[one] for one in doubtful], settings, now)
    changes = [
        (states[one], change)
        for one in doubtful
        if (change := decide_change(settings[one[0]], states[one], sums.get(one, AttemptCounts()), now)) is not None
    ]
    return (yield from _apply(changes, now))


def _counted(
    attempts: Sequence[ParcelAttempts], settings: Mapping[UUID, Circuit]
) -> Script[dict[CircuitRef, AttemptCounts]]:
    """Sum up attempts by circuit.

    The keys of parcels are read only for jobs that have a circuit for each value of a key.
    """
    keyed = {one.parcel for one in attempts if settings[one.job].key is not None}
    keys = (yield from keys_in(keyed)) if keyed else {}
    counted: dict[CircuitRef, AttemptCounts] = {}
    for one in attempts:
        circuit = one.job, keys.get(one.parcel, "")
        before = counted.get(circuit, AttemptCounts())
        counted[circuit] = AttemptCounts(before.ok + one.ok, before.failed + one.failed)
    return counted


def keys_in(parcels: Collection[UUID]) -> Script[dict[UUID, str]]:
    """Return the circuit key of each parcel; an empty key means the circuit of the whole job."""
    rows = yield ForEach(KEYS, (("parcel", "uuid"),), [(parcel,) for parcel in sorted(parcels)])
    return {parcel: keys_of(keys).circuit or "" for parcel, keys in rows}


def sums_of(
    circuits: Iterable[CircuitStatus], settings: Mapping[UUID, Circuit], now: Instant
) -> Script[dict[CircuitRef, AttemptCounts]]:
    """Return the counts of attempts for circuits: within the circuit's window, and since its last change of state."""
    given = [
        (s.job, s.key, s.era, bucket_of(settings[s.job], now - settings[s.job].window))
        for s in circuits
        if s.job in settings
    ]
    columns: shelves.Columns = (*_CIRCUIT, ("era", "int"), ("since", "bigint"))
    rows = (yield ForEach(SUMS, columns, given)) if given else []
    return {(job, key): AttemptCounts(int(ok), int(failed)) for job, key, ok, failed in rows}


def settings_of(jobs: Collection[UUID]) -> Script[dict[UUID, Circuit]]:
    """Return the circuit settings of jobs at their current versions, without deleted jobs and jobs that have none."""
    rows = (yield ForEach(SPECS, (("job", "uuid"),), [(job,) for job in sorted(jobs)])) if jobs else []
    found = {job: msgspec.json.decode(spec, type=Spec).circuit for job, state, spec in rows if state != "deleted"}
    return {job: circuit for job, circuit in found.items() if circuit is not None}


def locked(circuits: Iterable[CircuitRef]) -> Lock:
    return Lock(names=tuple(sorted(gate_of(*one) for one in circuits)))


def states_of(circuits: Collection[CircuitRef]) -> Script[dict[CircuitRef, CircuitStatus]]:
    """Return the states of circuits; a circuit without a row is closed."""
    rows = yield ForEach(READ, _CIRCUIT, sorted(circuits))
    found = {(row[0], row[1]): read(row) for row in rows}
    return {one: found.get(one) or CircuitStatus(job=one[0], key=one[1]) for one in circuits}


def read(row: Row) -> CircuitStatus:
    job, key, state, era, since, until, forced, cause, by, probes = row
    return CircuitStatus(
        job=job, key=key, state=state, era=era, since=since, until=until, forced=bool(forced), cause=cause, by=by,
        probes=read_probes(probes),
    )  # fmt: skip


def read_probes(probes: str) -> tuple[UUID, ...]:
    return msgspec.json.decode(probes, type=tuple[UUID, ...])


def _apply(
    changes: Sequence[tuple[CircuitStatus, CircuitChange]], now: Instant, *, forced: bool = False, by: str = NO_USER
) -> Script[list[CircuitStatus]]:
    """Write the new states of circuits and record the changes."""
    if not changes:
        return []
    after = [
        CircuitStatus(
            job=s.job, key=s.key, state=change.state, era=s.era + 1, since=now, until=change.until, forced=forced,
            cause=change.cause, by=by,
        )
        for s, change in changes
    ]  # fmt: skip
    yield put(after)
    rows = [(s.job, s.key, s.era, now, s.state, s.forced, s.cause, s.by) for s in after]
    yield Insert("circuit_changes", _CHANGE, rows, conflict="ON CONFLICT DO NOTHING")
    return after


def put(circuits: Iterable[CircuitStatus]) -> Insert:
    rows = [
        (s.job, s.key, s.state, s.era, s.since, s.until, s.forced, s.cause, s.by, _json(s.probes)) for s in circuits
    ]
    return Insert("circuits", _ROW, rows, conflict=_PUT)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def force(
    circuit: CircuitRef, change: CircuitChange | None, by: str, now: Instant, cause: str = ""
) -> Script[CircuitStatus]:
    """Open or close a circuit for a user; it stays so until a user changes it again.

    Without `change`, close it and count attempts from zero, so that failures can open it again.
    """
    yield locked([circuit])  # guard: circuit-force-locks
    before = (yield from states_of([circuit]))[circuit]
    new = change or CircuitChange("closed", cause)
    if new.state == "open":
        yield Lock(table="circuits")  # guard: circuit-locks-claims
    (after,) = yield from _apply([(before, new)], now, forced=change is not None, by=by)
    return after


def advance(now: Instant) -> Script[list[CircuitStatus]]:
    """Make open circuits half-open when their time is over, and close circuits that their jobs no longer have."""
    found = [read(row) for row in (yield Fetch(SHUT))]
    settings = yield from settings_of({s.job for s in found})
    due = [(s.job, s.key) for s in found if is_due(s, now) or is_left_over(settings.get(s.job), s)]
    if not due:
        return []
    yield locked(due)  # guard: circuit-turn-locks
    changes = []
    for s in (yield from states_of(due)).values():
        if s.blocks_starts and is_left_over(settings.get(s.job), s):
            changes.append((s, CircuitChange("closed", "The job does not have this circuit any more.")))
        elif is_due(s, now):
            changes.append((s, CircuitChange("half-open", "Its time is over: probes are tried.")))
    return (yield from _apply(changes, now))
