"""The fleet: workers' sessions, the answers to their exchanges, and the servers that they can reach."""

from collections.abc import Collection, Sequence

from horae.engine.base.presence import Presence
from horae.engine.fleet.answers import AnswerBuilder
from horae.engine.fleet.autoscale import Autoscale
from horae.engine.fleet.enrolments import Enrolments
from horae.engine.fleet.hand_backs import HandBacks
from horae.engine.fleet.parking import ParkingLot
from horae.engine.fleet.rescuer import Rescuer
from horae.engine.fleet.session_cache import SessionCache
from horae.engine.fleet.workers import Workers
from horae.engine.parts.base import BasePart
from horae.engine.parts.part import ServerPart
from horae.engine.service import Service
from horae.engine.tenancy.sealed_kinds import MasterKeyCheck
from horae.model.executions.tracer import Tracer


class FleetPart(ServerPart):
    """Sessions, waiting exchanges, answers, rescues, and views of workers for users."""

    def __init__(self, base: BasePart, tracer: Tracer | None) -> None:
        env, store, directory, hints = base.env, base.store, base.directory, base.hints
        self.sessions = SessionCache(env, store, directory)
        of_session = self.sessions.lanes_of, self.sessions.preferences_of
        self.parking_lot = ParkingLot(env, store, directory, hints, base.counters, base.topics, *of_session)
        self.hand_backs = HandBacks(env, store, directory, hints, base.topics, *of_session)
        self.presence = Presence(env, store, base.id, base.settings.url, directory)
        self.answers = AnswerBuilder(
            env, directory, base.parcels, base.secrets, base.execution_sealer, self.presence, tracer,
            verbose=base.settings.verbose,
        )  # fmt: skip
        self.master_key_check = MasterKeyCheck(store, base.sealer, base.secrets, directory, hints)
        self.rescuer = Rescuer(env, store, hints, base.settings, base.outcomes, base.clock)
        self.workers = Workers(env, store, base.settings, base.outcomes, costs=lambda: directory.lane_needs.costs)
        self.enrolments = Enrolments(env, store)
        self.autoscale = Autoscale(env, store, directory)

    def begin(self, roles: Collection[str], url: str) -> None:
        """Set the roles and the address by which workers and other servers know this server."""
        self.presence.begin(roles, url)

    async def prepare(self) -> None:
        await self.master_key_check.step()

    def services(self, roles: Collection[str]) -> Sequence[Service]:
        chosen: list[Service] = [self.master_key_check, self.presence]
        if "gateway" in roles:
            chosen += [self.parking_lot, self.hand_backs]
        if "scheduler" in roles:
            chosen += [self.rescuer]
        return chosen

    async def flush(self) -> None:
        await self.presence.leave()
