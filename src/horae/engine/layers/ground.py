"""What everything stands on: the store, what seals, hints, the directory, what is counted, time, and the way out."""

from collections.abc import Collection
from uuid import UUID

from horae.engine.clockwatch import ClockWatch
from horae.engine.counters import Counters
from horae.engine.directory import Directory
from horae.engine.events import Events
from horae.engine.fair_access import FairAccess
from horae.engine.hints import Hint, Hints
from horae.engine.room import Room
from horae.engine.sealed import Seals
from horae.engine.sealing import Sealer
from horae.engine.sealing_check import SealingCheck
from horae.engine.secrets import Secrets
from horae.engine.service import Service
from horae.engine.settings import EngineSettings
from horae.engine.statistics import Statistics
from horae.engine.tracing.spans import Tracing
from horae.env import Env
from horae.model.event import Event
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
