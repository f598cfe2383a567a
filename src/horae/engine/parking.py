"""The parking lot: exchanges that wait for work, and the claims made for all of them together."""

import asyncio
from collections.abc import Callable, Sequence
from math import inf
from typing import Literal
from uuid import UUID

import structlog
from msgspec import Struct, structs

from horae.engine.directory import Directory
from horae.engine.hints import Hint, Hints
from horae.engine.service import Alarm, Wait
from horae.env import Env
from horae.errors import HoraeError, StoreUnavailable
from horae.model.deal import Want
from horae.model.slice import Running
from horae.store.contract import Store
from horae.store.moves import exchange
from horae.store.moves.claim import Claimed

LanesOf = Callable[[UUID], frozenset[int]]
MOST_AT_ONCE = 64  # exchanges served by one claim
log = structlog.get_logger("horae.engine")


class Parked(Struct, frozen=True, kw_only=True):
    """An exchange that waits until a monotonic instant."""

    want: Want
    until: float

    @property
    def place(self) -> tuple[UUID, int]:
        return self.want.session, self.want.channel


class Served(Struct, frozen=True):
    """How the wait ended: with slices, empty, with something stamped by another claim, or with the session's end."""

    decision: Literal["granted", "empty", "taken", "ended", "superseded"]
    granted: list[Running] = []
    draining: bool = False


class ParkingLot:
    """Parks exchanges, claims for them, and answers those whose time is over. A service: its step ends the waits."""

    name = "parking"

    def __init__(self, env: Env, store: Store, directory: Directory, hints: Hints, lanes_of: LanesOf) -> None:
        self._env, self._store, self._directory, self._hints = env, store, directory, hints
        self._lanes_of = lanes_of  # asked at every claim: lanes come and go while exchanges wait
        self._places: dict[tuple[UUID, int], tuple[Parked, asyncio.Future[Served]]] = {}
        self._claiming: asyncio.Task[None] | None = None
        self._looks_at = inf  # when `step` comes next, unless rung
        self._commits = 0  # of exchanges, which hold their sessions meanwhile
        self._passed_over = False
        self.closed = False
        self.alarm = Alarm()
        hints.listen(self._on_hint)

    def __len__(self) -> int:
        return len(self._places)

    async def park(self, parked: Parked) -> Served:
        """Wait for work. Work that came since the claim that found none wakes the claimer at once."""
        old = self._places.pop(parked.place, None)
        if old is not None and not old[1].done():
            old[1].set_result(Served("superseded"))
        done: asyncio.Future[Served] = asyncio.get_running_loop().create_future()
        self._places[parked.place] = (parked, done)
        if self._has_work(parked):
            self._kick()
        if self.closed or parked.until < self._looks_at:
            self.alarm.ring()  # whatever the claim brings, the wait ends in time
        try:
            return await done
        finally:
            if self._places.get(parked.place, (None, None))[1] is done:
                del self._places[parked.place]

    def release(self, session: UUID) -> None:
        """Answer a session's exchanges now: there is something to tell it."""
        for place, (parked, done) in list(self._places.items()):
            if place[0] == session:
                self._places[place] = (structs.replace(parked, until=0.0), done)
                self.alarm.ring()

    def committed(self) -> None:
        """Exchanges of this server let go of their sessions: a claim that passed over some looks again."""
        self._commits += 1
        if self._passed_over:
            self._passed_over = False
            self._kick()

    async def close(self) -> None:
        """Answer everybody; whoever comes later is answered at once."""
        self.closed = True
        if self._claiming is not None:
            await asyncio.gather(self._claiming, return_exceptions=True)
        try:
            await self._end(list(self._places.values()))
        except HoraeError:
            for _, done in self._places.values():
                if not done.done():
                    done.set_result(Served("superseded"))

    async def step(self) -> Wait:
        """End the waits whose time is over: an empty answer is the heartbeat."""
        now = self._env.clock.monotonic()
        due = [entry for entry in self._places.values() if self.closed or entry[0].until <= now]
        if due:
            await self._end(due)
        now = self._env.clock.monotonic()
        soonest = min((parked.until for parked, _ in self._places.values()), default=now + 60)
        self._looks_at = max(now + 0.005, soonest)
        return self._looks_at - now

    async def _end(self, due: Sequence[tuple[Parked, asyncio.Future[Served]]]) -> None:
        if not due:
            return
        numbers = [(p.want.session, p.want.channel, p.want.n) for p, _ in due]
        emptied = await self._store.answer_empty(numbers)
        for parked, done in due:
            verdict, draining = emptied[parked.place]
            if not done.done():
                done.set_result(Served(verdict, draining=draining))

    def _on_hint(self, hint: Hint) -> None:
        if hint.lanes and self._places:
            self._kick()

    def _kick(self) -> None:
        """Claim, unless a claim is under way: it looks again by itself."""
        if not self.closed and (self._claiming is None or self._claiming.done()):
            self._claiming = asyncio.create_task(self._claim_all())

    async def _claim_all(self) -> None:
        """Claim until no parked exchange has an occupied lane."""
        while not self.closed:
            able = self._able()
            if not able:
                return
            try:
                if not await self._claim(able):
                    return
            except StoreUnavailable:
                return
            except Exception:
                log.exception("claim failed")
                return

    def _able(self) -> list[Parked]:
        able = [p for p, done in self._places.values() if not done.done() and self._has_work(p)]
        return sorted(able, key=lambda p: p.want.load)[:MOST_AT_ONCE]

    def _has_work(self, parked: Parked) -> bool:
        """Whether a claim may bring it something; one that wants nothing only waits for news."""
        want = parked.want
        lanes = self._lanes_of(want.session)
        ahead = None if want.free > 0 else [job for job, count in want.prefetch.items() if count > 0]
        return self._directory.occupied(lanes, of=ahead)

    async def _claim(self, able: Sequence[Parked]) -> bool:
        """One claim for these; false when it brought nothing new: the next hint, exchange or scan tells."""
        marks, commits = self._directory.marks(), self._commits
        parked = [exchange.Parked(want=p.want, lanes=self._lanes_of(p.want.session)) for p in able]
        done = await self._store.claim_for_parked(parked, self._directory.views(), self._directory.paused)
        left = self.learn(done, marks)
        served: dict[tuple[UUID, int], list[Running]] = {}
        for slice in done.running:
            served.setdefault((slice.session, slice.channel), []).append(slice)
        for place, granted in served.items():
            entry = self._places.get(place)
            if entry is not None and entry[0].want.n == granted[0].n and not entry[1].done():
                entry[1].set_result(Served("granted", granted))
                del self._places[place]
        if left:
            self._hints.tell(Hint(lanes=left))
        if not done.lanes:  # no lane was asked: somebody else holds their sessions
            self._passed_over = commits == self._commits
            return not self._passed_over
        return bool(served) or any(low is None for low in done.lanes.values())

    def learn(self, claimed: Claimed, marks: dict[int, int]) -> dict[int, int]:
        """Learn from a claim what lanes hold and how large their slices are; returns what to hint again."""
        granted: dict[int, list[Running]] = {}
        for slice in claimed.running:
            granted.setdefault(slice.lane, []).append(slice)
        for lane, slices in granted.items():
            self._directory.granted(lane, slices)
        left = self._directory.claimed(claimed.lanes, marks)
        return {lane: low for lane, low in left.items() if lane not in claimed.solo}
