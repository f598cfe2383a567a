"""Definitions as users change them: jobs, triggers, calendars and dependencies."""

from horae.engine.definitions.announcer import Announcer, FireDue, Later, already_fired
from horae.engine.definitions.document_applier import DefinitionWriters, DocumentApplier, NoTemplates, TemplateSource
from horae.engine.definitions.job_deletions import JobDeletions
from horae.engine.definitions.job_drafts import CheckPlace
from horae.engine.definitions.job_plans import JobPlans
from horae.engine.definitions.jobs import Jobs
from horae.engine.parts.admission import AdmissionPart
from horae.engine.parts.base import BasePart
from horae.engine.parts.firing import FiringPart
from horae.engine.parts.part import ServerPart
from horae.engine.triggers.calendars import Calendars
from horae.engine.triggers.dependencies import Dependencies
from horae.engine.triggers.triggers import Triggers
from horae.feature import load
from horae.store.contract import Store


class DefinitionsPart(ServerPart):
    """Reads and writes definitions, and announces changes to schedulers."""

    def __init__(
        self,
        base: BasePart,
        admission: AdmissionPart,
        firing: FiringPart,
        check_place: CheckPlace = lambda place, field: None,
    ) -> None:
        self._base, self._admission, self._check_place = base, admission, check_place
        env, store, fire_due = base.env, base.store, firing.scheduler.step
        self.deletions = JobDeletions(store, base.outcomes)
        self._announcer = announcer = Announcer(env, base.directory, base.hints, base.outcomes)
        self.jobs = self._jobs_in(store, announcer, fire_due)
        self.job_plans = JobPlans(store, self.jobs)
        self.triggers = Triggers(env, store, self.jobs, announcer, fire_due, base.fair_access.compute)
        self.calendars = Calendars(env, store, announcer, fire_due)
        self.document_applier = DocumentApplier(env, store, self._parts_in, fire_due)
        self.dependencies = Dependencies(store, base.directory, base.hints)

    def _jobs_in(self, store: Store, announcer: Announcer, fire_due: FireDue) -> Jobs:
        """Return an object that reads and writes the jobs of a store, or of a transaction."""
        base, admission = self._base, self._admission
        return Jobs(
            base.env,
            store,
            announcer=announcer,
            fire_due=fire_due,
            rank=base.directory.rank,
            deletions=self.deletions,
            check_place=self._check_place,
            held=admission.hold_watch.explain_named,
            default_queue=admission.queues.default_of,
            warn=admission.worker_offers.warning,
            derive=self._templates_in(store).derive,
        )

    def _parts_in(self, store: Store, later: Later) -> DefinitionWriters:
        """Return objects that write definitions in a transaction, and announce them by `later`."""
        announcer = self._announcer.postponed(later)
        jobs = self._jobs_in(store, announcer, already_fired)
        calendars = Calendars(self._base.env, store, announcer, already_fired)
        return DefinitionWriters(jobs, self._templates_in(store), calendars)

    def _templates_in(self, store: Store) -> TemplateSource:
        """Return the templates of a store, or of a transaction."""
        for feature in self._base.features:
            if feature.templates:
                found: TemplateSource = load(feature.templates)(self._base.env, store)
                return found
        return NoTemplates()
