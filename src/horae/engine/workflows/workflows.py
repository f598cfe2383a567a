"""Workflows: they leave the queue without a worker, and what is due of them, or to be stopped, is seen to.

Steps follow one another in the transactions that end them; these two services do what no such transaction does.
"""

from collections.abc import Sequence
from functools import partial
from uuid import UUID

import structlog

from horae.engine.base.clockwatch import ClockWatch
from horae.engine.base.hints import Hint, Hints
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.executions.outcomes import Outcomes
from horae.engine.executions.promoter import SAFETY, until
from horae.engine.service import Alarm, Wait
from horae.engine.topics import Topics
from horae.env import Env, Instant
from horae.errors import Busy, HoraeError
from horae.model.admission.claim_plan import LaneState
from horae.model.base.ids import index_of, parcel_of
from horae.model.executions.slice import Running
from horae.model.executions.tracer import Tracer
from horae.store.contract import Store
from horae.store.triggers.dependencies.starts import Consequences
from horae.store.workflows import begin as flow_begin
from horae.store.workflows import cancel as flow_cancel
from horae.store.workflows import due as flow_due
from horae.store.workflows import waits as flow_waits
from horae.store.workflows.cancel import ToStop

WORKFLOW_KIND = "kind:workflow"  # what the lanes of workflows ask for, and no worker offers
BATCH = 100  # workflows begun, or looked at, in one transaction
PARCELS = 50  # parcels whose items are cancelled in one transaction
AGAIN = 0.05  # seconds before what somebody holds is looked at again
log = structlog.get_logger("horae.engine")


class WorkflowOpener:
    """Takes workflows off the queue and begins them, in the order in which workers would."""

    name = "opener"

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
        self._known = -1  # the directory's version in which the lanes were looked for
        self._lanes: frozenset[int] = frozenset()
        self.opened = 0
        self.alarm = Alarm()
        hints.listen(self._on_hint)

    def _on_hint(self, hint: Hint) -> None:
        if not self.lanes.isdisjoint(hint.lanes) or any(lane not in self._directory.lanes for lane in hint.lanes):
            self.alarm.ring()

    @property
    def lanes(self) -> frozenset[int]:
        """The lanes in which workflows stand."""
        if self._known != self._directory.version:
            self._known = self._directory.version
            lanes = self._directory.lanes.values()
            self._lanes = frozenset(lane.id for lane in lanes if WORKFLOW_KIND in lane.needs)
        return self._lanes

    async def step(self) -> Wait:
        """Begin one batch of each namespace, as large as its weight; again at once while there are more."""
        mine = self.lanes
        waiting: dict[int, list[LaneState]] = {}
        for view in self._directory.views(BATCH):
            if view.lane in mine:
                waiting.setdefault(self._directory.lanes[view.lane].namespace, []).append(view)
        heaviest = max(map(self._directory.weight, waiting), default=1.0)
        goes_on = False
        for namespace, views in waiting.items():
            most = max(1, int(BATCH * self._directory.weight(namespace) / heaviest))
            goes_on |= await self._open(views, most)
        return 0.0 if goes_on else SAFETY

    async def _open(self, views: Sequence[LaneState], most: int) -> bool:
        """Begin a batch of these lanes; whether there may be more."""
        marks, paused = self._directory.marks(), self._directory.paused
        new_id, within = self._env.new_id, None if self._tracer is None else self._tracer.within
        opened = await self._store.change(lambda now: flow_begin.open_some(views, most, paused, new_id, now, within))
        self.opened += len(opened.executions)
        if opened.begun:
            await self._trace(opened.begun)
        claimed = opened.claimed
        granted: dict[int, list[Running]] = {}
        for slice in claimed.running:
            granted.setdefault(slice.lane, []).append(slice)
        for lane, slices in granted.items():
            self._directory.granted(lane, slices)
        self._directory.estimates.learn_sizes(claimed.means, self._directory.lanes)
        left = self._directory.claimed(claimed.lanes, marks)
        if claimed.full:
            self._directory.shut(claimed.full, marks)
        if claimed.freed:
            self._topics.freed(claimed.freed)
        self._hints.send(Hint(wake_at=claimed.wake_at))
        if opened.executions:
            self._topics.opened(None)
        self._store.started(opened.started)
        self._store.created(opened.started.parcels)
        return bool(claimed.running or left.keys() - claimed.full.keys())

    async def _trace(self, begun: Sequence[flow_begin.BegunWorkflow]) -> None:
        """Tell of workflows that left the queue."""
        assert self._tracer is not None
        known = await self._directory.definitions.get(sorted({one.version for one in begun}))
        for one in begun:
            job = known[one.version].name if one.version in known else ""
            first = one.slice.attempt == 1
            context = self._tracer.context(one.extra, one.execution, job, one.made, first=first)
            attempt, slice = one.slice.attempt, one.slice
            self._tracer.waited(context, one.execution, attempt, job, slice.queued_at, slice.granted_at)


class WorkflowAdvancer:
    """Looks at workflows that are due: opened ones begin, late ones fail, waits end, and what is to stop is stopped."""

    name = "workflows"

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
        self._idle = True  # no workflow is under way, as far as this server knows
        self.alarm = Alarm()
        hints.listen(self._on_hint)
        topics.opened.subscribe(self.name, lambda _: self.wake())

    def wake(self) -> None:
        """There are workflows, and some of them may be to begin."""
        self._idle = False
        self.alarm.ring()

    def _on_hint(self, hint: Hint) -> None:
        """Timers of others are no news while there is no workflow; one that begins tells of its steps."""
        if self._idle and not any(event.kind == "step" for event in hint.events):
            return
        if hint.wake_at is not None and (self._next is None or hint.wake_at < self._next):
            self._next = hint.wake_at
            self.alarm.ring()

    async def step(self) -> Wait:
        """Look at one batch; a full batch asks to be called again at once."""
        if not self._clock.trusted:
            return SAFETY
        asked_at = self._env.now()
        self._next = await self._store.look_up(flow_due.next_due)
        if self._next is None:
            self._idle = not await self._store.look_up(flow_due.is_any_under_way)
        if self._next is None or self._next > asked_at:
            return until(self._next, asked_at)
        self._idle = False
        looked = await self._look()
        self._tell(looked.started)
        reminded = Consequences()
        await self._store.change(lambda now: flow_waits.remind(BATCH, now, reminded))
        self._tell(reminded)
        stuck = False
        for execution in looked.stops:
            stuck |= not await self._stop(execution)
        return AGAIN if stuck else 0.0

    async def _look(self) -> flow_due.DueResult:
        """All that is due together; if that cannot be done, one by one, so that one keeps no other from going on."""
        try:
            return await self._store.change(lambda now: flow_due.advance_due(BATCH, self._env.new_id, now))
        except HoraeError:
            raise
        except Exception:
            log.exception("workflows could not be looked at together")
        for execution in await self._store.read(lambda: flow_due.due(BATCH, self._env.now())):
            try:
                move = partial(flow_due.advance_due, BATCH, self._env.new_id, only=execution)
                self._tell((await self._store.change(move)).started)
            except HoraeError:
                raise
            except Exception:
                log.exception("a workflow could not be looked at", execution=str(execution))
        await self._env.clock.sleep(SAFETY)
        return flow_due.DueResult()

    def _tell(self, started: Consequences) -> None:
        self._store.started(started)
        self._store.created(started.parcels)

    async def _stop(self, execution: UUID) -> bool:
        """Cancel what a workflow's steps run; false when some of it could not be caught, and is looked for again."""
        what = await self._store.read(lambda: flow_cancel.to_stop(execution))
        if what is None:
            return True
        try:
            for child, job in what.children:
                await self._cancel(child, job, what.reason)
            for i in range(0, len(what.parcels), PARCELS):
                if not await self._cancel_parcels(what, what.parcels[i : i + PARCELS]):
                    return False
        except Busy:
            return False
        done = Consequences()
        await self._store.change(
            lambda now: flow_cancel.finish_stops(execution, what.stops, self._env.new_id, now, done)
        )
        self._tell(done)
        return True

    async def _cancel(self, child: UUID, job: UUID | None, reason: str) -> None:
        verdict, session = await self._store.cancel(parcel_of(child), index_of(child), reason)
        if session is not None:
            self._outcomes.asked(session)
        if verdict == "cancelled" and job is not None:
            self._outcomes.cancelled(job)

    async def _cancel_parcels(self, what: ToStop, parcels: list[UUID]) -> bool:
        """The children of a step that fans out: those that wait by their parcels, those that run by their sessions."""
        for shelf in flow_cancel.PENDING:
            done = Consequences()
            move = partial(flow_cancel.cancel_pending, shelf, parcels, what.reason, self._env.new_id)
            for job, count in (await self._store.change(lambda now: move(now, done))).items():  # noqa: B023
                self._outcomes.cancelled(job, count)
            self._tell(done)
        for child in await self._store.read(lambda: flow_cancel.flows_in(parcels)):
            await self._cancel(child, None, what.reason)
        for session in await self._store.read(lambda: flow_cancel.sessions_of(parcels)):
            asking = partial(flow_cancel.ask_session, session, parcels, what.reason)
            if await self._store.change(asking):
                self._outcomes.asked(session)
        return not await self._store.read(lambda: flow_cancel.left_of(parcels))
