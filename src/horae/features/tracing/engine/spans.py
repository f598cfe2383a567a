"""Spans of executions that servers record: of submissions, queues and workflows. Workers record spans of attempts.

The server that commits the end of a workflow records its span.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from uuid import UUID

from msgspec import structs

from horae.engine.definitions.definition_cache import DefinitionCache
from horae.engine.service import Alarm, Wait
from horae.env import Env, Instant
from horae.model.base.ids import execution_id
from horae.model.base.trace import TraceContext, checked_state, read_trace, root_of, span_of
from horae.model.executions.execution import Extra
from horae.model.executions.parcel import Parcel, extra_of, extras_of
from horae.model.executions.slice import RunningSlice
from horae.model.executions.tracer import DueAndCreated, SpanSink, SubmitSpan, TraceSpan
from horae.model.fleet.protocol import Failure
from horae.model.fleet.submit import Submit
from horae.store.contract import Store
from horae.store.executions.state_changes import FinishedItems, WorkflowEnd

BATCH = 256  # workflows whose spans are recorded together
MOST = 10_000  # ended workflows that wait to be recorded; if there are more, the oldest are dropped
SAFETY = 60.0  # seconds between steps without an ended workflow


class Tracing:
    """The tracer of a server."""

    def __init__(self, env: Env, sink: SpanSink) -> None:
        self._env, self.sink = env, sink

    def root(self, execution: UUID) -> TraceContext:
        """Return a new trace for an execution that was submitted without a trace."""
        root = root_of(execution)
        return root if self.sink.samples(root.trace_id) else structs.replace(root, sampled=False)

    def submitting(self, requests: Sequence[Submit]) -> SubmitSpan | None:
        """Begin the span of a request; return None when the caller's trace is not sampled.

        If the sampler rejects the trace, the executions still belong to it, but no spans are recorded.
        """
        first = requests[0] if requests else None
        given = None if first is None else read_trace(first.trace, checked_state(first.trace_state))
        if given is not None and not given.sampled:
            return None
        if given is not None and not self.sink.samples(given.trace_id, given):
            return SubmitSpan(structs.replace(given, sampled=False), None, self._env.now())
        new = self.root(self._env.new_id())
        if given is None:
            return SubmitSpan(new, None, self._env.now())
        return SubmitSpan(structs.replace(given, span_id=new.span_id), given.span_id, self._env.now())

    def submitted(
        self, one: SubmitSpan, job: str, count: int, executions: Sequence[UUID], error: BaseException | None
    ) -> None:
        """Record the span of an answered request."""
        if not one.context.sampled:
            return
        attributes: dict[str, str | int] = {"horae.job": job, "horae.executions": count}
        if len(executions) == 1:
            attributes["horae.execution_id"] = str(executions[0])
        self.sink.record(
            TraceSpan(
                name=f"submit {job}", kind="producer", context=one.context, parent=one.parent, start=one.start,
                end=self._env.now(), attributes=attributes, error=None if error is None else _failure(error),
            )
        )  # fmt: skip

    def granted(self, running: RunningSlice, parcel: Parcel, job: str) -> list[Extra]:
        """Return the extras of granted items, each with its trace context; record spans of their time in the queue."""
        extras = []
        for item, extra in enumerate(extras_of(parcel.extras, running.lo, running.hi), running.lo):
            execution = execution_id(parcel.id, item)
            due_and_created = parcel.envelope.due_at, parcel.submitted_at
            context = self.context(extra, execution, job, due_and_created, first=running.attempt == 1)
            extras.append(extra if extra.trace else structs.replace(extra, trace=context.header))
            self.waited(context, execution, running.attempt, job, running.queued_at, running.granted_at)
        return extras

    def context(
        self, extra: Extra, execution: UUID, job: str, due_and_created: DueAndCreated, *, first: bool
    ) -> TraceContext:
        """Return the trace context of an execution; if it has none, begin a trace.

        The first span of a new trace is recorded only at the `first` start of the execution. It lasts from the due time
        to the creation of the execution.
        """
        given = read_trace(extra.trace, extra.trace_state)
        if given is not None:
            return given
        root = self.root(execution)
        if first and root.sampled:
            origin = extra.origin or "submit"
            attributes = {"horae.job": job, "horae.execution_id": str(execution), "horae.origin": origin}
            self.sink.record(
                TraceSpan(
                    name=f"{origin} {job}", kind="producer", context=root, parent=None,
                    start=min(due_and_created), end=due_and_created[1], attributes=attributes,
                )
            )  # fmt: skip
        return root

    def waited(
        self, context: TraceContext, execution: UUID, attempt: int, job: str, since: Instant, until: Instant
    ) -> None:
        """Record the time that an attempt spent in the queue."""
        if not context.sampled:
            return
        self.sink.record(
            TraceSpan(
                name=f"queue {job}", kind="internal",
                context=structs.replace(context, span_id=span_of("queue", execution, attempt)),
                parent=context.span_id, start=since, end=max(since, until),
                attributes={"horae.job": job, "horae.execution_id": str(execution), "horae.attempt": attempt},
            )
        )  # fmt: skip

    def within(self, extra: Extra, execution: UUID, attempt: int) -> str:
        """Return the trace context for the steps of a workflow.

        Their parent is the span of the workflow's attempt, which is recorded when the workflow ends.
        """
        own = read_trace(extra.trace, extra.trace_state) or self.root(execution)
        return (
            structs.replace(own, span_id=span_of("attempt", execution, attempt)).header if own.sampled else own.header
        )

    def workflow_ended(
        self, context: TraceContext, execution: UUID, job: str, outcome: str, workflow: WorkflowEnd
    ) -> None:
        """Record the span of a workflow that ended."""
        if not context.sampled:
            return
        attributes: dict[str, str | int] = {
            "horae.job": job, "horae.execution_id": str(execution), "horae.attempt": workflow.attempt,
            "horae.outcome": outcome,
        }  # fmt: skip
        self.sink.record(
            TraceSpan(
                name=f"run {job}", kind="internal",
                context=structs.replace(context, span_id=span_of("attempt", execution, workflow.attempt)),
                parent=context.span_id, start=workflow.began_at, end=max(workflow.began_at, workflow.ended_at),
                attributes=attributes, error=workflow.error,
            )
        )  # fmt: skip


def _failure(error: BaseException) -> Failure:
    return Failure(type=type(error).__name__, message=str(error))


class WorkflowSpans:
    """A service that records spans of ended workflows, so that reports do not wait for its reads."""

    name = "workflow-spans"

    def __init__(self, store: Store, definitions: DefinitionCache, tracing: Tracing) -> None:
        self._store, self._definitions, self._tracing = store, definitions, tracing
        self._ended: deque[FinishedItems] = deque(maxlen=MOST)
        self.alarm = Alarm()

    def add(self, ended: Iterable[FinishedItems]) -> None:
        """Add those of the ended executions that are workflows."""
        workflows = [one for one in ended if one.workflow is not None]
        if workflows:
            self._ended.extend(workflows)
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
        if parcel is None or ended.workflow is None:
            return
        job = names.get((parcel.envelope.job, parcel.envelope.version), "")
        due_and_created = parcel.envelope.due_at, parcel.submitted_at
        execution = execution_id(ended.parcel, ended.lo)
        context = self._tracing.context(extra_of(parcel.extras, ended.lo), execution, job, due_and_created, first=False)
        self._tracing.workflow_ended(context, execution, job, ended.state, ended.workflow)
