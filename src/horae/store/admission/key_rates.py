"""Rates by key: starts are charged when they are claimed; what is too early goes back to wait for its time, uncharged.

The row of a rate is its lock. A claim that holds some takes more only if nobody else has them: what it cannot have is
left to whoever does.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.model.admission.keys import RATED, keys_of
from horae.model.admission.limits import Limit
from horae.model.admission.rate import NEVER, Rate
from horae.model.executions.slice import Queued, Running, Waiting, part
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
    """Where those wait that a key's rate holds back."""
    return f"rate:{key}"


class _Pace(Struct):
    """A rate, as one transaction uses it up."""

    rate: Rate
    pace: Instant
    last: Instant  # when the last of those that were held back may start
    planned: int = 0  # starts that are about to be charged
    taken: bool = False

    def room(self, now: Instant) -> int:
        return self.rate.room(self.pace, now) - self.planned

    def opens_at(self, now: Instant) -> Instant:
        """When the next that is held back may start."""
        return max(self.last + self.rate.interval, self.rate.opens_at(self.rate.after(self.pace, self.planned, now)))


class KeyRates:
    """The rates by key that a claim has to do with."""

    def __init__(self, now: Instant) -> None:
        self._now = now
        self._paces: dict[str, _Pace] = {}
        self._keys: dict[UUID, tuple[str, ...]] = {}  # of parcels, those that have a rate
        self.wake_at: Instant | None = None  # of the first that was held back
        self.freed: set[UUID] = set()  # parcels of which items left the queue: their keys' locks come before a claim's

    def hold_back(self, picked: list[Queued]) -> Script[list[Queued]]:
        """What of these slices may start now; the rest waits for its time, or is left to whoever has its rate."""
        rated = [slice for slice in picked if slice.flags & RATED]
        if not rated:
            return picked
        yield from self._look(rated)
        usable: list[Queued] = []
        gone: list[Queued] = []
        back: list[Queued] = []
        waits: list[Waiting] = []
        for slice in picked:
            keys = self._keys.get(slice.parcel, ()) if slice.flags & RATED else ()
            if any(key not in self._paces for key in keys):
                continue
            room = min((self._paces[key].room(self._now) for key in keys), default=slice.hi - slice.lo)
            count = max(0, min(room, slice.hi - slice.lo))
            for key in keys:
                self._paces[key].planned += count
            if count:
                usable.append(part(slice, slice.lo, slice.lo + count))
            if count < slice.hi - slice.lo:
                gone.append(slice)
                back += usable[-1:] if count else []
                waits.append(self._later(part(slice, slice.lo + count, slice.hi), keys))
        if gone:
            yield shelves.take("queued", gone)
            yield Together([shelves.put_queued(back), shelves.put_waiting(waits)])
        return usable

    def _later(self, slice: Queued, keys: Sequence[str]) -> Waiting:
        """A slice that waits for the rate that lets it start last."""
        key = max(keys, key=lambda key: self._paces[key].opens_at(self._now))
        at = self._paces[key].last = max(self._paces[key].opens_at(self._now), self._now + 1)
        self.freed.add(slice.parcel)
        self.wake_at = at if self.wake_at is None else min(at, self.wake_at)
        return Waiting(
            parcel=slice.parcel, lo=slice.lo, hi=slice.hi, job=slice.job, queue=slice.queue, namespace=slice.namespace,
            attempt=slice.attempt, failures=slice.failures, losses=slice.losses, alone=slice.alone, width=slice.width,
            flags=slice.flags, wake_at=at, reason="rate", gate=rate_gate(key), rank=slice.rank,
        )  # fmt: skip

    def _look(self, slices: Sequence[Queued]) -> Script[None]:
        """Learn the rates of these slices, and lock them."""
        unknown = sorted({slice.parcel for slice in slices} - self._keys.keys())
        if not unknown:
            return
        rows = yield ForEach(KEYS_OF, (("parcel", "uuid"),), [(parcel,) for parcel in unknown])
        keys = {parcel: keys_of(encoded).limits for parcel, encoded in rows}
        limits = yield from limits_of({key for mine in keys.values() for key in mine})
        for parcel, mine in keys.items():
            self._keys[parcel] = tuple(key for key in mine if limits[key].rate is not None)
        yield from self._lock(sorted({key for p in keys for key in self._keys[p]} - self._paces.keys()), limits)

    def _lock(self, keys: Sequence[str], limits: Mapping[str, Limit]) -> Script[None]:
        if not keys:
            return
        given = [(key,) for key in keys]
        yield Insert("rates", RATES, [(key, NEVER) for key in keys], conflict="ON CONFLICT DO NOTHING")
        found: dict[str, Instant] = dict((yield ForEach(LOCK_FREE if self._paces else LOCK, NAME, given)))
        last: dict[str, Instant] = dict((yield ForEach(WAITED_FOR, NAME, [(rate_gate(key),) for key in sorted(found)])))
        for key, pace in found.items():
            rate = limits[key].rate
            if rate is not None:
                self._paces[key] = _Pace(rate, pace, last.get(rate_gate(key), NEVER))

    def take(self, running: Sequence[Running]) -> None:
        """These were started."""
        if not self._keys:
            return
        for slice in running:
            for key in self._keys.get(slice.parcel, ()):
                known = self._paces[key]
                known.planned -= slice.hi - slice.lo
                known.pace = known.rate.after(known.pace, slice.hi - slice.lo, self._now)
                known.taken = True

    def changes(self) -> list[Insert]:
        """What starts are charged."""
        rows = [(key, known.pace) for key, known in sorted(self._paces.items()) if known.taken]
        conflict = "ON CONFLICT (name) DO UPDATE SET pace = excluded.pace"
        return [Insert("rates", RATES, rows, conflict=conflict)] if rows else []


def startable(slices: Sequence[Queued], now: Instant) -> Script[list[Queued]]:
    """What of these slices their rates would let start now, as far as can be seen without a lock."""
    rated = sorted({slice.parcel for slice in slices if slice.flags & RATED})
    if not rated:
        return list(slices)
    rows = yield ForEach(KEYS_OF, (("parcel", "uuid"),), [(parcel,) for parcel in rated])
    keys = {parcel: keys_of(text).limits for parcel, text in rows}
    rates = {
        key: limit.rate
        for key, limit in (yield from limits_of({key for mine in keys.values() for key in mine})).items()
        if limit.rate is not None
    }
    paces: dict[str, Instant] = dict((yield ForEach(READ, NAME, [(key,) for key in sorted(rates)])))
    left = {key: rate.room(paces.get(key, NEVER), now) for key, rate in rates.items()}
    found: list[Queued] = []
    for slice in slices:
        mine = [key for key in keys.get(slice.parcel, ()) if key in left]
        count = min((left[key] for key in mine), default=slice.hi - slice.lo)
        if count > 0:
            found.append(part(slice, slice.lo, min(slice.hi, slice.lo + count)))
        for key in mine:
            left[key] -= slice.hi - slice.lo
    return found
