"""Reruns: an ended execution is run again as a new one, from the beginning or from the step that failed.

A rerun may close the dead letter of a failure.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Raw, Struct

from horae.engine.base.refs import nearest
from horae.engine.executions.executions import Executions
from horae.errors import BadInput, Conflict
from horae.model.base.ids import index_of, parcel_of
from horae.model.definitions.reading.patch import merge
from horae.model.executions.execution import FINAL, Execution, Extra, Rerun
from horae.model.executions.submission import Receipt
from horae.model.fleet.submit import Submit
from horae.model.tenancy.sealed import is_sealed
from horae.model.workflows.decisions.plan import Plan
from horae.model.workflows.decisions.rerun import FAILED
from horae.store.contract import Store
from horae.store.executions.leaving import dead_letters
from horae.store.executions.leaving.dead_letters import RETRIED
from horae.store.executions.reads import execution_lists as lists
from horae.store.executions.reads import execution_reads as reads
from horae.store.workflows import reads as workflow_reads

SubmitAll = Callable[..., Awaitable[Sequence[Receipt]]]
MOST_STEPS = 100  # links of one history that are followed


class RerunRequest(Struct, frozen=True, kw_only=True):
    """The options of a rerun. All but `params` are for workflows only."""

    since: str = ""  # the step from which it runs again, or FAILED; earlier results are reused
    params: dict[str, Any] | None = None  # a merge patch of the old params
    latest: bool = False  # use the present version of the workflow instead of the version that ran
    breakpoints: tuple[str, ...] = ()  # steps before which it pauses


class Reruns:
    """Runs ended executions again."""

    def __init__(self, store: Store, executions: Executions, submit: SubmitAll) -> None:
        self._store, self._executions, self._submit = store, executions, submit

    async def rerun(self, namespace: int, ref: str | UUID, options: RerunRequest, caller: str) -> Receipt:
        """Run an execution again. Raises Conflict while it has not ended."""
        execution = (await self._executions.find(namespace, ref)).execution
        if execution.state not in FINAL:
            remedy = "Wait for its end, or cancel it first: horae executions cancel."
            raise Conflict(f"Execution {execution.id} has not ended.", remedy)
        known = await self._store.read(lambda: workflow_reads.read_workflow(execution.id))
        version = 0
        if known is None:
            if options.since or options.breakpoints or options.latest:
                raise BadInput(
                    f"Execution {execution.id} is not a workflow.", "Run it again without these options.", field="from"
                )
        else:
            now = await self._store.read(lambda: workflow_reads.present_plan(execution.job))
            if now is None:
                _refuse_steps(execution.job, options)
            elif options.latest:
                _check(now, options)
            else:
                version = known.held.workflow.version
                _check(known.plan, options)
        extra = execution.extra
        rerun = Rerun(
            of=execution.id,
            since=options.since,
            latest=options.latest,
            breakpoints=options.breakpoints,
            version=version,
        )
        letter = await dead_letter_of(self._store, execution)
        new_extra = Extra(
            rerun=rerun, retry_of=letter, tags=extra.tags, interval=extra.interval, propagate=extra.propagate
        )
        params = execution.params if options.params is None else patched_params(execution.params, options.params)
        request = Submit(job=str(execution.job), params=params, priority=execution.priority, tags=extra.tags)
        (receipt,) = await self._submit(namespace, [request], origin="rerun", caller=caller, extras=[new_extra])
        if letter is not None:
            again = [(letter, receipt.execution_id)]
            await self._store.change(lambda now: dead_letters.mark(dead_letters.RETRIED, again, now))
        return receipt


def _refuse_steps(job: UUID, options: RerunRequest) -> None:
    """Refuse to run steps of a job that is no workflow any more. Raises Conflict."""
    if not options.latest or options.since or options.breakpoints:
        remedy = "Run it again as the job is now, with `latest` only; or make the job a workflow again."
        raise Conflict(f"Job {job} is no workflow any more, so its steps cannot run again.", remedy)


def _check(plan: Plan, options: RerunRequest) -> None:
    """Refuse unknown steps. Raises BadInput."""
    main = plan.order["main"]
    for field, name in (("from", options.since), *(("breakpoints", name) for name in options.breakpoints)):
        if name and name not in main and not (field == "from" and name == FAILED):
            near = nearest(name, main)
            remedy = f"Did you mean {near[0]!r}?" if near else f"The steps are: {', '.join(main[:20])}."
            raise BadInput(f"The workflow has no step {name[:60]!r}.", remedy, field=field)


def patched_params(params: Raw, patch: dict[str, Any]) -> Raw:
    """Return params after a merge patch. Raises BadInput for sealed params."""
    if is_sealed(params):
        remedy = "Run it again as it is, or submit it with all its params."
        raise BadInput("The params are sealed, and cannot be changed in part.", remedy, field="params")
    return Raw(msgspec.json.encode(merge(msgspec.json.decode(params), patch)))


async def dead_letter_of(store: Store, execution: Execution) -> UUID | None:
    """Return the open dead letter that a new run of an execution closes, or None.

    A cancelled rerun leads back to the letter that it was meant to close. The letter of a failure that was run again
    and failed again is already closed: the newest letter of its history is returned instead.
    """
    at: Execution | None = execution
    for _ in range(MOST_STEPS):
        if at is None or at.extra.step is not None:
            return None
        if at.state != "failed":
            at = await _execution(store, at.namespace, at.extra.retry_of)
            continue
        again = await _run_again_as(store, at.id)
        if again is None:
            return at.id
        at = await _execution(store, at.namespace, again)
        if at is None or at.state != "failed":
            return None
    return None


async def _execution(store: Store, namespace: int, wanted: UUID | None) -> Execution | None:
    found = None if wanted is None else await store.read(lambda: reads.by_id(wanted, namespace))
    return None if found is None else found.execution


async def _run_again_as(store: Store, execution: UUID) -> UUID | None:
    span = parcel_of(execution), index_of(execution), index_of(execution) + 1
    mark = (await store.read(lambda: lists.marks([span]))).get(span[:2])
    return mark.execution if mark is not None and mark.kind == RETRIED else None
