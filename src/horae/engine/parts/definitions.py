"""Definitions as people change them: jobs, triggers, calendars and dependencies."""

from collections.abc import Awaitable, Callable

from horae.engine.base.hints import Hint
from horae.engine.definitions.applying import Applying, Later, Parts
from horae.engine.definitions.job_deletions import Deletions
from horae.engine.definitions.job_drafts import CheckPlace
from horae.engine.definitions.job_lists import Warn
from horae.engine.definitions.job_plans import JobPlans
from horae.engine.definitions.jobs import Jobs
from horae.engine.parts.admission import Admission
from horae.engine.parts.base import Base
from horae.engine.parts.firing import Firing
from horae.engine.parts.part import Part
from horae.engine.triggers.calendars import Calendars
from horae.engine.triggers.dependencies import Dependencies
from horae.engine.triggers.triggers import Triggers
from horae.env import Instant
from horae.features.templates.engine.templates import Templates
from horae.store.contract import Store

FireDue = Callable[[], Awaitable[object]]


class Definitions(Part):
    """Reads and writes definitions, and tells schedulers of changes."""

    def __init__(
        self, base: Base, admission: Admission, firing: Firing, check_place: CheckPlace = lambda place, field: None
    ) -> None:
        self._base, self._admission, self._check_place = base, admission, check_place
        env, store, fire_due = base.env, base.store, firing.scheduler.step
        self.deletions = Deletions(store, base.outcomes)
        self.jobs = self._jobs_in(store, lambda act: act(), fire_due=fire_due, warn=admission.fleet.warning)
        self.job_plans = JobPlans(store, self.jobs)
        self.templates = Templates(env, store, self.jobs)
        self.triggers = Triggers(
            env, store, self.jobs, on_change=base.timers_changed, fire_due=fire_due, compute=base.fair_access.compute
        )
        self.calendars = Calendars(env, store, on_change=self._calendar_changed, fire_due=fire_due)
        self.applying = Applying(env, store, self._parts_in, fire_due)
        self.dependencies = Dependencies(store, base.directory, base.hints)

    def _jobs_in(
        self, store: Store, later: Later, *, fire_due: FireDue | None = None, warn: Warn | None = None
    ) -> Jobs:
        """Return what writes jobs to a store or a transaction; `later` calls what tells of a change."""
        base, admission = self._base, self._admission
        return Jobs(
            base.env,
            store,
            lambda: later(base.directory.alarm.ring),
            rank=base.directory.rank,
            on_change=lambda job: later(lambda: base.timers_changed(job)),
            on_event=lambda event: later(lambda: base.outcomes.tell(event)),
            on_queued=lambda lanes: later(lambda: base.hints.tell(Hint(lanes=dict(lanes)))),
            fire_due=fire_due,
            deletions=self.deletions,
            check_place=self._check_place,
            held=admission.hold_watch.why_named,
            default_queue=admission.queues.default_of,
            warn=warn,
        )

    def _parts_in(self, store: Store, later: Later) -> Parts:
        """Return what writes definitions inside a transaction."""
        jobs = self._jobs_in(store, later)
        calendars = Calendars(self._base.env, store, on_change=lambda now: later(lambda: self._calendar_changed(now)))
        return Parts(jobs, Templates(self._base.env, store, jobs), calendars)

    def _calendar_changed(self, now: Instant) -> None:
        self._base.hints.tell(Hint(fire_at=now, holds=True))
