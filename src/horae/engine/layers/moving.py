"""What moves executions: accepted, fired, promoted, given to workers, reported, taken back, timed out and swept."""

from collections.abc import Collection, Sequence

from horae.engine.base import telling
from horae.engine.base.epochs import Epochs
from horae.engine.base.hints import Hint
from horae.engine.base.presence import Presence
from horae.engine.base.zones import ZoneRules
from horae.engine.definitions.job_deletions import Deletions
from horae.engine.executions.promote import Promoter
from horae.engine.executions.submit import Submitter
from horae.engine.executions.sweep import Sweeper
from horae.engine.executions.timeouts import Timeouts
from horae.engine.fleet.gateway import Gateway
from horae.engine.fleet.rescue import Rescuer
from horae.engine.layers.gates import Gates
from horae.engine.service import Service
from horae.engine.settings import EngineSettings
from horae.engine.tenancy.withholding import Withholding
from horae.engine.triggers.fire import Scheduler
from horae.engine.triggers.joins import Joiner
from horae.engine.triggers.streaks import Streaks
from horae.engine.triggers.turns import Turns
from horae.engine.workflows.workflows import Flows, Opener
from horae.env import Env
from horae.features.events.engine.intake import EventIntake
from horae.features.statistics.engine.recount import Recounter
from horae.model.executions.execution import Extra
from horae.model.executions.submission import Receipt
from horae.model.fleet.protocol import Submit
from horae.store.contract import Store
from horae.store.executions.leaving.effects import Effects
from horae.store.triggers.dependencies.starts import Started


class Moving(Gates):
    """From a submission or a fire to the end of an execution, and what follows from it."""

    def __init__(self, env: Env, store: Store, settings: EngineSettings) -> None:
        super().__init__(env, store, settings)
        directory, hints, clock, statistics = self.directory, self.hints, self.clock, self.statistics
        self._take_in(env, store)
        self.promoter = Promoter(env, store, directory, hints, settings, clock)
        self.scheduler = Scheduler(env, store, directory, hints, settings, clock)
        self.scheduler.counters = self.counters
        self.turns = Turns(env, store, directory, hints, self._session_asked, statistics.cancelled)
        self.scheduler.on_blocked = self.turns.alarm.ring
        self.scheduler.on_fired = statistics.fired
        self.zones = ZoneRules(env, store, hints)
        self.joiner = Joiner(env, store, hints, settings, statistics, clock)
        self.rescuer = Rescuer(env, store, hints, settings, statistics, clock)
        self.timeouts = Timeouts(env, store, hints, settings, statistics, clock)
        self.streaks = Streaks(env, store, hints, statistics)
        self.recounter = Recounter(env, store, self.id, statistics)
        self.deletions = Deletions(store, self._session_asked, statistics.cancelled)
        self.opener = Opener(env, store, directory, hints, self.limits.freed)
        self.flows = Flows(env, store, hints, clock, self._session_asked, statistics.cancelled)
        self.opener.on_opened = self.flows.wake
        self.sweeper = Sweeper(env, store, self.id, settings, self.promoter, clock, self.deletions)
        self.intake = EventIntake(env, store, directory, hints, self.quotas)
        self.intake.on_blocked = self.turns.alarm.ring
        statistics.on_effects = self._settled
        store.on_started = self._started

    def _take_in(self, env: Env, store: Store) -> None:
        """Who accepts executions, and who gives them to workers."""
        directory, hints, settings = self.directory, self.hints, self.settings
        self.submitter = Submitter(env, store, directory, hints, settings)
        self.submitter.quotas = self.quotas
        self.gateway = Gateway(env, store, directory, hints, self.submitter, settings, self.statistics)
        self.submitter.counters = self.gateway.lot.counters = self.counters
        answers = self.gateway.answers
        answers.secrets, answers.verbose = self.secrets, settings.verbose
        self.gateway.seals = answers.seals = self.submitter.seals = self.seals
        self.gateway.lot.on_freed = self.limits.freed
        self.hold_watch.on_held = self.gateway.hand_backs.hold
        self.presence = Presence(env, store, self.id, settings.url, answers)
        self.withholding = Withholding(store, self.sealer, self.secrets, directory, self.presence, hints)
        self.epochs = Epochs(store)

    def services(self, parts: Collection[str]) -> list[Service]:
        chosen: list[Service] = [self.epochs, *super().services(parts), self.withholding, self.presence]
        if "gateway" in parts:
            chosen += [self.gateway.lot, self.gateway.hand_backs]
        if "scheduler" in parts:
            chosen += [self.promoter, self.scheduler, self.turns, self.zones, self.joiner, self.rescuer, self.timeouts]
            chosen += [self.streaks, self.opener, self.flows, self.sweeper, self.recounter]
        return chosen

    def _settled(self, effects: Effects) -> None:
        self.quotas.ended(effects)
        self.counters.settled(effects)
        if self.settings.verbose:
            telling.ended(effects.ended, self.gateway.answers.parcels.known, self.directory.definitions.at_hand)

    def _started(self, started: Started) -> None:
        effects = Effects(ended=started.ended, stepped=started.stepped)
        if started.ended:
            self.statistics.add(effects)
        events = self.statistics.events(effects)
        self.hints.tell(Hint(lanes=started.lanes, wake_at=started.next, events=events))

    async def _submit_all(
        self,
        namespace: int,
        requests: Sequence[Submit],
        *,
        origin: str,
        caller: str = "",
        extras: Sequence[Extra] | None = None,
    ) -> list[Receipt]:
        """Submit all or nothing."""
        done = await self.submitter.submit(namespace, requests, origin=origin, caller=caller, extras=extras)
        return [receipt for receipt in done if isinstance(receipt, Receipt)]
