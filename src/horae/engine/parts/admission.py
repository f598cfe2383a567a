"""Admission: everything that decides whether an execution may start."""

from collections.abc import Collection, Sequence

from horae.engine.admission.circuit_breakers import CircuitBreakers
from horae.engine.admission.circuit_monitor import CircuitMonitor
from horae.engine.admission.hold_watch import HoldWatch
from horae.engine.admission.holds import QueueHolds
from horae.engine.admission.limits import HeldKeys, LimitReconciler
from horae.engine.admission.placement.placer import Placer
from horae.engine.admission.placement.preemptor import Preemptor
from horae.engine.admission.placement.reserver import Reserver
from horae.engine.admission.queues import Queues, QueueViews
from horae.engine.admission.quotas import Quotas
from horae.engine.admission.reranking import Reranker
from horae.engine.fleet.backstop import Backstop
from horae.engine.fleet.worker_offers import WorkerOffers
from horae.engine.parts.base import BasePart
from horae.engine.parts.part import ServerPart
from horae.engine.service import Service


class AdmissionPart(ServerPart):
    """Queues, holds, circuits, quotas, limits and placement."""

    def __init__(self, base: BasePart) -> None:
        env, store, directory, hints = base.env, base.store, base.directory, base.hints
        self.hold_watch = HoldWatch(env, store, directory, hints, base.clock, base.topics)
        self.holds = QueueHolds(env, store, directory, self.hold_watch, hints)
        self.queues = Queues(env, store, directory, hints, base.outcomes)
        self.queue_views = QueueViews(store, self.holds)
        self.reranker = Reranker(env, store, directory, hints)
        self.circuit_monitor = CircuitMonitor(env, store, base.id, directory, hints, base.clock, base.topics)
        self.circuit_breakers = CircuitBreakers(env, store, self.circuit_monitor)
        self.quotas = Quotas(env, store, directory, hints, base.id, base.fair_access, base.topics)
        self.limit_reconciler = LimitReconciler(env, store, hints, base.topics)
        self.held_keys = HeldKeys(store)
        self.worker_offers = WorkerOffers(env, store)
        self.placer = Placer(env, store, directory, hints, self.worker_offers, base.clock)
        self.reserver = Reserver(env, store, directory, self.worker_offers)
        self.backstop = Backstop(env, store, directory, hints)
        self.preemptor = Preemptor(env, store, directory, hints)

    async def prepare(self) -> None:
        await self.hold_watch.step()
        await self.quotas.step()

    def services(self, roles: Collection[str]) -> Sequence[Service]:
        chosen: list[Service] = [self.hold_watch, self.circuit_monitor, self.quotas]
        if "gateway" in roles:
            chosen += [self.reserver]
        if "scheduler" in roles:
            chosen += [self.reranker, self.placer, self.limit_reconciler, self.backstop, self.preemptor]
        return chosen

    async def flush(self) -> None:
        await self.quotas.flush()
