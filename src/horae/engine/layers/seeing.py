"""What people and monitors see of the whole: overviews, fires, statistics, who holds what, proofs, and alerts."""

from collections.abc import Collection

from horae.engine.admission.held_keys import HeldKeys
from horae.engine.base.gauges import Gauges
from horae.engine.base.survey import Surveyor
from horae.engine.executions.audit import Audit
from horae.engine.fleet.autoscale import Autoscale
from horae.engine.layers.handling import Handling
from horae.engine.service import Service
from horae.engine.settings import EngineSettings
from horae.engine.triggers.audit_fires import FireAudits
from horae.engine.triggers.coming import Coming
from horae.engine.triggers.fire_counts import FireCounts
from horae.engine.triggers.fires import Fires
from horae.engine.workflows.grid import Grid
from horae.env import Env
from horae.features.alerts.engine.alerts import Alerts
from horae.features.alerts.engine.channels import AlertChannels
from horae.features.alerts.engine.delivery import AlertDelivery
from horae.features.alerts.engine.rules import AlertRules
from horae.features.alerts.engine.watch import AlertWatch
from horae.features.statistics.engine.job_statistics import JobStatistics
from horae.features.statistics.engine.overview import Overview
from horae.store.contract import Store


class Seeing(Handling):
    """Reads over many things, and what watches them."""

    def __init__(self, env: Env, store: Store, settings: EngineSettings) -> None:
        super().__init__(env, store, settings)
        self.fires = Fires(env, store)
        self.fire_counts = FireCounts(env, store)
        self.autoscale = Autoscale(env, store, self.directory)
        self.gauges = Gauges(env, store, self.id, self.statistics)
        self.surveyor = Surveyor(env, store, self.hold_watch, self.workers)
        self.coming = Coming(env, store)
        self.overview = Overview(env, store, self.directory, self.gauges, self.coming, self.workers)
        self.job_statistics = JobStatistics(env, store)
        self.grid = Grid(store)
        self.held_keys = HeldKeys(store)
        self.audit = Audit(env, store, self.hints)
        self.fire_audits = FireAudits(env, store)
        channels = AlertChannels(env, store, self.sealer, self.secrets)
        self.secrets.reseal_others.append(channels.reseal)
        self.alerts = Alerts(
            env,
            store,
            self.hints,
            AlertRules(store),
            channels,
            AlertWatch(env, store, self.id, self.hints, self.clock, self.explainer.starts_at),
            AlertDelivery(env, store, channels, self.outbound),
        )

    def services(self, parts: Collection[str]) -> list[Service]:
        chosen: list[Service] = [*super().services(parts), self.coming]
        if "scheduler" in parts:
            chosen += [self.gauges, self.alerts.watch, self.alerts.delivery]
        return chosen
