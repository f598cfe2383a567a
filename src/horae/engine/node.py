"""A node: one server's engine, put together. Any number of them, all active, share one PostgreSQL."""

from collections.abc import Collection, Sequence
from uuid import UUID

import structlog

from horae.engine import telling
from horae.engine.alerts import AlertDelivery, Alerts, AlertWatch
from horae.engine.alerts.channels import AlertChannels
from horae.engine.alerts.rules import AlertRules
from horae.engine.archive import Archiver, ArchiveReader
from horae.engine.artifacts import Artifacts, ArtifactSweeper, place_at
from horae.engine.audit import Audit
from horae.engine.audit_fires import FireAudits
from horae.engine.audit_log import AuditLog
from horae.engine.autoscale import Autoscale
from horae.engine.backfill import Backfiller
from horae.engine.backfills import Backfills
from horae.engine.backstop import Backstop
from horae.engine.backups import Backups
from horae.engine.calendars import Calendars
from horae.engine.callbacks import Callbacks
from horae.engine.circuit_breakers import CircuitBreakers
from horae.engine.circuits import Circuits
from horae.engine.clockwatch import ClockWatch
from horae.engine.coming import Coming
from horae.engine.counters import Counters
from horae.engine.dead_letters import DeadLetters
from horae.engine.dependencies import Dependencies
from horae.engine.directory import Directory
from horae.engine.enrolments import Enrolments
from horae.engine.epochs import Epochs
from horae.engine.erasures import Erasures
from horae.engine.event_intake import EventIntake
from horae.engine.events import Events
from horae.engine.execution_logs import ExecutionLogs
from horae.engine.executions import Executions
from horae.engine.explain import Explainer
from horae.engine.fire import Scheduler
from horae.engine.fire_counts import FireCounts
from horae.engine.fires import Fires
from horae.engine.fleet import Fleet
from horae.engine.gateway import Gateway
from horae.engine.gauges import Gauges
from horae.engine.graphs import Graphs
from horae.engine.grid import Grid
from horae.engine.held_keys import HeldKeys
from horae.engine.hints import Hint, Hints
from horae.engine.hold_watch import HoldWatch
from horae.engine.holds import Holds
from horae.engine.hook_secrets import HookSecrets
from horae.engine.hooks import Hooks
from horae.engine.job_deletions import Deletions
from horae.engine.job_plans import JobPlans
from horae.engine.job_statistics import JobStatistics
from horae.engine.jobs import Jobs
from horae.engine.joins import Joiner
from horae.engine.keys import Keys
from horae.engine.limits import Limits
from horae.engine.namespace_ends import NamespaceEnds
from horae.engine.namespace_erasures import NamespaceErasures
from horae.engine.namespaces import Namespaces
from horae.engine.oidc import Oidc
from horae.engine.overview import Overview
from horae.engine.passwords import Passwords
from horae.engine.people import People
from horae.engine.placer import Placer
from horae.engine.preemptor import Preemptor
from horae.engine.presence import Presence
from horae.engine.promote import Promoter
from horae.engine.queues import Queues
from horae.engine.quotas import Quotas
from horae.engine.replays import Replayer, Replays
from horae.engine.request_rates import RequestRates
from horae.engine.reranking import Reranker
from horae.engine.reruns import Reruns
from horae.engine.rescue import Rescuer
from horae.engine.reserver import Reserver
from horae.engine.rollouts import Rollouts
from horae.engine.sealed import Seals
from horae.engine.sealing import Sealer
from horae.engine.sealing_check import SealingCheck
from horae.engine.secrets import Secrets
from horae.engine.service import Runner, Service
from horae.engine.settings import EngineSettings
from horae.engine.sign_ins import SignIns
from horae.engine.signals import Signals
from horae.engine.statistics import Statistics
from horae.engine.steps_by_hand import StepsByHand
from horae.engine.streaks import Streaks
from horae.engine.submit import Submitter
from horae.engine.sweep import Sweeper
from horae.engine.templates import Templates
from horae.engine.timeouts import Timeouts
from horae.engine.tracing.spans import Sink, Tracing
from horae.engine.triggers import Triggers
from horae.engine.turns import Turns
from horae.engine.watching.watcher import Places, Watcher
from horae.engine.workers import Workers
from horae.engine.workflows import Flows, Opener
from horae.engine.zones import ZoneRules
from horae.env import Env, Instant
from horae.errors import HoraeError
from horae.model.event import Event
from horae.model.execution import Extra
from horae.model.protocol import Submit
from horae.outbound.allow import Allowed
from horae.outbound.fetch import Outbound
from horae.store.connections import DEFAULT, Connections
from horae.store.contract import Store
from horae.store.moves.effects import Effects
from horae.store.moves.log_lines import ATTEMPTS_KEPT
from horae.store.moves.starts import Started
from horae.store.moves.submission import Receipt
from horae.store.open import open_store_driver

PARTS = frozenset({"api", "gateway", "scheduler"})
log = structlog.get_logger("horae.engine")


class Node:
    """Everything a server does beside HTTP; `start` begins its services, `stop` ends them cleanly."""

    def __init__(self, env: Env, store: Store, settings: EngineSettings | None = None) -> None:
        self.env, self.store, self.settings = env, store, settings or EngineSettings()
        self.id: UUID = env.new_id()
        self.ready = False
        self.tracing: Tracing | None = None
        self.sealer = Sealer(
            env,
            store,
            self.settings.master_keys,
            self.settings.master_key_file,
            make=self.settings.make_master_key,
        )
        self.secrets = Secrets(env, store, self.sealer)
        self.hints = Hints(env, store, self.id)
        self.directory = Directory(env, store, self.hints)
        self.directory.fair.node = self.id
        self.statistics = Statistics(env, store, self.id)
        self.clock = ClockWatch(env, store, self.hints)
        self.hold_watch = HoldWatch(env, store, self.directory, self.hints, self.clock)
        self.holds = Holds(env, store, self.directory, self.hold_watch, self.hints)
        self.queues = Queues(env, store, self.directory, self.hints, self.statistics.cancelled)
        self.namespaces = Namespaces(env, store, self.directory, self.hints, self.settings)
        self.reranker = Reranker(env, store, self.directory, self.hints)
        self.circuits = Circuits(env, store, self.id, self.directory, self.hints, self.clock)
        self.circuit_breakers = CircuitBreakers(env, store, self.circuits)
        self.statistics.on_attempted = self.circuits.add
        self.events = Events(self.hints)
        self.statistics.listened = lambda: self.events.wanted
        self.quotas = Quotas(env, store, self.directory, self.hints, self.id)
        self.counters = Counters()
        self.statistics.on_effects = self._settled
        self.submitter = Submitter(env, store, self.directory, self.hints, self.settings)
        self.submitter.quotas = self.quotas
        self.gateway = Gateway(env, store, self.directory, self.hints, self.submitter, self.settings, self.statistics)
        self.submitter.counters = self.gateway.lot.counters = self.counters
        self.gateway.answers.secrets = self.secrets
        self.gateway.answers.verbose = self.settings.verbose
        self.seals = Seals(self.sealer)
        self.gateway.seals = self.gateway.answers.seals = self.submitter.seals = self.seals
        self.hold_watch.on_held = self.gateway.hand_backs.hold
        self.fleet = Fleet(env, store)
        self.placer = Placer(env, store, self.directory, self.hints, self.fleet, self.clock)
        self.reserver = Reserver(env, store, self.directory, self.fleet)
        self.promoter = Promoter(env, store, self.directory, self.hints, self.settings, self.clock)
        self.scheduler = Scheduler(env, store, self.directory, self.hints, self.settings, self.clock)
        self.scheduler.counters = self.counters
        self.limits = Limits(env, store, self.hints)
        self.gateway.lot.on_freed = self.limits.freed
        store.on_started = self._started
        self.turns = Turns(env, store, self.directory, self.hints, self._session_asked, self.statistics.cancelled)
        self.scheduler.on_blocked = self.turns.alarm.ring
        self.scheduler.on_fired = self.statistics.fired
        self.zones = ZoneRules(env, store, self.hints)
        self.joiner = Joiner(env, store, self.hints, self.settings, self.statistics, self.clock)
        self.rescuer = Rescuer(env, store, self.hints, self.settings, self.statistics, self.clock)
        self.timeouts = Timeouts(env, store, self.hints, self.settings, self.statistics, self.clock)
        self.streaks = Streaks(env, store, self.hints, self.statistics)
        self.backstop = Backstop(env, store, self.directory, self.hints)
        self.preemptor = Preemptor(env, store, self.directory, self.hints)
        self.deletions = Deletions(store, self._session_asked, self.statistics.cancelled)
        self.opener = Opener(env, store, self.directory, self.hints, self.limits.freed)
        self.flows = Flows(env, store, self.hints, self.clock, self._session_asked, self.statistics.cancelled)
        self.opener.on_opened = self.flows.wake
        self.sweeper = Sweeper(env, store, self.id, self.settings, self.promoter, self.clock, self.deletions)
        self.presence = Presence(env, store, self.id, self.settings.url, self.gateway.answers)
        self.intake = EventIntake(env, store, self.directory, self.hints, self.quotas)
        hook_secrets = HookSecrets(store, self.sealer, self.secrets)
        self.sealing_check = SealingCheck(env, store, self.sealer)
        channels = AlertChannels(env, store, self.sealer, self.secrets)
        self.secrets.reseal_others = [hook_secrets.reseal, channels.reseal]
        self.outbound = Outbound(Allowed.read(self.settings.outbound_allow))
        self.alerts = Alerts(
            env,
            store,
            self.hints,
            AlertRules(store),
            channels,
            AlertWatch(env, store, self.id, self.hints, self.clock),
            AlertDelivery(env, store, channels, self.outbound),
        )
        self.hooks = Hooks(env, store, self.intake, lambda: self.presence.url, hook_secrets)
        places = Places(self.settings.watch_roots)
        self.watcher = Watcher(env, store, self.directory, self.hints, self.clock, self.intake.check, places)
        self.intake.on_blocked = self.watcher.on_blocked = self.turns.alarm.ring
        self.jobs = Jobs(
            env,
            store,
            self.directory.alarm.ring,
            rank=self.directory.rank,
            on_change=self._job_changed,
            on_event=self._tell,
            on_queued=lambda lanes: self.hints.tell(Hint(lanes=dict(lanes))),
            fire_due=self.scheduler.step,
            deletions=self.deletions,
            check_place=places.check,
            held=self.hold_watch.why_named,
            default_queue=self.queues.default_of,
            warn=self.fleet.warning,
        )
        self.job_plans = JobPlans(store, self.jobs)
        self.rollouts = Rollouts(env, store, self.id, self.hints, self.jobs)
        self.statistics.on_trials = self.rollouts.add
        self.templates = Templates(env, store, self.jobs)
        self.fires = Fires(env, store)
        self.fire_counts = FireCounts(env, store)
        self.triggers = Triggers(env, store, self.jobs, on_change=self._job_changed, fire_due=self.scheduler.step)
        self.calendars = Calendars(env, store, on_change=self._calendar_changed, fire_due=self.scheduler.step)
        self.dependencies = Dependencies(store, self.directory, self.hints)
        self.executions = Executions(
            env,
            store,
            waits=self.dependencies.waits,
            held=self.hold_watch.why,
            retention=self.settings.retention,
            on_asked=self._session_asked,
            on_cancelled=self.statistics.cancelled,
            on_event=self._tell,
        )
        self.logs = ExecutionLogs(store, self.executions, most=self.settings.log_limit * ATTEMPTS_KEPT)
        self.signals = Signals(env, store, self.executions, self.hints)
        self.callbacks = Callbacks(store, self.signals)
        place = place_at(self.settings.artifacts)
        self.archive = ArchiveReader(env, store, place)
        self.archiver = Archiver(env, store, self.id, self.settings.retention, self.clock, self.executions, place)
        self.erasures = Erasures(store, self.executions, self.seals, self.archive)
        self.graphs = Graphs(env, store, self.executions)
        self.steps_by_hand = StepsByHand(env, store, self.executions)
        self.explainer = Explainer(env, store, self.directory, self.hold_watch, self.executions)
        self.backfiller = Backfiller(env, store, self.directory, self.hints)
        self.backfills = Backfills(
            env,
            store,
            wake=self.backfiller.alarm.ring,
            cancel=self.executions.cancel,
            fire_due=self.scheduler.step,
        )
        self.dead_letters = DeadLetters(env, store, self._submit_all)
        self.reruns = Reruns(store, self.executions, self._submit_all)
        self.replayer = Replayer(env, store, self.dead_letters)
        self.replays = Replays(env, store, self.dead_letters, self.replayer.alarm.ring)
        self.workers = Workers(
            env, store, self.settings, on_request=self._session_asked, costs=lambda: self.directory.demands.costs
        )
        self.autoscale = Autoscale(env, store, self.directory)
        self.gauges = Gauges(env, store, self.id, self.statistics)
        self.coming = Coming(env, store)
        self.overview = Overview(env, store, self.directory, self.gauges, self.coming, self.workers)
        self.job_statistics = JobStatistics(env, store)
        self.grid = Grid(store)
        self.held_keys = HeldKeys(store)
        self.keys = Keys(env, store)
        self.request_rates = RequestRates(env, self.settings.request_rate)
        self.namespace_erasures = NamespaceErasures(
            env,
            store,
            self.namespaces,
            self.jobs,
            self.backfills,
            self.replays,
            self.keys,
            NamespaceEnds(store, self._session_asked),
            self.archive,
        )
        self.enrolments = Enrolments(env, store)
        passwords = Passwords()
        self.sign_ins = SignIns(env, store, passwords, self.settings.session_idle, self.settings.session_life)
        self.keys.people = self.sign_ins
        self.people = People(env, store, passwords, self.sign_ins)
        self.oidc = (
            Oidc(env, store, self.sign_ins, self.settings.oidc, lambda: self.callbacks.secret)
            if self.settings.oidc
            else None
        )
        self.audit = Audit(env, store, self.hints)
        self.audit_log = AuditLog(env, store, self.sealer)
        self.fire_audits = FireAudits(env, store)
        self.backups = Backups(env, store)
        limit = self.settings.artifact_limit
        self.artifacts = Artifacts(env, store, self.gateway.sessions, self.executions, place, limit)
        self.artifact_sweeper = ArtifactSweeper(env, store, self.id, place)
        self.epochs = Epochs(store, self.gateway)
        self._runner = Runner(env, self._on_store)

    @classmethod
    async def open(
        cls,
        env: Env,
        url: str,
        settings: EngineSettings | None = None,
        owner: str = "",
        connections: Connections = DEFAULT,
    ) -> "Node":
        """Open the store at a URL, bring it up to date, and make a node on it."""
        driver = await open_store_driver(url, env, owner, connections)
        try:
            await driver.migrate()
            await driver.ensure_partitions(env.now())
            return cls(env, Store(driver, env), settings)
        except BaseException:
            await driver.close()
            raise

    def trace(self, sink: Sink) -> None:
        """Tell of executions from now on: submitted, queued, begun."""
        self.tracing = Tracing(self.env, sink)
        self.submitter.tracing = self.gateway.answers.tracing = self.opener.tracing = self.tracing
        self.executions.traced = True

    @property
    def epoch(self) -> int:
        """The store's epoch as this server knows it."""
        return self.epochs.current

    def services(self, parts: Collection[str] = PARTS) -> list[Service]:
        """The services of the parts this server runs. Hints and the directory serve all parts."""
        chosen: list[Service] = [
            *(self.epochs, self.clock, self.directory, self.hold_watch, self.hints, self.statistics, self.presence),
            self.directory.expectations,
            self.circuits,
            self.rollouts,
            self.quotas,
            self.coming,
        ]
        if "gateway" in parts:
            chosen += [self.gateway.lot, self.gateway.hand_backs, self.directory.fair, self.reserver]
        if "scheduler" in parts:
            chosen += [
                self.promoter,
                self.reranker,
                self.placer,
                self.scheduler,
                self.limits,
                self.turns,
                self.zones,
                self.joiner,
                self.backfiller,
                self.replayer,
                self.rescuer,
                self.timeouts,
                self.streaks,
                self.backstop,
                self.preemptor,
                self.opener,
                self.flows,
                self.sweeper,
                self.gauges,
                self.artifact_sweeper,
                self.archiver,
            ]
            chosen += [self.watcher, self.alerts.watch, self.alerts.delivery]
        return chosen

    async def prepare(self) -> None:
        """Learn what the store holds."""
        await self.epochs.step()
        await self.sealer.prepare()
        await self.callbacks.prepare()
        await self.clock.step()
        await self.directory.load()
        await self.directory.expectations.step()
        await self.hold_watch.step()
        await self.quotas.step()
        await self.directory.step()
        self.ready = True

    async def start(self, parts: Collection[str] = PARTS) -> None:
        """Begin to serve."""
        self.presence.parts = parts
        await self.prepare()
        await self.hints.connect()
        if "gateway" in parts:
            self.submitter.on_parcels = self.gateway.answers.parcels.keep
            self.submitter.lot = self.gateway.lot
        for service in self.services(parts):
            self._runner.start(service)

    async def stop(self) -> None:
        """Answer who waits, finish what was accepted, and let go of the store."""
        self.events.close()
        await self.gateway.stop()
        await self.submitter.close()
        await self.intake.close()
        await self._runner.stop()
        await self.watcher.stop()
        await self.alerts.delivery.stop()
        await self.outbound.close()
        try:
            await self.statistics.close()
            await self.quotas.flush()
            await self.presence.leave()
        except HoraeError as error:
            log.warning("left without a word", error=error.detail)
        await self.store.driver.close()
        if self.tracing is not None:
            await self.tracing.sink.close()

    async def warning(self, namespace: int, ref: str) -> str | None:
        """What is odd about a job that was just submitted, if it needs what no worker ever had."""
        stored = self.directory.known(namespace, ref)
        return None if stored is None else await self.fleet.warning(namespace, stored.job.spec)

    def _on_store(self, reachable: bool) -> None:
        self.ready = reachable

    def _settled(self, effects: Effects) -> None:
        self.quotas.ended(effects)
        self.counters.settled(effects)
        if self.settings.verbose:
            telling.ended(effects.ended, self.gateway.answers.parcels.known)

    def _job_changed(self, job: UUID) -> None:
        self.hints.tell(Hint(jobs=[job], fire_at=self.env.now()))

    def _calendar_changed(self, now: Instant) -> None:
        self.hints.tell(Hint(fire_at=now, holds=True))

    def _tell(self, event: Event) -> None:
        self.hints.tell(Hint(events=[event]))

    def _started(self, started: Started) -> None:
        effects = Effects(ended=started.ended, stepped=started.stepped)
        if started.ended:
            self.statistics.add(effects)
        events = self.statistics.events(effects)
        self.hints.tell(Hint(lanes=started.lanes, wake_at=started.next, events=events))

    def _session_asked(self, session: UUID) -> None:
        self.hints.tell(Hint(sessions=[session]))

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
