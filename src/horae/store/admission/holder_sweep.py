"""Repairs and changes of keyed limits.

The sweep of keys admits executions that wait for a key with room, and deletes holders that have ended. As long as all
other code works, it finds nothing of this kind; so everything that it finds is counted as an alarm. After a change of a
limit, executions that wait may be admitted, and running ones get the flag of the limit.
"""

from collections.abc import Collection
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.model.admission.limits import is_sequence
from horae.store.admission import coarse
from horae.store.admission.holders import DROP_HOLDERS, DROP_TICKETS, HELD, AdmittedItems, KeyGate
from horae.store.base import shelves
from horae.store.fleet.exchange import lock_sessions
from horae.store.script import Fetch, ForEach, Script, Statement, Together

# A skip scan: it jumps from one gate to the next by an index, so its cost does not depend on the number of executions.
GATES = Statement(
    "gates_with_waiters",
    "WITH RECURSIVE gates(gate) AS (SELECT min(w.gate) FROM waiting w WHERE w.gate > $1 UNION ALL"
    " SELECT (SELECT min(w.gate) FROM waiting w WHERE w.gate > gates.gate) FROM gates WHERE gates.gate IS NOT NULL)"
    " SELECT gate FROM gates WHERE gate IS NOT NULL LIMIT $2",
)
OF_JOB = Statement(
    "gates_of_job", "SELECT DISTINCT w.gate FROM waiting w WHERE w.job = $1 AND w.reason IN ('limit', 'sequence')"
)
_GONE = (
    "NOT EXISTS (SELECT 1 FROM queued q WHERE q.parcel = h.parcel)"
    " AND NOT EXISTS (SELECT 1 FROM running r WHERE r.parcel = h.parcel)"
    " AND NOT EXISTS (SELECT 1 FROM waiting w WHERE w.parcel = h.parcel)"
)
STALE_HOLDERS = Statement(
    "stale_holders", f"SELECT h.key, h.parcel FROM holders h WHERE h.key LIKE 'limit:%' AND {_GONE} LIMIT $1"
)
STALE_TICKETS = Statement("stale_tickets", f"SELECT h.key, h.parcel FROM tickets h WHERE {_GONE} LIMIT $1")
PACED = Statement(
    "paced_of_job",
    "SELECT w.parcel, w.lo FROM waiting w WHERE w.job = $1 AND w.reason = 'rate' FOR UPDATE SKIP LOCKED",
)
WAKE = Statement(
    "wake_paced",
    "UPDATE waiting SET wake_at = given.at FROM given WHERE waiting.parcel = given.parcel AND waiting.lo = given.lo",
)


class StaleHolders(Struct, frozen=True):
    """Rows about parcels of which all items have ended."""

    holders: list[tuple[str, UUID]]  # key and parcel, in the table of holders of limits
    tickets: list[tuple[str, UUID]]  # key and parcel, in the table of places in sequences

    def __len__(self) -> int:
        return len(self.holders) + len(self.tickets)


def gates(after: str, limit: int) -> Script[list[str]]:
    """Return a page of the gates, of all kinds, at which executions wait, in the order of their names."""
    return [row[0] for row in (yield Fetch(GATES, (after, limit)))]


def is_key(gate: str) -> bool:
    """Return whether a gate belongs to the key of a limit or a sequence."""
    return gate.startswith("limit:") or is_sequence(gate)


def gates_of(job: UUID) -> Script[list[str]]:
    """Return the keys of limits and sequences for which executions of a job wait."""
    return sorted(row[0] for row in (yield Fetch(OF_JOB, (job,))) if row[0] is not None)


def admit(keys: Collection[str], now: Instant) -> Script[AdmittedItems]:
    """Admit executions that wait for these keys, as far as the keys have room."""
    gate = KeyGate(keys, now)
    if gate.keys:
        yield from gate.lock()
        yield from gate.read_states()
        yield from gate.admit_waiting()
    return gate.admitted


def stale_holders(limit: int) -> Script[StaleHolders]:
    """Return at most `limit` holders and `limit` tickets of parcels of which all items have ended."""
    holders = yield Fetch(STALE_HOLDERS, (limit,))
    tickets = yield Fetch(STALE_TICKETS, (limit,))
    return StaleHolders([(key, parcel) for key, parcel in holders], [(key, parcel) for key, parcel in tickets])


def forget(found: StaleHolders, now: Instant) -> Script[AdmittedItems]:
    """Delete holders and tickets if their parcels still have no items; admit executions that wait for the keys."""
    gate = KeyGate({key for key, _ in (*found.holders, *found.tickets)}, now)
    if gate.keys:
        yield from gate.lock()
        yield Together([ForEach(DROP_HOLDERS, HELD, found.holders), ForEach(DROP_TICKETS, HELD, found.tickets)])
        yield from gate.read_states()
        yield from gate.admit_waiting()
    return gate.admitted


def wake_paced(job: UUID, now: Instant) -> Script[list[str]]:
    """Make executions of a changed job due if they wait for a rate; return the keys for which its others wait."""
    rows = yield Fetch(PACED, (job,))
    if rows:
        yield ForEach(WAKE, (*shelves.SPAN, ("at", "bigint")), [(*row, now) for row in rows])
    return (yield from gates_of(job))


def mark_limited(session: UUID, kind: str, scope_id: int) -> Script[None]:
    """Set the flag of the running executions of a session that are under a limit of a queue or a namespace.

    The session is locked, so that its executions cannot move to another shelf meanwhile.
    """
    yield from lock_sessions([session])
    yield from coarse.mark(session, kind, scope_id)
