"""Reads of circuits for users, and the deletion of old rows."""

from collections.abc import Collection
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.model.admission.circuit import CircuitState, CircuitStatus, gate_of, read_gate
from horae.store.admission.circuits import COLUMNS, SHUT, CircuitRef, read, states_of
from horae.store.script import Among, Fetch, ForEach, Script, Statement

OWNERS = Statement("owners_of_circuits", "SELECT id, namespace, name FROM jobs WHERE id = ANY($1)")
OF_JOB = Statement(
    "circuits_of_job", f"SELECT {COLUMNS} FROM circuits c WHERE c.job = $1 ORDER BY c.since DESC LIMIT $2"
)
OF_NAMESPACE = Statement(
    "shut_circuits_of_namespace",
    f"SELECT {COLUMNS}, j.name FROM circuits c JOIN jobs j ON j.id = c.job WHERE j.namespace = $1"
    " AND c.state <> 'closed' ORDER BY j.name, c.key LIMIT $2",
)
COUNT_WAITERS = Statement(
    "count_at_circuit",
    "SELECT w.gate, sum(w.hi - w.lo) FROM given JOIN waiting w ON w.gate = given.gate WHERE w.reason = 'circuit'"
    " GROUP BY w.gate",
)
CHANGES = Statement(
    "changes_of_circuits",
    "SELECT c.key, c.era, c.at, c.state, c.forced, c.cause, c.changed_by FROM circuit_changes c WHERE c.job = $1"
    " ORDER BY c.at DESC, c.era DESC LIMIT $2",
)
FORGET_COUNTS = Statement("forget_circuit_counts", "DELETE FROM circuit_counts WHERE bucket < $1")
FORGET_CHANGES = Statement("forget_circuit_changes", "DELETE FROM circuit_changes WHERE at < $1")
FORGET_CLOSED = Statement(
    "forget_closed_circuits", "DELETE FROM circuits WHERE state = 'closed' AND NOT forced AND since < $1"
)


class RecordedChange(Struct, frozen=True):
    """A recorded change of a circuit's state."""

    key: str
    era: int
    at: Instant
    state: CircuitState
    forced: bool
    cause: str
    by: str


def owners(jobs: Collection[UUID]) -> Script[dict[UUID, tuple[int, str]]]:
    """Return the namespaces and names of jobs, deleted ones included."""
    rows = yield Among(OWNERS, sorted(jobs))
    return {row[0]: (row[1], row[2]) for row in rows}


def shut() -> Script[list[CircuitStatus]]:
    """Return all circuits that are not closed."""
    return [read(row) for row in (yield Fetch(SHUT))]


def shut_in(namespace: int, limit: int) -> Script[list[tuple[CircuitStatus, str]]]:
    """Return circuits of a namespace that are not closed, each with the name of its job."""
    return [(read(row[:-1]), row[-1]) for row in (yield Fetch(OF_NAMESPACE, (namespace, limit)))]


def of_job(job: UUID, limit: int) -> Script[list[CircuitStatus]]:
    """Return circuits of a job that have changed their state, the latest change first; others have no row."""
    return [read(row) for row in (yield Fetch(OF_JOB, (job, limit)))]


def status_of(circuit: CircuitRef) -> Script[CircuitStatus]:
    """Return the status of a circuit."""
    return (yield from states_of([circuit]))[circuit]


def changes_of(job: UUID, limit: int) -> Script[list[RecordedChange]]:
    """Return the changes of a job's circuits, the newest first."""
    return [RecordedChange(key, era, at, state, bool(forced), cause, by) for key, era, at, state, forced, cause, by in (
        yield Fetch(CHANGES, (job, limit))
    )]  # fmt: skip


def waiting_at(circuits: Collection[CircuitRef]) -> Script[dict[CircuitRef, int]]:
    """Count the executions that wait at the gates of circuits."""
    rows = yield ForEach(COUNT_WAITERS, (("gate", "text"),), [(gate_of(*one),) for one in sorted(circuits)])
    return {read_gate(gate): int(count) for gate, count in rows}


def forget(counts: Instant, changes: Instant) -> Script[None]:
    """Delete counts before one instant; delete recorded changes, and circuits that are closed, before another."""
    yield Fetch(FORGET_COUNTS, (counts,))
    yield Fetch(FORGET_CHANGES, (changes,))
    yield Fetch(FORGET_CLOSED, (changes,))
