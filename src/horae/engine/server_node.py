"""A node: the complete engine of one server. Any number of nodes, all active, share one PostgreSQL."""

from collections.abc import Collection
from typing import TypeVar

import structlog
from msgspec import structs

from horae.engine.executions.submitter import Submitter
from horae.engine.fleet.gateway import Gateway
from horae.engine.parts.admission import AdmissionPart
from horae.engine.parts.base import BasePart
from horae.engine.parts.definitions import DefinitionsPart
from horae.engine.parts.firing import FiringPart
from horae.engine.parts.fleet import FleetPart
from horae.engine.parts.optional import OptionalPart
from horae.engine.parts.part import ROLES, ServerPart
from horae.engine.parts.tenancy import TenancyPart
from horae.engine.parts.work import WorkPart
from horae.engine.parts.workflows import WorkflowsPart
from horae.engine.service import Runner, Service
from horae.engine.settings import EngineSettings
from horae.env import Env
from horae.errors import HoraeError
from horae.feature import enabled, load, switched_off
from horae.model.base.store_view import StoreView
from horae.model.executions.tracer import Tracer
from horae.store.contract import Store
from horae.store.open import DEFAULT, Connections, open_store_driver

P = TypeVar("P", bound=ServerPart)
Q = TypeVar("Q", bound=OptionalPart)
log = structlog.get_logger("horae.engine")


class ServerNode:
    """Everything that a server does apart from HTTP. `start` begins its services, `stop` ends them cleanly.

    It is composed of parts, first the kernel's, then those of features; each part may use the earlier ones. Callers
    enter by `submitter`, workers by `gateway`.
    """

    def __init__(
        self,
        env: Env,
        store: Store,
        settings: EngineSettings | None = None,
        *,
        tracer: Tracer | None = None,
    ) -> None:
        settings = settings or EngineSettings()
        self.features = enabled(settings.features)
        self.env, self.store, self.settings, self.tracer = env, store, settings, tracer
        self.ready = False
        self.base = base = BasePart(env, store, settings, self.features)
        self.id = base.id
        self.admission = AdmissionPart(base)
        self.fleet = FleetPart(base, tracer)
        self.submitter = Submitter(
            env, store, base.directory, base.hints, settings, self.admission.quotas, base.execution_sealer,
            base.counters, base.parcels, self.fleet.parking_lot, tracer,
        )  # fmt: skip
        self.gateway = Gateway(
            env, store, base.directory, base.hints, settings, base.outcomes, base.execution_sealer, self.submitter,
            self.fleet.sessions, self.fleet.parking_lot, self.fleet.hand_backs, self.fleet.answers,
        )  # fmt: skip
        self.firing = FiringPart(base)
        check_places = [load(feature.check_place)(settings) for feature in self.features if feature.check_place]
        self.definitions = DefinitionsPart(base, self.admission, self.firing, *check_places)
        self.work = WorkPart(
            base, self.admission, self.fleet, self.definitions, self.submitter, traced=tracer is not None
        )
        self.workflows = WorkflowsPart(base, self.work, tracer)
        users = [load(feature.users)(env, store, settings) for feature in self.features if feature.users]
        (audit,) = [load(feature.audit)(env, store, base.sealer) for feature in self.features if feature.audit]
        self.tenancy = TenancyPart(base, audit, *users)
        self._parts: dict[type[ServerPart], ServerPart] = {
            type(part): part
            for part in (
                base, self.admission, self.fleet, self.firing, self.definitions, self.work, self.workflows, self.tenancy
            )
        }  # fmt: skip
        for feature in self.features:
            if feature.part:
                part = load(feature.part)(self)
                self._parts[type(part)] = part
        self._runner = Runner(env, self._on_store)

    @classmethod
    async def open(
        cls,
        env: Env,
        url: str,
        settings: EngineSettings | None = None,
        owner: str = "",
        connections: Connections = DEFAULT,
        tracer: Tracer | None = None,
    ) -> "ServerNode":
        """Open the store at a URL, migrate it, and return a node on it."""
        driver = await open_store_driver(url, env, owner, connections)
        try:
            await driver.migrate()
            await driver.ensure_partitions(env.now())
            return cls(env, Store(driver, env), settings, tracer=tracer)
        except BaseException:
            await driver.close()
            raise

    def part(self, kind: type[P]) -> P:
        """Return the part of this type. Its feature must be enabled."""
        found = self._parts[kind]
        assert isinstance(found, kind)
        return found

    def has(self, feature: str) -> bool:
        """Return whether a feature is enabled."""
        return any(enabled.name == feature for enabled in self.features)

    def find(self, kind: type[P]) -> P | None:
        """Return the part of this kind; None while its feature is disabled."""
        return next((part for part in self._parts.values() if isinstance(part, kind)), None)

    def require(self, kind: type[Q]) -> Q:
        """Return the optional part of this kind. Raises NotFound while its feature is disabled."""
        found = self.find(kind)
        if found is None:
            raise switched_off(kind.feature)
        return found

    @property
    def epoch(self) -> int:
        """The store's epoch as this server knows it."""
        return self.base.epochs.current

    def services(self, roles: Collection[str] = ROLES) -> list[Service]:
        """Return the services that run in a server of these roles."""
        return [service for part in self._parts.values() for service in part.services(roles)]

    async def prepare(self) -> None:
        """Read from the store what the parts need before they serve."""
        for part in self._parts.values():
            await part.prepare()
        await self.base.directory.step()
        self.ready = True

    async def start(self, roles: Collection[str] = ROLES, url: str = "") -> None:
        """Begin to serve in these roles, at this address unless the settings name another."""
        self.fleet.begin(roles, url)
        await self.prepare()
        await self.base.hints.connect()
        for service in self.services(roles):
            self._runner.start(service)

    async def stop(self) -> None:
        """Answer waiting requests, finish accepted work, and close the store."""
        self.base.events.close()
        await self.gateway.stop()
        await self.submitter.close()
        last_first = list(reversed(self._parts.values()))
        for part in last_first:
            await part.finish()
        await self._runner.stop()
        for part in last_first:
            await part.stop()
        for part in last_first:
            try:
                await part.flush()
            except HoraeError as error:
                log.warning("server stopped without writing all that it had counted", error=error.detail)
        await self.store.database.close()
        for part in last_first:
            await part.close()

    async def report(self) -> StoreView:
        """Return a report on the store, completed with the facts that parts add."""
        enabled = tuple(sorted(feature.name for feature in self.features))
        report = structs.replace(await self.tenancy.store_report.read(), features=enabled)
        for part in self._parts.values():
            report = await part.complete_report(report)
        return report

    async def warning(self, namespace: int, ref: str) -> str | None:
        """Return a warning for a job that was just submitted, if no worker ever offered what it needs."""
        stored = self.base.directory.jobs.cached(namespace, ref)
        return None if stored is None else await self.admission.worker_offers.warning(namespace, stored.job.spec)

    def _on_store(self, reachable: bool) -> None:
        self.ready = reachable
