"""The arguments of probes: the case to explain, and the sources that they read."""

from collections.abc import Sequence

from msgspec import Struct

from horae.engine.admission.hold_watch import HoldWatch
from horae.engine.definitions.directory import LocalDirectory
from horae.env import Instant
from horae.model.admission.placement.placement import fits, read_needs, without_preferences
from horae.model.definitions.job import Job
from horae.model.executions.execution import Execution
from horae.model.fleet.session import Session
from horae.store.contract import Store
from horae.store.executions.reads.explain_reads import ExecutionPosition


class Sources(Struct, frozen=True):
    """The objects that probes read."""

    store: Store
    directory: LocalDirectory
    holds: HoldWatch


class Case(Struct, frozen=True, kw_only=True):
    """A job to explain, with its queue and the live workers of its namespace."""

    now: Instant
    namespace: int
    job: Job
    queue: int
    queue_name: str
    needs: frozenset[str]
    sessions: Sequence[Session]

    def serving(self) -> list[Session]:
        """Return the live workers of its queue."""
        return [session for session in self.sessions if self.queue_name in session.queues]

    def fitting(self) -> list[Session]:
        """Return the live workers that could take its executions."""
        terms = read_needs(without_preferences(self.needs))
        return [session for session in self.serving() if fits(terms, session.capabilities)]


class ExecutionCase(Case, frozen=True, kw_only=True):
    """An execution to explain, and its position in the store."""

    execution: Execution
    place: ExecutionPosition

    @property
    def is_queued(self) -> bool:
        return self.place.rank is not None
