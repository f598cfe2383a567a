"""Firing: due triggers, completed joins, turns of executions that must not overlap, and the history of fires."""

from collections.abc import Collection, Sequence

from horae.engine.base.zones import ZoneRules
from horae.engine.parts.base import BasePart
from horae.engine.parts.part import ServerPart
from horae.engine.service import Service
from horae.engine.triggers.dependencies import JoinChecker
from horae.engine.triggers.fire_audit import FireAuditor
from horae.engine.triggers.fire_counts import FireCounts
from horae.engine.triggers.fire_forecasts import FireForecasts
from horae.engine.triggers.fires import Fires
from horae.engine.triggers.scheduler import Scheduler
from horae.engine.triggers.streaks import Streaks
from horae.engine.triggers.turns import Turns
from horae.feature import load


class FiringPart(ServerPart):
    """Decides timers and joins, and shows past and coming fires."""

    def __init__(self, base: BasePart) -> None:
        env, store, directory, hints, settings = base.env, base.store, base.directory, base.hints, base.settings
        topics, outcomes, clock = base.topics, base.outcomes, base.clock
        self.scheduler = Scheduler(env, store, directory, hints, settings, clock, base.counters, topics)
        self.turns = Turns(env, store, directory, hints, outcomes, topics)
        self.zones = ZoneRules(env, store, hints)
        self.join_checker = JoinChecker(env, store, hints, settings, outcomes, clock)
        self.streaks = Streaks(env, store, hints, topics)
        self.forecasts = FireForecasts(env, store)
        self.fires = Fires(env, store)
        ended = [load(feature.ended_counts) for feature in base.features if feature.ended_counts]
        self.fire_counts = FireCounts(env, store, *ended)
        self.fire_audits = FireAuditor(env, store)

    def services(self, roles: Collection[str]) -> Sequence[Service]:
        chosen: list[Service] = [self.forecasts]
        if "scheduler" in roles:
            chosen += [self.scheduler, self.turns, self.zones, self.join_checker, self.streaks]
        return chosen
