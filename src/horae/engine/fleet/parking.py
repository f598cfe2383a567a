"""The parking lot: exchanges that wait for work, and the claims that are made for all of them together."""

import asyncio
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from itertools import islice
from math import inf
from uuid import UUID

import structlog

from horae.engine.admission.preference_cache import charge
from horae.engine.base.counters import Counters
from horae.engine.base.hints import Hint, Hints
from horae.engine.definitions.directory import HintMarks, LocalDirectory
from horae.engine.fleet.parking_spots import ParkedExchange, ParkingResult, ParkingSpot, ParkingSpots
from horae.engine.service import Alarm, Wait
from horae.engine.topics import Topics
from horae.env import Env
from horae.errors import Busy, HoraeError, StoreUnavailable
from horae.model.admission.claim_plan import QueuePreferences
from horae.model.executions.slice import RunningSlice
from horae.model.fleet.deal import WorkRequest, capacity
from horae.store.contract import Store
from horae.store.fleet import exchange
from horae.store.fleet.claim import ClaimResult

LanesOf = Callable[[UUID], frozenset[int]]
PreferencesOf = Callable[[UUID], QueuePreferences | None]
MOST_AT_ONCE = 64  # exchanges served by one claim
log = structlog.get_logger("horae.engine")


class ParkingLot:
    """Parks exchanges, claims for them, and answers those whose wait is over. As a service, it ends the waits."""

    name = "parking"

    def __init__(
        self,
        env: Env,
        store: Store,
        directory: LocalDirectory,
        hints: Hints,
        counters: Counters,
        topics: Topics,
        lanes_of: LanesOf,
        preferences_of: PreferencesOf = lambda session: None,
    ) -> None:
        self._env, self._store, self._directory, self._hints = env, store, directory, hints
        self._lanes_of = lanes_of  # called for every claim, because lanes change while exchanges wait
        self._preferences_of = preferences_of
        self._spots = ParkingSpots(lanes_of)
        self._claiming: asyncio.Task[None] | None = None
        self._next_step = inf  # the time of the next step, unless the alarm rings
        self._commits = 0  # commits of exchanges, each of which had locked its sessions
        self._passed_over = False  # whether the last claim read no lane because its sessions were locked
        self.counters, self._topics = counters, topics
        self.closed = False
        self.alarm = Alarm()
        hints.listen(self._on_hint)
        store.database.epoch_met.subscribe(self.name, lambda _: self._release_all())

    def __len__(self) -> int:
        return len(self._spots)

    async def park(self, parked: ParkedExchange) -> ParkingResult:
        """Wait for work. If work has arrived since a claim found none, start another claim at once."""
        old = self._spots.get(parked.key)
        if old is not None:
            self._spots.remove(old)
            if not old.done.done():
                old.done.set_result(ParkingResult("superseded"))
        spot = self._spots.add(parked, asyncio.get_running_loop().create_future())
        if self.has_work(parked.want, self._lanes_of(parked.want.session)):
            self._start_claim()
        if self.closed or parked.until < self._next_step:
            self.alarm.ring()  # the wait must end in time, even if the claim brings nothing
        try:
            return await spot.done
        finally:
            self._spots.remove(spot)

    def waiting_of(self, sessions: Iterable[UUID]) -> list[exchange.WaitingExchange]:
        """Return the waiting exchanges of these sessions that can take work."""
        spots = (spot for session in sessions for spot in self._spots.of_session(session) if not spot.done.done())
        return [self._as_parked(spot) for spot in spots if spot.parked.want.free or spot.parked.want.prefetch]

    def has_waiting(self, session: UUID) -> bool:
        """Return whether an exchange of a session waits."""
        return any(self._spots.of_session(session))

    def make_room(self, session: UUID) -> None:
        """Answer a session's waiting exchanges after it got more room, so that the next one reports all of its room.

        Each exchange reports a separate part of the room. An execution that needs more than one of these parts would
        otherwise wait until their waits end.
        """
        lane_needs = self._directory.lane_needs
        if lane_needs.costs and any(
            spot.parked.want.free and lane_needs.has_costly(spot.lanes) for spot in self._spots.of_session(session)
        ):
            self.release(session)

    def release(self, session: UUID) -> None:
        """Answer a session's waiting exchanges now."""
        if self._spots.end_waits(session):
            self.alarm.ring()

    def _release_all(self) -> None:
        """Answer all waiting exchanges now, because a new epoch has ended or detached their sessions."""
        for spot in self._spots:
            self._spots.end_waits(spot.parked.want.session)
        self.alarm.ring()

    def note_commit(self) -> None:
        """Note a commit of exchanges. If a claim skipped sessions that they had locked, claim again."""
        self._commits += 1
        if self._passed_over:
            self._passed_over = False
            self._start_claim()

    async def close(self) -> None:
        """Answer all waiting exchanges. Later ones are answered at once."""
        self.closed = True
        if self._claiming is not None:
            await asyncio.gather(self._claiming, return_exceptions=True)
        try:
            await self._end(list(self._spots))
        except HoraeError:
            for spot in self._spots:
                if not spot.done.done():
                    spot.done.set_exception(Busy("The server is stopping."))

    async def step(self) -> Wait:
        """End the waits that are over. The statement for the empty answers also records the sessions' heartbeats."""
        now = self._env.clock.monotonic()
        due = self._spots.due(inf if self.closed else now)
        try:
            await self._end(due)
        except BaseException:
            self._spots.schedule(due, now)
            raise
        now = self._env.clock.monotonic()
        soonest = self._spots.soonest()
        self._next_step = now + 60 if soonest is None else max(now + 0.005, soonest)
        return self._next_step - now

    async def _end(self, due: Sequence[ParkingSpot]) -> None:
        if not due:
            return
        wants = [spot.parked.want for spot in due]
        emptied = await self._store.answer_empty([(want.session, want.channel, want.n) for want in wants])
        for spot in due:
            verdict, draining = emptied[spot.parked.key]
            if not spot.done.done():
                spot.done.set_result(ParkingResult(verdict, draining=draining))

    def _on_hint(self, hint: Hint) -> None:
        if hint.lanes and self._spots:
            self._start_claim()

    def _start_claim(self) -> None:
        """Start a claim, unless one is running, because that one checks for more work by itself."""
        if not self.closed and (self._claiming is None or self._claiming.done()):
            self._claiming = asyncio.create_task(self._claim_all())

    async def _claim_all(self) -> None:
        """Claim until no parked exchange has an occupied lane.

        A claim locks no more sessions than there are executions to grant. If these sessions got nothing, later claims
        try up to MOST_AT_ONCE exchanges.
        """
        wide = False
        while not self.closed:
            most = MOST_AT_ONCE if wide else min(MOST_AT_ONCE, max(1, self._directory.expected_amount()))
            able = self._able(most)
            if not able:
                return
            try:
                if not await self._claim(able):
                    if len(able) < most or most == MOST_AT_ONCE:
                        return
                    wide = True
            except StoreUnavailable:
                return
            except Exception:
                log.exception("claim failed")
                return

    def _able(self, most: int) -> list[ParkingSpot]:
        able = self._spots.able(self._directory.version, self._is_occupied)
        if self._directory.lane_needs.costs:
            able = (spot for spot in able if self._directory.lane_needs.affords(spot.parked.want, spot.lanes))
        return list(islice(able, most))

    def has_work(self, want: WorkRequest, lanes: frozenset[int]) -> bool:
        """Return whether a claim may bring something. An exchange that wants nothing only waits for requests."""
        return self._is_occupied(want, lanes) and self._directory.lane_needs.affords(want, lanes)

    def _is_occupied(self, want: WorkRequest, lanes: frozenset[int]) -> bool:
        """Return whether one of these lanes has an execution that the request wants, regardless of its cost."""
        ahead = None if want.free > 0 else [job for job, count in want.prefetch.items() if count > 0]
        return self._directory.is_occupied(lanes, jobs=ahead)

    async def _claim(self, able: Sequence[ParkingSpot]) -> bool:
        """Claim once for these exchanges.

        Return False when nothing changed, so that another claim makes sense only after a hint, an exchange or a scan.
        """
        marks, commits = self._directory.marks(), self._commits
        parked = [self._as_parked(spot) for spot in able]
        views = self._directory.lane_states(capacity([waiting.want for waiting in parked]))
        done = await self._store.claim_for_parked(parked, views, self._directory.paused)
        left = self.learn_from_claim(done, marks)
        self.serve(done.running)
        if left:
            self._hints.send(Hint(lanes=left))
        if not done.lanes and done.full:
            return False
        if not done.lanes:  # no lane was read: other transactions hold these sessions
            self._passed_over = commits == self._commits
            return not self._passed_over
        return bool(done.running) or any(low is None for low in done.lanes.values())

    def _as_parked(self, spot: ParkingSpot) -> exchange.WaitingExchange:
        want = spot.parked.want
        return exchange.WaitingExchange(want=want, lanes=spot.lanes, preferences=self._preferences_of(want.session))

    def serve(self, running: Sequence[RunningSlice], only: Container[tuple[UUID, int]] | None = None) -> None:
        """Answer the exchanges for which slices were claimed.

        With `only` (sessions and channels), answer only these. The others are being committed and get their slices with
        their own reply.
        """
        served: dict[tuple[UUID, int], list[RunningSlice]] = {}
        for running_slice in running:
            spot_key = running_slice.session, running_slice.channel
            if only is None or spot_key in only:
                served.setdefault(spot_key, []).append(running_slice)
        for key, granted in served.items():
            found = self._spots.get(key)
            if found is not None and found.parked.want.n == granted[0].n and not found.done.done():
                found.done.set_result(ParkingResult("granted", granted))
                self._spots.remove(found)

    def takers(self, amounts: Mapping[int, int]) -> list[exchange.WaitingExchange]:
        """Return waiting exchanges, one per session, for executions that are about to enter these lanes."""
        if self.closed or not self._spots:
            return []
        most = min(MOST_AT_ONCE, sum(amounts.values()))
        found: dict[UUID, exchange.WaitingExchange] = {}
        for spot in self._spots.idle(self._directory.version, amounts.keys()):
            if len(found) >= most:
                break
            want = spot.parked.want
            found.setdefault(
                want.session,
                exchange.WaitingExchange(want=want, lanes=self._directory.lane_needs.plain_lanes(spot.lanes)),
            )
        return list(found.values())

    def handed_over(self, running: Sequence[RunningSlice]) -> None:
        """Answer the waiting exchanges to which new executions were handed over."""
        if running:
            self.learn_from_claim(ClaimResult(list(running), {}), self._directory.marks())
            self.serve(running)
            self.note_commit()

    def learn_from_claim(self, claimed: ClaimResult, marks: HintMarks) -> dict[int, int]:
        """Update estimates after a claim; return the lanes, with lowest ranks, that a hint must announce again."""
        self.counters.claimed(claimed)
        granted: dict[int, list[RunningSlice]] = {}
        for running_slice in claimed.running:
            granted.setdefault(running_slice.lane, []).append(running_slice)
            preferences = self._preferences_of(running_slice.session)
            if preferences is not None:
                charge(preferences, running_slice, self._directory.expectations.of(running_slice.job))
        for lane, slices in granted.items():
            self._directory.learn_from_grant(lane, slices)
        self._directory.estimates.learn_sizes(claimed.means, self._directory.lanes)
        left = self._directory.learn_from_claim(claimed.lanes, marks)
        self._hints.send(Hint(wake_at=claimed.wake_at))
        if claimed.freed:
            self._topics.freed(claimed.freed)
        if claimed.full:
            self._directory.mark_full(claimed.full, marks)
        return {lane: low for lane, low in left.items() if lane not in claimed.suspects and lane not in claimed.full}
