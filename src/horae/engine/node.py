"""A node: one server's engine, put together. Any number of them, all active, share one PostgreSQL."""

from collections.abc import Collection

import structlog

from horae.engine.layers.entering import Entering
from horae.engine.service import Runner, Service
from horae.engine.settings import EngineSettings
from horae.env import Env
from horae.errors import HoraeError
from horae.features.tracing.engine.flows import FlowSpans
from horae.features.tracing.engine.spans import Sink, Tracing
from horae.store.connections import DEFAULT, Connections
from horae.store.contract import Store
from horae.store.open import open_store_driver

PARTS = frozenset({"api", "gateway", "scheduler"})
log = structlog.get_logger("horae.engine")


class Node(Entering):
    """Everything a server does beside HTTP; `start` begins its services, `stop` ends them cleanly.

    What it is made of stands in its layers: ground, gates, moving, defining, handling, seeing, entering.
    """

    def __init__(self, env: Env, store: Store, settings: EngineSettings | None = None) -> None:
        super().__init__(env, store, settings or EngineSettings())
        self.flow_spans: FlowSpans | None = None
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
        """Tell of executions from now on: submitted, queued, begun; and of workflows, ended."""
        self.tracing = Tracing(self.env, sink)
        self.submitter.tracing = self.gateway.answers.tracing = self.opener.tracing = self.tracing
        self.executions.traced = True
        self.flow_spans = FlowSpans(self.store, self.directory.definitions, self.tracing)
        self.statistics.on_ended = self.flow_spans.add

    @property
    def epoch(self) -> int:
        """The store's epoch as this server knows it."""
        return self.epochs.current

    def services(self, parts: Collection[str] = PARTS) -> list[Service]:
        """The services of the parts this server runs. Hints and the directory serve all parts."""
        chosen = super().services(parts)
        return chosen if self.flow_spans is None else [*chosen, self.flow_spans]

    async def prepare(self) -> None:
        """Learn what the store holds."""
        await self.epochs.step()
        await self.recounter.prepare()
        await self.sealer.prepare()
        await self.callbacks.prepare()
        await self.clock.step()
        await self.withholding.step()
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
            if self.flow_spans is not None:
                await self.flow_spans.step()
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
