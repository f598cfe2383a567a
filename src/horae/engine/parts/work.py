"""Work: the services that move executions on, and the operations of users on executions."""

from collections.abc import Collection, Sequence

from horae.engine.base.gauges import Gauges
from horae.engine.base.survey import Surveyor
from horae.engine.executions.execution_audit import ExecutionAuditor
from horae.engine.executions.executions import Executions
from horae.engine.executions.explain import Explainer
from horae.engine.executions.promoter import Promoter, TimeoutEnforcer
from horae.engine.executions.reruns import Reruns
from horae.engine.executions.signals import SignalSender
from horae.engine.executions.submitter import Submitter
from horae.engine.executions.sweeper import Sweeper
from horae.engine.parts.admission import AdmissionPart
from horae.engine.parts.base import BasePart
from horae.engine.parts.definitions import DefinitionsPart
from horae.engine.parts.fleet import FleetPart
from horae.engine.parts.part import ServerPart
from horae.engine.service import Service
from horae.feature import load


class WorkPart(ServerPart):
    """Promotes, times out and sweeps executions; reads, explains, signals and reruns them."""

    def __init__(
        self,
        base: BasePart,
        admission: AdmissionPart,
        fleet: FleetPart,
        definitions: DefinitionsPart,
        submitter: Submitter,
        *,
        traced: bool,
    ) -> None:
        env, store, directory, hints, settings = base.env, base.store, base.directory, base.hints, base.settings
        self.promoter = Promoter(env, store, directory, hints, settings, base.clock)
        self.timeouts = TimeoutEnforcer(env, store, settings, base.outcomes, base.clock)
        sweeps = [load(feature.sweep) for feature in base.features if feature.sweep]
        open_gate, deletions = definitions.jobs.open_gate, definitions.deletions
        self.sweeper = Sweeper(env, store, base.id, settings, base.clock, open_gate, deletions, sweeps)
        self.executions = Executions(
            env, store, base.outcomes, waits=definitions.dependencies.describe_waits, held=admission.hold_watch.explain,
            retention=settings.retention, traced=traced,
        )  # fmt: skip
        self.signals = SignalSender(env, store, self.executions, hints)
        self.explainer = Explainer(env, store, directory, admission.hold_watch, self.executions)
        self.reruns = Reruns(store, self.executions, submitter.submit_all)
        self.audit = ExecutionAuditor(env, store, hints)
        self.surveyor = Surveyor(env, store, admission.hold_watch, fleet.workers)
        self.gauges = Gauges(env, store, base.id, base.topics)

    def services(self, roles: Collection[str]) -> Sequence[Service]:
        return [self.promoter, self.timeouts, self.sweeper, self.gauges] if "scheduler" in roles else ()
