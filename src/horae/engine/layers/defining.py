"""What people define: jobs, their templates and rollouts, triggers and what they listen to, calendars, dependencies."""

from collections.abc import Awaitable, Callable, Collection
from uuid import UUID

from horae.engine.base.hints import Hint
from horae.engine.definitions.applying import Applying, Later, Parts
from horae.engine.definitions.job_lists import Warn
from horae.engine.definitions.job_plans import JobPlans
from horae.engine.definitions.jobs import Jobs
from horae.engine.layers.moving import Moving
from horae.engine.service import Service
from horae.engine.settings import EngineSettings
from horae.engine.triggers.calendars import Calendars
from horae.engine.triggers.dependencies import Dependencies
from horae.engine.triggers.triggers import Triggers
from horae.env import Env, Instant
from horae.features.events.engine.hook_secrets import HookSecrets
from horae.features.events.engine.hooks import Hooks
from horae.features.events.engine.watching.watcher import Places, Watcher
from horae.features.rollouts.engine.rollouts import Rollouts
from horae.features.templates.engine.templates import Templates
from horae.store.contract import Store

FireDue = Callable[[], Awaitable[object]]


class Defining(Moving):
    """Definitions, and what acts on their changes."""

    def __init__(self, env: Env, store: Store, settings: EngineSettings) -> None:
        super().__init__(env, store, settings)
        hook_secrets = HookSecrets(store, self.sealer, self.secrets)
        self.secrets.reseal_others.append(hook_secrets.reseal)
        self.hooks = Hooks(env, store, self.intake, lambda: self.presence.url, hook_secrets)
        places = Places(settings.watch_roots)
        self.watcher = Watcher(env, store, self.directory, self.hints, self.clock, self.intake.check, places)
        self.watcher.on_blocked = self.turns.alarm.ring
        self._check_place = places.check
        self.jobs = self._jobs_in(store, lambda act: act(), fire_due=self.scheduler.step, warn=self.fleet.warning)
        self.job_plans = JobPlans(store, self.jobs)
        self.rollouts = Rollouts(env, store, self.id, self.hints, self.jobs)
        self.statistics.on_trials = self.rollouts.add
        self.templates = Templates(env, store, self.jobs)
        self.triggers = Triggers(
            env, store, self.jobs, on_change=self._job_changed, fire_due=self.scheduler.step,
            compute=self.fair_access.compute,
        )  # fmt: skip
        self.calendars = Calendars(env, store, on_change=self._calendar_changed, fire_due=self.scheduler.step)
        self.applying = Applying(env, store, self._parts_in, self.scheduler.step)
        self.dependencies = Dependencies(store, self.directory, self.hints)

    def _jobs_in(
        self, store: Store, later: Later, *, fire_due: FireDue | None = None, warn: Warn | None = None
    ) -> Jobs:
        """Who writes jobs to a store, which may be a transaction: what is told is told `later`."""
        return Jobs(
            self.env,
            store,
            lambda: later(self.directory.alarm.ring),
            rank=self.directory.rank,
            on_change=lambda job: later(lambda: self._job_changed(job)),
            on_event=lambda event: later(lambda: self._tell(event)),
            on_queued=lambda lanes: later(lambda: self.hints.tell(Hint(lanes=dict(lanes)))),
            fire_due=fire_due,
            deletions=self.deletions,
            check_place=self._check_place,
            held=self.hold_watch.why_named,
            default_queue=self.queues.default_of,
            warn=warn,
        )

    def _parts_in(self, store: Store, later: Later) -> Parts:
        """Who writes definitions inside of a transaction."""
        jobs = self._jobs_in(store, later)
        told = lambda now: later(lambda: self._calendar_changed(now))  # noqa: E731
        return Parts(jobs, Templates(self.env, store, jobs), Calendars(self.env, store, on_change=told))

    def services(self, parts: Collection[str]) -> list[Service]:
        chosen: list[Service] = [*super().services(parts), self.rollouts]
        return [*chosen, self.watcher] if "scheduler" in parts else chosen

    def _job_changed(self, job: UUID) -> None:
        self.hints.tell(Hint(jobs=[job], fire_at=self.env.now()))

    def _calendar_changed(self, now: Instant) -> None:
        self.hints.tell(Hint(fire_at=now, holds=True))
