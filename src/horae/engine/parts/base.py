"""The base of a server: store, hints, directory of definitions, sealing, counters, topics and clock."""

from collections.abc import Collection, Sequence
from uuid import UUID

from horae.engine.base import execution_log
from horae.engine.base.clockwatch import ClockWatch
from horae.engine.base.counters import Counters
from horae.engine.base.event_feed import EventFeed
from horae.engine.base.execution_sealing import ExecutionSealer
from horae.engine.base.hints import Hints
from horae.engine.base.installation import DiskSpaceCheck, EpochWatch
from horae.engine.base.sealing import Sealer
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.executions.outcomes import Outcomes
from horae.engine.fleet.answers import ParcelCache
from horae.engine.parts.part import ServerPart
from horae.engine.service import Service
from horae.engine.settings import EngineSettings
from horae.engine.tenancy.fair_access import FairAccess
from horae.engine.tenancy.secrets import Secrets
from horae.engine.topics import Topics
from horae.env import Env
from horae.feature import Feature
from horae.outbound.allow import AllowedAddresses
from horae.outbound.fetch import Outbound
from horae.store.contract import Store
from horae.store.executions.leaving.effects import Effects


class BasePart(ServerPart):
    """Objects that every other part uses."""

    def __init__(self, env: Env, store: Store, settings: EngineSettings, features: Sequence[Feature]) -> None:
        self.env, self.store, self.settings, self.features = env, store, settings, features
        self.id: UUID = env.new_id()
        self.topics = Topics(store)
        self.counters = Counters()
        self.topics.settled.subscribe("counters", self.counters.settled)
        if settings.verbose:
            self.topics.settled.subscribe("log", self._log)
        self.epochs = EpochWatch(store)
        self.sealer = Sealer(env, store, settings.master_keys, settings.master_key_file, make=settings.make_master_key)
        self.execution_sealer = ExecutionSealer(self.sealer)
        self.secrets = Secrets(env, store, self.sealer)
        self.hints = Hints(env, store, self.id)
        self.events = EventFeed(self.hints)
        self.outcomes = Outcomes(env, self.hints, self.events, self.counters, self.topics)
        self.directory = LocalDirectory(env, store, self.hints, self.id)
        self.parcels = ParcelCache(store)
        self.clock = ClockWatch(env, store, self.hints)
        self.disk_space_check = DiskSpaceCheck(store)
        self.fair_access = FairAccess(env, self.directory.weight, settings)
        self.outbound = Outbound(AllowedAddresses.read(settings.outbound_allow))

    def _log(self, effects: Effects) -> None:
        execution_log.log_ends(effects.ended, self.parcels.cached, self.directory.definitions.cached)

    async def prepare(self) -> None:
        await self.epochs.step()
        await self.sealer.prepare()
        await self.clock.step()
        await self.directory.load()
        await self.directory.expectations.step()

    def services(self, roles: Collection[str]) -> Sequence[Service]:
        directory = self.directory
        shared: list[Service] = [
            self.epochs,
            self.clock,
            directory,
            self.hints,
            directory.expectations,
            self.disk_space_check,
        ]
        return [*shared, directory.fair] if "gateway" in roles else shared

    async def stop(self) -> None:
        await self.outbound.close()
