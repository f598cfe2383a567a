"""Decisions of users about steps of a running workflow: approve, reject, complete or skip."""

from collections.abc import Callable
from functools import partial
from uuid import UUID

from msgspec import Raw

from horae.engine.executions.executions import Executions
from horae.env import Env, Instant
from horae.errors import BadInput, Conflict, Forbidden, NotFound, TooLarge
from horae.model.base.cursor import check_limit, make_cursor, read_cursor
from horae.model.base.instant import format_instant
from horae.model.base.view import Page
from horae.model.executions.execution_view import ExecutionView
from horae.model.executions.parcel import check_item
from horae.model.fleet.protocol import MAX_INLINE_RESULT
from horae.model.tenancy.principal import Principal
from horae.model.workflows.approval_view import ApprovalView
from horae.model.workflows.decisions.waits import MOST_COMMENT, approval_end
from horae.model.workflows.decisions.workflow import StepEnd
from horae.store.contract import Store
from horae.store.script import Script
from horae.store.triggers.dependencies.starts import Consequences
from horae.store.workflows import by_hand as workflow_by_hand
from horae.store.workflows.by_hand import ManualResult, PendingApproval, Place

FIRST: Place = (-1, UUID(int=0), 0, "")
Move = Callable[[Instant, Consequences], Script[ManualResult]]


class StepsByHand:
    """Records decisions in the name of a principal."""

    def __init__(self, env: Env, store: Store, executions: Executions) -> None:
        self._env, self._store, self._executions = env, store, executions

    async def approvals(
        self, namespace: int, *, limit: int = 50, cursor: str | None = None
    ) -> Page[ApprovalView]:  # fmt: skip
        """Return the steps that wait for an approval, the oldest first."""
        check_limit(limit)
        after = FIRST if cursor is None else read_cursor(cursor, tuple[Instant, UUID, int, str])
        found = await self._store.read(lambda: workflow_by_hand.pending_approvals(namespace, after, limit + 1))
        following = make_cursor(found[limit - 1].place) if len(found) > limit else None
        return Page(items=[_shown(request) for request in found[:limit]], next_cursor=following)

    async def answer(
        self, principal: Principal, ref: str | UUID, step: str | None, comment: str, *, agreed: bool
    ) -> ExecutionView:
        """Approve or reject a step that waits for an approval."""
        if len(comment) > MOST_COMMENT:
            raise TooLarge(f"The comment has {len(comment)} characters.", f"{MOST_COMMENT} are allowed.")
        execution = (await self._executions.find(principal.namespace, ref)).execution.id
        make = partial(approval_end, agreed=agreed, by=principal.name or principal.key, comment=comment)
        move = partial(workflow_by_hand.answer, execution, step, principal.role, make, self._env.new_id)
        await self._decide(execution, move)
        return await self._executions.get(principal.namespace, execution)

    async def skip(self, principal: Principal, ref: str | UUID, step: str, reason: str) -> ExecutionView:
        """Skip a step; its running executions are cancelled."""
        described = f"skipped by {principal.name or principal.key}" + (f": {reason}" if reason else "")
        return await self._force(
            principal, ref, StepEnd(step=step, state="skipped", reason=described[:MOST_COMMENT], forced=True)
        )

    async def complete(
        self, principal: Principal, ref: str | UUID, step: str, result: Raw, reason: str
    ) -> ExecutionView:  # fmt: skip
        """Mark a step as done, with a result; its running executions are cancelled."""
        if len(result) > MAX_INLINE_RESULT:
            raise TooLarge(f"The result has {len(result)} bytes.", f"{MAX_INLINE_RESULT} are allowed.")
        if result:
            check_item(b'{"result":' + bytes(result) + b"}", "result")
        described = f"completed by {principal.name or principal.key}" + (f": {reason}" if reason else "")
        ended = StepEnd(step=step, result=bytes(result) or None, reason=described[:MOST_COMMENT], forced=True)
        return await self._force(principal, ref, ended)

    async def _force(self, principal: Principal, ref: str | UUID, ended: StepEnd) -> ExecutionView:
        execution = (await self._executions.find(principal.namespace, ref)).execution.id
        await self._decide(
            execution, partial(workflow_by_hand.decide, execution, ended, principal.role, self._env.new_id)
        )
        return await self._executions.get(principal.namespace, execution)

    async def _decide(self, execution: UUID, move: Move) -> None:
        consequences = Consequences()
        decision = await self._store.change(lambda now: move(now, consequences))
        _refuse(execution, decision)
        self._store.started(consequences)
        self._store.created(consequences.parcels)


def _refuse(execution: UUID, decision: ManualResult) -> None:
    """Raise an error if nothing was decided."""
    names = ", ".join(decision.steps)
    if decision.verdict == "unknown":
        remedy = f"`horae explain {execution}` shows what it waits for."
        raise Conflict(f"Execution {execution} is not a workflow, or has not begun.", remedy)
    if decision.verdict == "ended":
        raise Conflict(f"The workflow {execution} has ended.", "Run it again with `horae executions rerun`.")
    if decision.verdict == "several":
        raise BadInput(f"Several steps wait for an answer: {names}.", "Name one of them.", field="step")
    if decision.verdict == "forbidden":
        remedy = f"The step waits for a user with one of the roles {names}."
        raise Forbidden("This credential may not answer for this step.", remedy)
    if decision.verdict == "final":
        raise Conflict(f'Step "{names}" has ended.', f"`horae executions graph {execution}` shows how.")
    if decision.verdict == "idle":
        subject = f'Step "{names}"' if names else "The workflow"
        raise Conflict(f"{subject} waits for no answer.", f"`horae executions graph {execution}` shows what goes on.")
    if decision.verdict == "early":
        raise Conflict(
            f'It is too early for the step "{names}".', "Its turn comes when the steps before it have ended."
        )
    if decision.verdict == "nothing":
        remedy = f"`horae executions graph {execution}` shows its steps."
        raise NotFound(f'The workflow has no step "{names}".', remedy)


def _shown(request: PendingApproval) -> ApprovalView:
    timeout = request.approval.timeout
    return ApprovalView(
        execution_id=request.execution, job_id=request.job, job_name=request.job_name, step=request.step,
        message=request.approval.message,
        roles=list(request.approval.roles), since=format_instant(request.at),
        until=None if timeout is None else format_instant(request.at + timeout),
    )  # fmt: skip
