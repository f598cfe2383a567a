"""Rates of starts by key: a claim counts the executions that it starts; slices that are too early go back to `waiting`.

The row of a rate in `rates` is also its lock. A claim that already holds some of these locks takes further ones only if
they are free (SKIP LOCKED), because it could deadlock if it waited. It leaves slices of a rate that is not free to the
transaction that holds this lock.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.model.admission.keys import RATED, keys_of
from horae.model.admission.limits import Limit
from horae.model.admission.rate import UNUSED, Rate
from horae.model.executions.slice import QueuedSlice, RunningSlice, WaitingSlice, part
from horae.store.admission.holders import KEYS_OF, limits_of
from horae.store.base import shelves
from horae.store.script import ForEach, Insert, Script, Statement, Together

RATES: shelves.Columns = (("name", "text"), ("pace", "bigint"))
NAME: shelves.Columns = (("name", "text"),)
LOCK = Statement("lock_rates", "SELECT r.name, r.pace FROM given JOIN rates r ON r.name = given.name FOR UPDATE OF r")
READ = Statement("read_rates", "SELECT r.name, r.pace FROM given JOIN rates r ON r.name = given.name")
LOCK_FREE = Statement("lock_free_rates", f"{LOCK.text} SKIP LOCKED")
WAITED_FOR = Statement(
    "last_of_rates", "SELECT w.gate, max(w.wake_at) FROM given JOIN waiting w ON w.gate = given.name GROUP BY w.gate"
)


def rate_gate(key: str) -> str:
    """Return the name of the gate at which executions wait for the rate of a key."""
    return f"rate:{key}"


class _Pace(Struct):
    """A rate that one transaction has locked."""

    rate: Rate
    pace: Instant  # when the next start would be exactly on schedule
    last: Instant  # the latest start time that was given to a waiting execution
    planned: int = 0  # starts that the transaction intends, but has not counted yet
    taken: bool = False  # whether starts were counted, so that the pace must be written

    def room(self, now: Instant) -> int:
        return self.rate.room(self.pace, now) - self.planned

    def opens_at(self, now: Instant) -> Instant:
        """Return the start time for the next execution that must wait, after those that wait already."""
        return max(self.last + self.rate.interval, self.rate.opens_at(self.rate.after(self.pace, self.planned, now)))


class KeyRates:
    """The rates of the keys of the slices that one claim picks."""

    def __init__(self, now: Instant) -> None:
        self._now = now
        self._paces: dict[str, _Pace] = {}
        self._keys: dict[UUID, tuple[str, ...]] = {}  # parcel -> its keys with a rate
        self.wake_at: Instant | None = None  # the earliest start of an execution that was held back
        self.freed: set[UUID] = set()  # parcels with items that left the queue; their keys are freed after the claim

    def hold_back(self, picked: list[QueuedSlice]) -> Script[list[QueuedSlice]]:
        """Return the slices, or first parts of slices, that may start now.

        Others move to `waiting` until their time. Slices of a rate that another transaction has locked stay queued.
        """
        rated = [queued for queued in picked if queued.flags & RATED]
        if not rated:
            return picked
        yield from self._read_rates(rated)
        usable: list[QueuedSlice] = []
        gone: list[QueuedSlice] = []
        back: list[QueuedSlice] = []
        waits: list[WaitingSlice] = []
        for queued in picked:
            keys = self._keys.get(queued.parcel, ()) if queued.flags & RATED else ()
            if any(key not in self._paces for key in keys):
                continue
            room = min((self._paces[key].room(self._now) for key in keys), default=queued.hi - queued.lo)
            count = max(0, min(room, queued.hi - queued.lo))
            for key in keys:
                self._paces[key].planned += count
            if count:
                usable.append(part(queued, queued.lo, queued.lo + count))
            if count < queued.hi - queued.lo:
                gone.append(queued)
                back += usable[-1:] if count else []
                waits.append(self._later(part(queued, queued.lo + count, queued.hi), keys))
        if gone:
            yield shelves.take("queued", gone)
            yield Together([shelves.put_queued(back), shelves.put_waiting(waits)])
        return usable

    def _later(self, queued: QueuedSlice, keys: Sequence[str]) -> WaitingSlice:
        """Return the waiting slice that replaces a queued one; it waits for the rate that allows its start last."""
        key = max(keys, key=lambda key: self._paces[key].opens_at(self._now))
        at = self._paces[key].last = max(self._paces[key].opens_at(self._now), self._now + 1)
        self.freed.add(queued.parcel)
        self.wake_at = at if self.wake_at is None else min(at, self.wake_at)
        return WaitingSlice(
            parcel=queued.parcel, lo=queued.lo, hi=queued.hi, job=queued.job, queue=queued.queue,
            namespace=queued.namespace, attempt=queued.attempt, failures=queued.failures, losses=queued.losses,
            alone=queued.alone, width=queued.width, flags=queued.flags, wake_at=at, reason="rate", gate=rate_gate(key),
            rank=queued.rank,
        )  # fmt: skip

    def _read_rates(self, slices: Sequence[QueuedSlice]) -> Script[None]:
        """Lock and read the rates of the keys of these slices."""
        unknown = sorted({queued.parcel for queued in slices} - self._keys.keys())
        if not unknown:
            return
        rows = yield ForEach(KEYS_OF, (("parcel", "uuid"),), [(parcel,) for parcel in unknown])
        keys = {parcel: keys_of(encoded).limits for parcel, encoded in rows}
        limits = yield from limits_of({key for limited in keys.values() for key in limited})
        for parcel, limited in keys.items():
            self._keys[parcel] = tuple(key for key in limited if limits[key].rate is not None)
        yield from self._lock(sorted({key for p in keys for key in self._keys[p]} - self._paces.keys()), limits)

    def _lock(self, keys: Sequence[str], limits: Mapping[str, Limit]) -> Script[None]:
        if not keys:
            return
        given = [(key,) for key in keys]
        yield Insert("rates", RATES, [(key, UNUSED) for key in keys], conflict="ON CONFLICT DO NOTHING")
        found: dict[str, Instant] = dict((yield ForEach(LOCK_FREE if self._paces else LOCK, NAME, given)))
        last: dict[str, Instant] = dict((yield ForEach(WAITED_FOR, NAME, [(rate_gate(key),) for key in sorted(found)])))
        for key, pace in found.items():
            rate = limits[key].rate
            if rate is not None:
                self._paces[key] = _Pace(rate, pace, last.get(rate_gate(key), UNUSED))

    def take(self, running: Sequence[RunningSlice]) -> None:
        """Count the starts of these slices for the rates of their keys."""
        if not self._keys:
            return
        for started in running:
            for key in self._keys.get(started.parcel, ()):
                known = self._paces[key]
                known.planned -= started.hi - started.lo
                known.pace = known.rate.after(known.pace, started.hi - started.lo, self._now)
                known.taken = True

    def changes(self) -> list[Insert]:
        """Return the changes that write the new paces of rates."""
        rows = [(key, known.pace) for key, known in sorted(self._paces.items()) if known.taken]
        conflict = "ON CONFLICT (name) DO UPDATE SET pace = excluded.pace"
        return [Insert("rates", RATES, rows, conflict=conflict)] if rows else []


def startable(slices: Sequence[QueuedSlice], now: Instant) -> Script[list[QueuedSlice]]:
    """Return the slices, or first parts of slices, that their rates allow to start now. This takes no lock."""
    rated = sorted({queued.parcel for queued in slices if queued.flags & RATED})
    if not rated:
        return list(slices)
    rows = yield ForEach(KEYS_OF, (("parcel", "uuid"),), [(parcel,) for parcel in rated])
    keys = {parcel: keys_of(text).limits for parcel, text in rows}
    rates = {
        key: limit.rate
        for key, limit in (yield from limits_of({key for rated_keys in keys.values() for key in rated_keys})).items()
        if limit.rate is not None
    }
    paces: dict[str, Instant] = dict((yield ForEach(READ, NAME, [(key,) for key in sorted(rates)])))
    left = {key: rate.room(paces.get(key, UNUSED), now) for key, rate in rates.items()}
    found: list[QueuedSlice] = []
    for queued in slices:
        rated_keys = [key for key in keys.get(queued.parcel, ()) if key in left]
        count = min((left[key] for key in rated_keys), default=queued.hi - queued.lo)
        if count > 0:
            found.append(part(queued, queued.lo, min(queued.hi, queued.lo + count)))
        for key in rated_keys:
            left[key] -= queued.hi - queued.lo
    return found
