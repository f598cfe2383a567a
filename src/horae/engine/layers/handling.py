"""What can be asked of executions and done to them, one or thousands; what they leave behind; and workers."""

from collections.abc import Collection

from horae.engine.executions.executions import Executions
from horae.engine.executions.explain import Explainer
from horae.engine.executions.reruns import Reruns
from horae.engine.executions.signals import Signals
from horae.engine.fleet.workers import Workers
from horae.engine.layers.defining import Defining
from horae.engine.service import Service
from horae.engine.settings import EngineSettings
from horae.engine.storage.place import place_at
from horae.engine.workflows.callbacks import Callbacks
from horae.engine.workflows.graphs import Graphs
from horae.engine.workflows.steps_by_hand import StepsByHand
from horae.env import Env
from horae.features.archive.engine.archiver import Archiver
from horae.features.archive.engine.reader import ArchiveReader
from horae.features.artifacts.engine.keeper import Artifacts
from horae.features.artifacts.engine.sweep import ArtifactSweeper
from horae.features.backfills.engine.backfiller import Backfiller
from horae.features.backfills.engine.backfills import Backfills
from horae.features.dead_letters.engine.dead_letters import DeadLetters
from horae.features.dead_letters.engine.replays import Replayer, Replays
from horae.features.erasure.engine import Erasures
from horae.features.logs.engine.logs import ExecutionLogs
from horae.store.contract import Store
from horae.store.executions.log_lines import ATTEMPTS_KEPT


class Handling(Defining):
    """Executions and workers as people handle them."""

    def __init__(self, env: Env, store: Store, settings: EngineSettings) -> None:
        super().__init__(env, store, settings)
        self.executions = Executions(
            env,
            store,
            waits=self.dependencies.waits,
            held=self.hold_watch.why,
            retention=settings.retention,
            on_asked=self._session_asked,
            on_cancelled=self.statistics.cancelled,
            on_event=self._tell,
            count=self.statistics.step,
        )
        self.logs = ExecutionLogs(store, self.executions, most=settings.log_limit * ATTEMPTS_KEPT)
        self.signals = Signals(env, store, self.executions, self.hints)
        self.callbacks = Callbacks(store, self.signals)
        self.graphs = Graphs(env, store, self.executions)
        self.steps_by_hand = StepsByHand(env, store, self.executions)
        self.explainer = Explainer(env, store, self.directory, self.hold_watch, self.executions)
        self.reruns = Reruns(store, self.executions, self._submit_all)
        self.workers = Workers(
            env, store, settings, on_request=self._session_asked, costs=lambda: self.directory.demands.costs
        )
        self._handle_many(env, store)
        self._keep(env, store)

    def _handle_many(self, env: Env, store: Store) -> None:
        """Backfills, and dead letters that run again."""
        self.backfiller = Backfiller(env, store, self.directory, self.hints)
        self.backfills = Backfills(
            env,
            store,
            wake=self.backfiller.alarm.ring,
            cancel=self.executions.cancel,
            fire_due=self.scheduler.step,
        )
        self.dead_letters = DeadLetters(env, store, self._submit_all)
        self.replayer = Replayer(env, store, self.dead_letters)
        self.replays = Replays(env, store, self.dead_letters, self.replayer.alarm.ring)

    def _keep(self, env: Env, store: Store) -> None:
        """Files and the archive, which lie in one place; and what is erased from it."""
        place, settings = place_at(self.settings.artifacts), self.settings
        sessions = self.gateway.sessions
        self.artifacts = Artifacts(env, store, sessions, self.executions, place, settings.artifact_limit)
        self.artifact_sweeper = ArtifactSweeper(env, store, self.id, place)
        self.archive = ArchiveReader(env, store, place)
        self.archiver = Archiver(env, store, self.id, settings.retention, self.clock, self.executions, place)
        self.erasures = Erasures(store, self.executions, self.seals, self.archive)

    def services(self, parts: Collection[str]) -> list[Service]:
        chosen = super().services(parts)
        if "scheduler" in parts:
            chosen += [self.backfiller, self.replayer, self.artifact_sweeper, self.archiver]
        return chosen
