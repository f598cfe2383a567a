"""Adoption: when a job gets a limit on itself, the executions that exist already get the key of this limit.

Waiting and queued executions get the key and pass its gate like all others. Running executions get the key, too, so
that the limit counts them, and their end admits the next execution. Parcels keep the keys that they already have.

A slice gets the flag KEYED in the transaction that gives its parcel the key, under the lock of its row or session. So a
running slice with the flag has all keys of its parcel, and they do not change while it runs. Other slices of the same
parcel may get the flag later. If one of them ends before that, it does not free the key: the room is derived from the
shelves and not lost, but the next execution is admitted only by the limits service, when it adopts again or sweeps.
"""

from collections.abc import Sequence
from uuid import UUID

from msgspec import Struct, structs

from horae.env import Instant
from horae.model.admission.key_gate import woken_slice
from horae.model.admission.keys import KEYED, encode_keys, keys_of
from horae.model.admission.limits import OWN, KeyLimit, key_name
from horae.model.executions.slice import QueuedSlice, WaitingSlice
from horae.store.admission import holders
from horae.store.base import shelves
from horae.store.base.specs import read_limits
from horae.store.fleet.exchange import lock_sessions
from horae.store.script import Fetch, ForEach, Script, Statement

CHANGED = Statement(
    "jobs_changed_since",
    "SELECT j.id, v.spec FROM jobs j JOIN job_versions v ON v.job = j.id AND v.version = j.version"
    " WHERE j.updated_at >= $1 AND j.state <> 'deleted' ORDER BY j.updated_at DESC LIMIT $2",
)
# SKIP LOCKED leaves out rows that another transaction has locked: it moves them, and a later batch finds them.
_FROM = f"s JOIN parcels p ON p.id = s.parcel WHERE s.job = $1 AND (s.flags & {KEYED}) = 0"
QUEUED = Statement(
    "queued_without_key",
    f"SELECT {shelves.names(shelves.QUEUED, 's.')}, p.keys FROM queued {_FROM} ORDER BY s.rank, s.parcel, s.lo"
    " LIMIT $2 FOR UPDATE OF s SKIP LOCKED",
)
WAITING = Statement(
    "waiting_without_key",
    f"SELECT s.parcel, s.lo, p.keys FROM waiting {_FROM} LIMIT $2 FOR UPDATE OF s SKIP LOCKED",
)
SESSIONS = Statement(
    "sessions_without_key", f"SELECT DISTINCT r.session FROM running r WHERE r.job = $1 AND (r.flags & {KEYED}) = 0"
)
RUNNING = Statement("running_without_key", f"SELECT s.parcel, s.lo, p.keys FROM running {_FROM} AND s.session = $2")
REKEY = Statement("rekey_parcels", "UPDATE parcels SET keys = given.keys FROM given WHERE parcels.id = given.parcel")
FLAG = {
    shelf: Statement(
        f"flag_{shelf}",
        f"UPDATE {shelf} SET flags = {shelf}.flags | given.flags FROM given"
        f" WHERE {shelf}.parcel = given.parcel AND {shelf}.lo = given.lo",
    )
    for shelf in ("waiting", "running")
}
_KEYS: shelves.Columns = (("parcel", "uuid"), ("keys", "text"))
_FLAGS: shelves.Columns = (*shelves.SPAN, ("flags", "smallint"))


class OwnLimit(Struct, frozen=True):
    """A limit that a job sets on all its executions together, not on those with the same value of a key."""

    key: str
    rated: bool  # whether it also limits the rate of starts

    def add_to(self, keys: str | None) -> tuple[str, int]:
        """Return the encoded keys of a parcel with this limit's key added, and the flags for its slices."""
        known = keys_of(keys)
        extended = structs.replace(
            known, limits=tuple(sorted({*known.limits, self.key})), rated=known.rated or self.rated
        )
        return encode_keys(extended) or "", extended.flags


def own_limit(job: UUID) -> Script[OwnLimit | None]:
    """Return the limit that a job sets on all its executions together; None if it has none."""
    rows = yield ForEach(holders.LIMITS_OF, (("job", "uuid"),), [(job,)])
    found: list[KeyLimit] = [limit for _, spec in rows for limit in read_limits(spec) if limit.key == OWN]
    return OwnLimit(key_name(job, OWN, ""), found[0].rate is not None) if found else None


def limited_since(since: Instant, limit: int) -> Script[list[UUID]]:
    """Return those of the last `limit` jobs changed since an instant that have a limit on themselves."""
    rows = yield Fetch(CHANGED, (since, limit))
    return [job for job, spec in rows if any(limit.key == OWN for limit in read_limits(spec))]


def adopt(job: UUID, limit: int, now: Instant) -> Script[int]:
    """Give the key of the job's own limit to a batch of waiting and queued slices, and return their number.

    Queued slices move to `waiting`, due one microsecond after the other, so that they reach the gate in their order.
    """
    own = yield from own_limit(job)
    if own is None:
        return 0
    waits = yield Fetch(WAITING, (job, limit))
    queued = yield Fetch(QUEUED, (job, limit))
    slices = [shelves.queued(row) for row in queued]
    yield from _rekey([(row[0], row[-1]) for row in (*waits, *queued)], own)
    yield ForEach(FLAG["waiting"], _FLAGS, [(parcel, lo, own.add_to(keys)[1]) for parcel, lo, keys in waits])
    yield shelves.take("queued", slices)
    flags = [own.add_to(row[-1])[1] for row in queued]
    yield shelves.put_waiting([_back(s, f, now + i) for i, (s, f) in enumerate(zip(slices, flags, strict=True))])
    return len(waits) + len(queued)


def _rekey(found: Sequence[tuple[UUID, str | None]], own: OwnLimit) -> Script[None]:
    yield ForEach(REKEY, _KEYS, [(parcel, own.add_to(keys)[0]) for parcel, keys in sorted(dict(found).items())])


def _back(s: QueuedSlice, flags: int, at: Instant) -> WaitingSlice:
    """Return a waiting slice that replaces a queued one; when it is due, the promoter passes it to the gate."""
    waiting = WaitingSlice(
        parcel=s.parcel, lo=s.lo, hi=s.hi, job=s.job, queue=s.queue, namespace=s.namespace, attempt=s.attempt,
        failures=s.failures, losses=s.losses, alone=s.alone, width=s.width, flags=s.flags | flags, reason="limit",
    )  # fmt: skip
    return woken_slice(waiting, s.rank, at)


def unmarked_sessions(job: UUID) -> Script[list[UUID]]:
    """Return sessions that run executions of a job without its key."""
    return [row[0] for row in (yield Fetch(SESSIONS, (job,)))]


def mark(session: UUID, job: UUID) -> Script[None]:
    """Give the key of the job's own limit to the slices of the job that a session runs.

    The session is locked, so that its slices cannot move to another shelf meanwhile.
    """
    own = yield from own_limit(job)
    if own is None:
        return
    yield from lock_sessions([session])  # guard: adoption-locks-session
    rows = yield Fetch(RUNNING, (job, session))
    yield from _rekey([(parcel, keys) for parcel, _, keys in rows], own)
    yield ForEach(FLAG["running"], _FLAGS, [(parcel, lo, own.add_to(keys)[1]) for parcel, lo, keys in rows])
    if rows:
        yield holders.put_holders({(own.key, parcel) for parcel, _, _ in rows})
