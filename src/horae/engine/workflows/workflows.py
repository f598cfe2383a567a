"""Services of workflows: one starts workflows without a worker, one handles due, late and stopped workflows.

The transaction that ends a step starts the next steps. These two services do everything else.
"""

from collections.abc import Awaitable, Sequence
from functools import partial
from typing import TypeVar
from uuid import UUID

import structlog

from horae.engine.base.clockwatch import ClockWatch
from horae.engine.base.hints import Hint, Hints
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.executions.outcomes import Outcomes
from horae.engine.executions.promoter import CHECK_EVERY, wait_until
from horae.engine.service import Alarm, Wait
from horae.engine.topics import Topics
from horae.env import Env, Instant
from horae.errors import Busy
from horae.model.admission.claim_plan import LaneState
from horae.model.base.ids import index_of, parcel_of
from horae.model.executions.slice import RunningSlice
from horae.model.executions.tracer import Tracer
from horae.store.contract import Store
from horae.store.triggers.dependencies.starts import Consequences
from horae.store.workflows import begin as workflow_begin
from horae.store.workflows import cancel as workflow_cancel
from horae.store.workflows import due as workflow_due
from horae.store.workflows import waits as workflow_waits
from horae.store.workflows.cancel import ToStop

WORKFLOW_KIND = "kind:workflow"  # the need of lanes of workflows, which no worker offers
BATCH = 100  # workflows that are started or advanced in one transaction
PARCELS = 50  # parcels whose items are cancelled in one transaction
AGAIN = 0.05  # seconds before rows that another transaction holds are checked again
T = TypeVar("T")
log = structlog.get_logger("horae.engine")


class WorkflowOpener:
    """Takes workflows off the queue and starts them, in the order of the queue."""

    name = "workflow-opener"

    def __init__(
        self,
        env: Env,
        store: Store,
        directory: LocalDirectory,
        hints: Hints,
        topics: Topics,
        tracer: Tracer | None = None,
    ) -> None:
        self._env, self._store, self._directory, self._hints = env, store, directory, hints
        self._topics, self._tracer = topics, tracer
        self._known = -1  # the directory's version from which the lanes were computed
        self._lanes: frozenset[int] = frozenset()
        self.opened = 0
        self.alarm = Alarm()
        hints.listen(self._on_hint)

    def _on_hint(self, hint: Hint) -> None:
        if not self.lanes.isdisjoint(hint.lanes) or any(lane not in self._directory.lanes for lane in hint.lanes):
            self.alarm.ring()

    @property
    def lanes(self) -> frozenset[int]:
        """The lanes of workflows."""
        if self._known != self._directory.version:
            self._known = self._directory.version
            lanes = self._directory.lanes.values()
            self._lanes = frozenset(lane.id for lane in lanes if WORKFLOW_KIND in lane.needs)
        return self._lanes

    async def step(self) -> Wait:
        """Start one batch of each namespace, sized by its weight.

        Return the wait before the next call: 0 while more are queued.
        """
        own_lanes = self.lanes
        waiting: dict[int, list[LaneState]] = {}
        for view in self._directory.lane_states(BATCH):
            if view.lane in own_lanes:
                waiting.setdefault(self._directory.lanes[view.lane].namespace, []).append(view)
        heaviest = max(map(self._directory.weight, waiting), default=1.0)
        goes_on = False
        for namespace, views in waiting.items():
            most = max(1, int(BATCH * self._directory.weight(namespace) / heaviest))
            goes_on |= await self._open(views, most)
        return 0.0 if goes_on else CHECK_EVERY

    async def _open(self, views: Sequence[LaneState], most: int) -> bool:
        """Start a batch of workflows from these lanes; return whether there may be more."""
        marks, paused = self._directory.marks(), self._directory.paused
        new_id, within = self._env.new_id, None if self._tracer is None else self._tracer.within
        opened = await self._store.change(
            lambda now: workflow_begin.open_some(views, most, paused, new_id, now, within)
        )
        self.opened += len(opened.executions)
        claimed = opened.claimed
        granted: dict[int, list[RunningSlice]] = {}
        for running in claimed.running:
            granted.setdefault(running.lane, []).append(running)
        for lane, slices in granted.items():
            self._directory.learn_from_grant(lane, slices)
        self._directory.estimates.learn_sizes(claimed.means, self._directory.lanes)
        left = self._directory.learn_from_claim(claimed.lanes, marks)
        if claimed.full:
            self._directory.mark_full(claimed.full, marks)
        if claimed.freed:
            self._topics.freed(claimed.freed)
        self._hints.send(Hint(wake_at=claimed.wake_at))
        if opened.executions:
            self._topics.opened(None)
        self._store.started(opened.started)
        self._store.created(opened.started.parcels)
        if opened.begun:
            await self._trace(opened.begun)  # the last, because it may fail
        return bool(claimed.running or left.keys() - claimed.full.keys())

    async def _trace(self, begun: Sequence[workflow_begin.BegunWorkflow]) -> None:
        """Record trace spans for the time that workflows were queued."""
        assert self._tracer is not None
        known = await self._directory.definitions.get(sorted({workflow.version for workflow in begun}))
        for workflow in begun:
            job = known[workflow.version].name if workflow.version in known else ""
            first = workflow.slice.attempt == 1
            context = self._tracer.context(workflow.extra, workflow.execution, job, workflow.made, first=first)
            attempt, running = workflow.slice.attempt, workflow.slice
            self._tracer.waited(context, workflow.execution, attempt, job, running.queued_at, running.granted_at)


class WorkflowAdvancer:
    """Advances workflows: it begins first steps, fails late workflows, ends waits, and stops cancelled workflows."""

    name = "workflow-advancer"

    def __init__(
        self,
        env: Env,
        store: Store,
        hints: Hints,
        clock: ClockWatch,
        outcomes: Outcomes,
        topics: Topics,
    ) -> None:
        self._env, self._store, self._clock = env, store, clock
        self._outcomes = outcomes
        self._next: Instant | None = None
        self._idle = True  # no workflow is running, as far as this server knows
        self.alarm = Alarm()
        hints.listen(self._on_hint)
        topics.opened.subscribe(self.name, lambda _: self.wake())

    def wake(self) -> None:
        """Check for due workflows at once, because some were started."""
        self._idle = False
        self.alarm.ring()

    def _on_hint(self, hint: Hint) -> None:
        """Wake for an earlier timer.

        While no workflow runs, ignore timers, because a new workflow is announced by its step events.
        """
        if self._idle and not any(event.kind == "step" for event in hint.events):
            return
        if hint.wake_at is not None and (self._next is None or hint.wake_at < self._next):
            self._next = hint.wake_at
            self.alarm.ring()

    async def step(self) -> Wait:
        """Advance a batch of due workflows, and cancel steps of stopped ones; return the wait before the next call."""
        if not self._clock.trusted:
            return CHECK_EVERY
        asked_at = self._env.now()
        self._next = await self._store.look_up(workflow_due.next_due)
        if self._next is None:
            self._idle = not await self._store.look_up(workflow_due.is_any_under_way)
        if self._next is None or self._next > asked_at:
            return wait_until(self._next, asked_at)
        self._idle = False
        stops, is_sound = await self._advance()
        reminded = Consequences()
        await self._store.change(lambda now: workflow_waits.remind(BATCH, now, reminded))
        self._tell(reminded)
        done = [await self._apart("stopped", execution, self._stop(execution)) for execution in stops]
        if None in done or not is_sound:
            return CHECK_EVERY
        return 0.0 if all(done) else AGAIN

    async def _advance(self) -> tuple[list[UUID], bool]:
        """Advance all due workflows together. If that fails, advance them one by one.

        Return the workflows with executions that are still to be stopped, and whether it did not fail.
        """
        move = partial(workflow_due.advance_due, BATCH, self._env.new_id)
        try:
            advanced = await self._store.change(move)
        except Busy:
            raise
        except Exception:
            log.exception("workflows could not be advanced together")
        else:
            self._tell(advanced.started)
            return advanced.stops, True
        stops: list[UUID] = []
        for execution in await self._store.read(lambda: workflow_due.due(BATCH, self._env.now())):
            one = await self._apart("advanced", execution, self._store.change(partial(move, only=execution)))
            if one is not None:
                self._tell(one.started)
                stops += one.stops
        return stops, False

    async def _apart(self, done: str, execution: UUID, work: Awaitable[T]) -> T | None:
        """Return the result of work on one workflow, or None if it fails, so that a faulty workflow stops no other.

        Raises Busy, and StoreUnavailable, because all other work would fail as well.
        """
        try:
            return await work
        except Busy:
            raise
        except Exception:
            log.exception(f"a workflow could not be {done}", execution=str(execution))
            return None

    def _tell(self, started: Consequences) -> None:
        self._store.started(started)
        self._store.created(started.parcels)

    async def _stop(self, execution: UUID) -> bool:
        """Cancel the running steps of a workflow. Return False if some are locked, so that the caller tries again."""
        to_stop = await self._store.read(lambda: workflow_cancel.to_stop(execution))
        if to_stop is None:
            return True
        try:
            for child, job in to_stop.children:
                await self._cancel(child, job, to_stop.reason)
            for i in range(0, len(to_stop.parcels), PARCELS):
                if not await self._cancel_parcels(to_stop, to_stop.parcels[i : i + PARCELS]):
                    return False
        except Busy:
            return False
        consequences = Consequences()
        await self._store.change(
            lambda now: workflow_cancel.finish_stops(execution, to_stop.stops, self._env.new_id, now, consequences)
        )
        self._tell(consequences)
        return True

    async def _cancel(self, child: UUID, job: UUID | None, reason: str) -> None:
        verdict, session = await self._store.cancel(parcel_of(child), index_of(child), reason)
        if session is not None:
            self._outcomes.publish_request(session)
        if verdict == "cancelled" and job is not None:
            self._outcomes.publish_cancelled(job)

    async def _cancel_parcels(self, to_stop: ToStop, parcels: list[UUID]) -> bool:
        """Cancel the children of a fan-out step: waiting ones by their parcels, running ones by their sessions."""
        for shelf in workflow_cancel.PENDING:
            consequences = Consequences()
            move = partial(workflow_cancel.cancel_pending, shelf, parcels, to_stop.reason, self._env.new_id)
            for job, count in (await self._store.change(lambda now: move(now, consequences))).items():  # noqa: B023
                self._outcomes.publish_cancelled(job, count)
            self._tell(consequences)
        for child in await self._store.read(lambda: workflow_cancel.workflows_in(parcels)):
            await self._cancel(child, None, to_stop.reason)
        for session in await self._store.read(lambda: workflow_cancel.sessions_of(parcels)):
            asking = partial(workflow_cancel.ask_session, session, parcels, to_stop.reason)
            if await self._store.change(asking):
                self._outcomes.publish_request(session)
        return not await self._store.read(lambda: workflow_cancel.left_of(parcels))
