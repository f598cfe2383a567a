"""The Store, by which all other code uses a store: it runs scripts, each in one transaction of either driver.

`read`, `write` and their variants run any script; a script's docstring is its promise. The other methods run scripts of
their own, with the present time and new ids. `database` is for hints, the clock, the disk and expiry.
"""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import TypeVar
from uuid import UUID

from horae.env import Env, Instant
from horae.errors import Busy
from horae.model.admission.claim_plan import LaneState
from horae.model.admission.queue import Queue
from horae.model.admission.quota import UNBOUNDED, QuotaBounds
from horae.model.base.topic import Topic
from horae.model.definitions.job import JobVersion
from horae.model.definitions.retry import RetryPolicy
from horae.model.executions.parcel import Parcel
from horae.model.executions.slice import RunningSlice
from horae.model.executions.submission import Submission, SubmitResult
from horae.model.fleet.protocol import Register
from horae.model.fleet.session import Session
from horae.store import epochs
from horae.store.admission import lanes
from horae.store.definitions import jobs
from horae.store.driver import Driver, StoreDatabase
from horae.store.executions import promote
from horae.store.executions.entering import submit as submits
from horae.store.executions.leaving import cancel as cancels
from horae.store.executions.leaving import timeouts
from horae.store.executions.leaving.effects import Effects, free_keys
from horae.store.executions.leaving.report import StopRequest, requests_of
from horae.store.executions.parcels import read_parcels
from horae.store.fleet import exchange as exchanges
from horae.store.fleet import hand_over
from horae.store.fleet import rescue as rescues
from horae.store.fleet import sessions as presences
from horae.store.fleet.claim import ClaimResult
from horae.store.script import Script, ScriptFactory
from horae.store.timing import Timings, timed
from horae.store.triggers import due
from horae.store.triggers import fire as fires
from horae.store.triggers.delays import NO_DELAYS, Delays
from horae.store.triggers.dependencies import due_joins, joins
from horae.store.triggers.dependencies.starts import Consequences
from horae.store.triggers.targets import Lead
from horae.store.workflows.locks import ChildCache

T = TypeVar("T")
Paused = frozenset[UUID]
CANCEL_TRIES, CANCEL_PAUSES = 100, 10  # immediate tries, then tries after a pause
CANCEL_PAUSE = 0.05  # seconds


class Store:
    """A store: strongly consistent, durable when a call returns, shared by any number of servers on PostgreSQL."""

    def __init__(self, driver: Driver, env: Env) -> None:
        self.driver = driver
        self.database: StoreDatabase = driver
        self.env = env
        self.bounds: QuotaBounds = UNBOUNDED
        self.timings = Timings()
        self._kin = ChildCache()
        self.created: Topic[Sequence[Parcel]] = Topic("made")  # parcels of new executions that were stored
        self.started: Topic[Consequences] = Topic("started")  # executions that started because another was cancelled

    def set_bounds(self, bounds: QuotaBounds) -> None:
        """Set the room that quotas leave, as last read by this server."""
        self.bounds = bounds

    @timed
    async def write(self, make: ScriptFactory[T]) -> T:
        """Run a script in one transaction."""
        return await self.driver.write(make)

    @timed
    async def write_slowly(self, make: ScriptFactory[T]) -> T:
        """Run a script that changes many rows in one transaction, with plans for large tables and a longer timeout."""
        return await self.driver.write(make, hot=False)

    @timed
    async def write_between(self, make: ScriptFactory[T]) -> T:
        """Run a script with long computations in one transaction; the process does other work between statements."""
        return await self.driver.write_between(make)

    @timed
    async def read(self, make: ScriptFactory[T]) -> T:
        """Run a read-only script."""
        return await self.driver.read(make)

    @timed
    async def read_at_once(self, make: ScriptFactory[T]) -> T:
        """Run a read-only script; all its statements see the store at one instant."""
        return await self.driver.read(make, snapshot=True)

    @timed
    async def look_up(self, make: ScriptFactory[T]) -> T:
        """Run a frequent read-only script, with cached plans that always use indexes, however the tables grow."""
        return await self.driver.read(make, hot=True)

    @timed
    async def submit(
        self,
        submissions: Sequence[Submission],
        takers: Sequence[exchanges.WaitingExchange] = (),
        paused: Paused = frozenset(),
        bounds: QuotaBounds | None = None,
    ) -> SubmitResult:
        """Accept executions: they are on disk when this returns, each id on exactly one shelf.

        Due items are granted to `takers`, which are waiting exchanges, if their numbers are free and their sessions are
        not locked. `paused` are the paused jobs.

        Raises JobMoved when a job has another version than the resolved one, TwinRequests when two requests share an
        idempotency key, and OverQuota when `bounds`, or this server's own bounds, leave no room. Then nothing is
        written.
        """
        done = await self._submit(submissions, takers, paused, self.bounds if bounds is None else bounds)
        self.created([*done.parcels, *done.windows] if done.windows else done.parcels)
        return done

    async def _submit(
        self,
        submissions: Sequence[Submission],
        takers: Sequence[exchanges.WaitingExchange],
        paused: Paused,
        bounds: QuotaBounds,
    ) -> SubmitResult:
        now = self.env.now()
        bounded = bool(bounds) and any(
            bounds.touch(e.envelope.namespace, e.envelope.queue) for s in submissions for e in s.executions
        )
        draft = None if bounded else hand_over.draft(submissions, takers, paused, self.env.new_id, now)
        if draft is not None and await self.driver.change(draft.change):
            return draft.submitted
        limits = bounds if bounded else UNBOUNDED
        return await self.driver.write(lambda: submits.submit(submissions, self.env.new_id, now, limits))

    async def parcels(self, ids: Sequence[UUID]) -> list[Parcel]:
        """Return parcels by id; a parcel never changes after its executions have been granted."""
        return await self.driver.read(lambda: read_parcels(ids))

    @timed
    async def exchange(
        self,
        incoming: Sequence[exchanges.IncomingExchange],
        views: Sequence[LaneState],
        paused: Paused,
        policies: Mapping[tuple[UUID, int], RetryPolicy],
        rng: Random | None = None,
        arising: exchanges.Arising | None = None,
        parked: Sequence[exchanges.WaitingExchange] = (),
    ) -> exchanges.ExchangeResult:
        """Settle outcomes, and claim for exchanges whose number is next.

        A report moves only items in running slices of its session and attempt. No two sessions hold an item at the same
        time. Each claim starts a new attempt. A session that has ended changes nothing and gets nothing.

        The joins of dependents advance in the same transaction. Each dependent is started once, when its last upstream
        has ended. Workflows of ended steps advance in the same transaction, too. The next steps are started, and may be
        granted at once, from the lanes that `arising` returns. `parked` exchanges (waiting ones) of these sessions take
        part in the claim; the numbers of those that are granted something become taken.
        """
        now, chance = self.env.now(), rng or self.env.rng
        new_id, kin = self.env.new_id, self._kin
        return await self.driver.write(
            lambda: exchanges.exchange(incoming, views, paused, policies, now, chance, new_id, arising, parked, kin)
        )

    @timed
    async def look(self, incoming: Sequence[exchanges.IncomingExchange]) -> list[exchanges.Reply]:
        """Return the answers to exchanges that report nothing and find no work, as `exchange` would decide them.

        Nothing is locked or written. All exchanges that only continue to wait share one read.
        """
        return await self.driver.read(lambda: exchanges.look(incoming))

    @timed
    async def claim_for_parked(
        self, parked: Sequence[exchanges.WaitingExchange], views: Sequence[LaneState], paused: Paused
    ) -> ClaimResult:
        """Claim once for all parked exchanges; the numbers of those that are granted something become taken."""
        now = self.env.now()
        return await self.driver.write(lambda: exchanges.claim_for_parked(parked, views, paused, now))

    @timed
    async def answer_empty(
        self, numbers: Sequence[tuple[UUID, int, int]]
    ) -> dict[tuple[UUID, int], tuple[exchanges.EmptyVerdict, bool]]:
        """Take the numbers of exchanges that end without work, unless a claim took them first.

        This also counts as a heartbeat of their sessions.
        """
        now = self.env.now()
        return await self.driver.write(lambda: exchanges.answer_empty(numbers, now))

    async def stamped_slices(self, session: UUID, channel: int, n: int) -> list[RunningSlice]:
        """Return the running slices that are the answer to an exchange, also when the exchange is repeated."""
        return await self.driver.read(lambda: exchanges.stamped_slices(session, channel, n))

    async def requests_of(self, sessions: Sequence[UUID]) -> dict[UUID, list[StopRequest]]:
        """Return the requests of each session to stop items: (parcel, item, attempt, kind)."""
        return await self.driver.read(lambda: requests_of(sessions))

    @timed
    async def promote_due(self, low: Instant, limit: int, rank: promote.Ranker) -> promote.PromotionResult:
        """Queue waiting slices that became due since `low`, earliest first. No slice is promoted twice."""
        now = self.env.now()
        return await self.driver.write(lambda: promote.promote_due(low, now, limit, rank))

    async def open_gate(self, job: UUID, limit: int, rank: promote.Ranker) -> promote.PromotionResult:
        """Queue slices that waited for a job to be resumed."""
        now = self.env.now()
        return await self.driver.write(lambda: promote.open_gate(job, limit, rank, now))

    async def gates_left_open(self) -> list[UUID]:
        """Return jobs that are not paused although slices wait for them to be resumed."""
        return await self.driver.read(promote.gates_left_open)

    async def next_wake(self) -> Instant | None:
        """Return the instant at which the earliest waiting slice is due."""
        return await self.driver.read(promote.next_wake)

    async def look_at_joins(self, limit: int) -> tuple[int, Effects]:
        """Check joins that are due because an upstream failed or an execution has waited too long.

        An execution that cannot run because an upstream failed ends as skipped, with the cause. An execution that
        waited too long ends as its job defines. Joins that depend on these executions advance in the same transaction.
        Return the number of joins, and the effects.
        """
        now = self.env.now()
        count, effects = await self.driver.write(lambda: due_joins.check_with_effects(limit, self.env.new_id, now))
        if effects.freed:  # the locks of keys come before those of joins
            await self.driver.write(lambda: free_keys(effects, now))
        return count, effects

    async def next_join(self) -> Instant | None:
        """Return the instant at which the earliest join is due."""
        return await self.driver.read(joins.next_due)

    @timed
    async def end_overdue(self, limit: int) -> tuple[int, Effects]:
        """End overdue executions that no worker holds; return the number of checked parcels, and the effects.

        An execution that was queued for longer than its job's `timeouts.queue`, or did not end within `timeouts.total`
        after it was due, fails with that reason, once. Its dependents advance in the same transaction.
        """
        now = self.env.now()
        return await self.driver.write(lambda: timeouts.end_overdue(limit, self.env.new_id, now))

    async def mark_lost(self, session: UUID, last_seen: Instant) -> bool:
        """End a session that has been silent since `last_seen`; return False if it was seen since, or had ended."""
        now = self.env.now()
        return await self.driver.write(lambda: rescues.mark_lost(session, last_seen, now))

    @timed
    async def rescue(self, session: UUID, limit: int, *, charge: bool = True) -> Effects | None:
        """Take one batch of slices back from a session that has ended; return None while it is live.

        Each slice is taken back once, even if several servers try. A lost item that may run at most once ends. Other
        items are queued again with their rank, until they have been lost too often. `charge` counts the loss.
        """
        now = self.env.now()
        return await self.driver.write(
            lambda: rescues.rescue(session, limit, now, self.env.rng, self.env.new_id, charge=charge)
        )

    async def watched_sessions(self) -> list[tuple[UUID, str, Instant, bool]]:
        """Return live sessions, and ended ones that still own slices: (id, state, last_seen, owns)."""
        return await self.driver.read(rescues.watched_sessions)

    async def close_session(self, session: UUID) -> bool:
        """End the session of a worker that leaves; return False when it had ended before."""
        now = self.env.now()
        return await self.driver.write(lambda: rescues.close(session, now))

    @timed
    async def cancel(self, parcel: UUID, item: int, reason: str) -> tuple[cancels.CancelVerdict, UUID | None]:
        """Cancel an item, or ask its worker to stop it. An item that has ended stays as it is.

        While another transaction moves the item, this tries again, first at once, then at intervals. Raises Busy when
        no try succeeded; then nothing has changed.
        """
        for tried in range(CANCEL_TRIES + CANCEL_PAUSES):
            if tried >= CANCEL_TRIES:
                await self.env.clock.sleep(CANCEL_PAUSE)
            now, consequences = self.env.now(), Consequences()
            verdict, session = await self.driver.write(
                lambda: cancels.cancel(parcel, item, reason, now, self.env.new_id, consequences)  # noqa: B023
            )
            if verdict != "moving":
                self.started(consequences)
                return verdict, session
        raise Busy("The execution changed its state each time that Horae tried to cancel it.")

    @timed
    async def register(self, namespace: int, presence: Register, key: str = "") -> Session:
        """Create a live session for a worker, in the epoch of the store at the commit.

        `key` is the id of the API key with which the worker registers.
        """
        session_id, now = self.env.new_id(), self.env.now()
        return await self.driver.write(lambda: presences.register(session_id, namespace, presence, now, key))

    async def session(self, session_id: UUID) -> Session | None:
        """Return one session."""
        return await self.driver.read(lambda: presences.session(session_id))

    async def some_sessions(self, ids: Sequence[UUID]) -> dict[UUID, Session]:
        """Return these sessions if they exist, without their running slices."""
        return await self.driver.read(lambda: presences.some_sessions(ids))

    async def sessions(self, namespace: int, ended_after: Instant, limit: int = 1000) -> list[Session]:
        """Return sessions that have not ended or ended after an instant, newest first; namespace 0 means all."""
        return await self.driver.read(lambda: presences.sessions(namespace, ended_after, limit))

    async def ask_drain(self, session_id: UUID) -> bool:
        """Ask a worker to finish its executions and leave."""
        return await self.driver.write(lambda: presences.ask_drain(session_id))

    async def identity(self) -> epochs.StoreIdentity:
        """Return the store's epoch, which grows with every restore and failover, and its installation."""
        return await self.driver.read(epochs.identity)

    async def end_old_epochs(self, epoch: int) -> list[UUID]:
        """End sessions of earlier epochs."""
        now = self.env.now()
        return await self.driver.write(lambda: presences.end_old_epochs(epoch, now))

    async def directory(self) -> lanes.Directory:
        """Return all queues and lanes."""
        return await self.driver.read(lanes.directory)

    async def ensure_lane(
        self, namespace: int, queue: str, needs: tuple[str, ...], share: str = ""
    ) -> tuple[Queue, lanes.Lane]:
        """Find or create a queue and one of its lanes; concurrent callers get the same queue and lane."""
        now = self.env.now()
        return await self.driver.write(lambda: lanes.ensure_lane(namespace, queue, needs, share, now))

    async def occupied(self) -> dict[int, int]:
        """Return the lanes with queued slices, each with its least rank."""
        return await self.driver.read(lanes.occupied_lanes)

    async def paused_jobs(self) -> frozenset[UUID]:
        """Return jobs whose executions must not start."""
        return await self.driver.read(lanes.paused_jobs)

    async def job(self, job_id: UUID, namespace: int) -> jobs.StoredJob | None:
        """Return a job by its id, even a deleted one."""
        return await self.driver.read(lambda: jobs.by_id(job_id, namespace))

    async def job_named(self, namespace: int, name: str) -> jobs.StoredJob | None:
        """Return the job that has a name now."""
        return await self.driver.read(lambda: jobs.by_name(namespace, name))

    async def versions(self, job: UUID) -> list[JobVersion]:
        """Return all versions of a job, newest first."""
        return await self.driver.read(lambda: jobs.versions(job))

    async def definitions(self, wanted: Sequence[tuple[UUID, int]]) -> dict[tuple[UUID, int], bytes]:
        """Return stored specs by job and version; they never change."""
        return await self.driver.read(lambda: jobs.definitions(wanted))

    @timed
    async def fire(
        self, limit: int, lead: Lead, low: due.Mark = due.FIRST, holds: Delays = NO_DELAYS
    ) -> fires.FireResult:
        """Decide the fires of due timers, write ledger rows and parcels, and advance the timers, in one transaction.

        Timers that were due before `low` were decided by earlier calls. Each nominal fire is decided once, by the first
        server that locks the timer. If the fires of a trigger cannot be computed, the reason is recorded and they are
        tried again later; the other triggers fire. `holds` names the queues with a hold and the jobs with a circuit
        that is not closed: their executions are delayed, and the ledger records the cause.
        """
        now = self.env.now()
        bounds = self.bounds
        done = await self.driver.write(lambda: fires.fire(limit, lead, self.env.new_id, now, low, holds, bounds))
        self.created(done.parcels)
        return done

    async def next_fire_at(self, low: due.Mark = due.FIRST) -> Instant | None:
        """Return the instant at which the earliest timer is due."""
        return await self.driver.read(lambda: due.next_fire_at(low), hot=True)

    async def troubled_triggers(self) -> int:
        """Count triggers whose fires cannot be computed."""
        return await self.driver.read(due.count_troubled)

    @timed
    async def change(self, make: Callable[[Instant], Script[T]]) -> T:
        """Run a script, made by `make` for the present instant, in one transaction."""
        now = self.env.now()
        return await self.driver.write(lambda: make(now))
