"""Spans of whole workflows. The server that commits the end of a workflow records its span."""

from collections import deque
from collections.abc import Iterable, Sequence
from uuid import UUID

from horae.engine.definitions.definition_cache import DefinitionCache
from horae.engine.service import Alarm, Wait
from horae.features.tracing.engine.spans import Tracing
from horae.model.base.ids import execution_id
from horae.model.executions.parcel import Parcel, extra_of
from horae.store.contract import Store
from horae.store.executions.state_changes import FinishedItems

BATCH = 256  # workflows whose spans are recorded together
MOST = 10_000  # ended workflows that wait to be recorded; if there are more, the oldest are dropped
SAFETY = 60.0  # seconds between steps without an ended workflow


class WorkflowSpans:
    """A service that records spans of ended workflows, so that reports do not wait for its reads."""

    name = "workflow-spans"

    def __init__(self, store: Store, definitions: DefinitionCache, tracing: Tracing) -> None:
        self._store, self._definitions, self._tracing = store, definitions, tracing
        self._ended: deque[FinishedItems] = deque(maxlen=MOST)
        self.alarm = Alarm()

    def add(self, ended: Iterable[FinishedItems]) -> None:
        """Add those of the ended executions that are workflows."""
        flows = [one for one in ended if one.flow is not None]
        if flows:
            self._ended.extend(flows)
            self.alarm.ring()

    async def step(self) -> Wait:
        """Record the spans of one batch."""
        batch = [self._ended.popleft() for _ in range(min(BATCH, len(self._ended)))]
        try:
            await self._record_all(batch)
        except BaseException:
            room = MOST - len(self._ended)
            self._ended.extendleft(reversed(batch[-room:] if room else []))
            raise
        return 0.0 if self._ended else SAFETY

    async def _record_all(self, batch: Sequence[FinishedItems]) -> None:
        if batch:
            parcels = {one.id: one for one in await self._store.parcels(sorted({one.parcel for one in batch}))}
            versions = {(one.envelope.job, one.envelope.version) for one in parcels.values()}
            known = await self._definitions.get(sorted(versions))
            names = {version: one.name for version, one in known.items()}
            for one in batch:
                self._record(one, parcels.get(one.parcel), names)

    def _record(self, ended: FinishedItems, parcel: Parcel | None, names: dict[tuple[UUID, int], str]) -> None:
        if parcel is None or ended.flow is None:
            return
        job = names.get((parcel.envelope.job, parcel.envelope.version), "")
        due_and_created = parcel.envelope.due_at, parcel.submitted_at
        execution = execution_id(ended.parcel, ended.lo)
        context = self._tracing.context(extra_of(parcel.extras, ended.lo), execution, job, due_and_created, first=False)
        self._tracing.workflow_ended(context, execution, job, ended.state, ended.flow)
