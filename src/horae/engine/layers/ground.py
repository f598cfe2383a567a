"""What everything stands on: the store, what seals, hints, the directory, what is counted, time, and the way out."""

from collections.abc import Collection
from uuid import UUID

from horae.engine.base.clockwatch import ClockWatch
from horae.engine.base.counters import Counters
from horae.engine.base.event_feed import Events
from horae.engine.base.hints import Hint, Hints
from horae.engine.base.sealed import Seals
from horae.engine.base.sealing import Sealer
from horae.engine.base.sealing_check import SealingCheck
from horae.engine.base.store_report import StoreReport
from horae.engine.definitions.directory import Directory
from horae.engine.fleet.room import Room
from horae.engine.service import Service
from horae.engine.settings import EngineSettings
from horae.engine.tenancy.fair_access import FairAccess
from horae.engine.tenancy.secrets import Secrets
from horae.env import Env
from horae.features.statistics.engine.statistics import Statistics
from horae.features.tracing.engine.spans import Tracing
from horae.model.base.event import Event
from horae.outbound.allow import Allowed
from horae.outbound.fetch import Outbound
from horae.store.contract import Store


class Ground:
    """What every other layer uses."""

    def __init__(self, env: Env, store: Store, settings: EngineSettings) -> None:
        self.env, self.store, self.settings = env, store, settings
        self.id: UUID = env.new_id()
        self.ready = False
        self.tracing: Tracing | None = None
        self.sealer = Sealer(env, store, settings.master_keys, settings.master_key_file, make=settings.make_master_key)
        self.sealing_check = SealingCheck(env, store, self.sealer)
        self.store_report = StoreReport(env, store, self.sealing_check)
        self.secrets = Secrets(env, store, self.sealer)
        self.seals = Seals(self.sealer)
        self.hints = Hints(env, store, self.id)
        self.directory = Directory(env, store, self.hints)
        self.directory.fair.node = self.id
        self.statistics = Statistics(env, store, self.id)
        self.room = Room(store)
        self.clock = ClockWatch(env, store, self.hints)
        self.events = Events(self.hints)
        self.statistics.listened = lambda: self.events.wanted
        self.counters = Counters()
        self.fair_access = FairAccess(env, self.directory.weight, settings)
        self.outbound = Outbound(Allowed.read(settings.outbound_allow))

    def services(self, parts: Collection[str]) -> list[Service]:
        """The services of the parts that a server runs; each layer adds its own."""
        shared: list[Service] = [self.clock, self.directory, self.hints, self.statistics, self.directory.expectations]
        shared.append(self.room)
        return [*shared, self.directory.fair] if "gateway" in parts else shared

    def _tell(self, event: Event) -> None:
        self.hints.tell(Hint(events=[event]))

    def _session_asked(self, session: UUID) -> None:
        self.hints.tell(Hint(sessions=[session]))
