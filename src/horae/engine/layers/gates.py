"""What decides whether, where and when something may start: queues, holds, circuits, quotas, limits and the fleet."""

from collections.abc import Collection

from horae.engine.admission.circuit_breakers import CircuitBreakers
from horae.engine.admission.circuits import Circuits
from horae.engine.admission.hold_watch import HoldWatch
from horae.engine.admission.holds import Holds
from horae.engine.admission.limits import Limits
from horae.engine.admission.placement.placer import Placer
from horae.engine.admission.placement.preemptor import Preemptor
from horae.engine.admission.placement.reserver import Reserver
from horae.engine.admission.queue_views import QueueViews
from horae.engine.admission.queues import Queues
from horae.engine.admission.quotas import Quotas
from horae.engine.admission.reranking import Reranker
from horae.engine.fleet.backstop import Backstop
from horae.engine.fleet.fleet import Fleet
from horae.engine.layers.ground import Ground
from horae.engine.service import Service
from horae.engine.settings import EngineSettings
from horae.env import Env
from horae.store.contract import Store


class Gates(Ground):
    """What stands before a start."""

    def __init__(self, env: Env, store: Store, settings: EngineSettings) -> None:
        super().__init__(env, store, settings)
        directory, hints = self.directory, self.hints
        self.hold_watch = HoldWatch(env, store, directory, hints, self.clock)
        self.holds = Holds(env, store, directory, self.hold_watch, hints)
        self.queues = Queues(env, store, directory, hints, self.statistics.cancelled)
        self.queue_views = QueueViews(store, directory, self.holds)
        self.reranker = Reranker(env, store, directory, hints)
        self.circuits = Circuits(env, store, self.id, directory, hints, self.clock)
        self.circuit_breakers = CircuitBreakers(env, store, self.circuits)
        self.statistics.on_attempted = self.circuits.add
        self.quotas = Quotas(env, store, directory, hints, self.id, self.fair_access)
        self.limits = Limits(env, store, hints)
        self.fleet = Fleet(env, store)
        self.placer = Placer(env, store, directory, hints, self.fleet, self.clock)
        self.reserver = Reserver(env, store, directory, self.fleet)
        self.backstop = Backstop(env, store, directory, hints)
        self.preemptor = Preemptor(env, store, directory, hints)

    def services(self, parts: Collection[str]) -> list[Service]:
        chosen: list[Service] = [*super().services(parts), self.hold_watch, self.circuits, self.quotas]
        if "gateway" in parts:
            chosen += [self.reserver]
        if "scheduler" in parts:
            chosen += [self.reranker, self.placer, self.limits, self.backstop, self.preemptor]
        return chosen
