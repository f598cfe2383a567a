"""The ends of steps' waits: after an event, a signal, an approval, a callback or a timeout, with their results."""

import hmac
import re
from typing import Any
from uuid import UUID

import msgspec

from horae.model.expressions.meter import SMALL_STEPS, limited_budget
from horae.model.fleet.protocol import Failure
from horae.model.tenancy.principal import includes
from horae.model.workflows.decisions.expressions import OF_EVENT, condition_of, scope_of, step_value
from horae.model.workflows.decisions.plan import Plan, PlanNode
from horae.model.workflows.decisions.workflow import Deciding, RowRequest, StepEnd, WorkflowContext
from horae.model.workflows.waits import Approval, Callback, EventWait, SignalWait, Wait

KINDS: dict[type, str] = {EventWait: "event", SignalWait: "signal", Approval: "approval", Callback: "callback"}
TIMEOUT = "timeout"
CALLBACK = "@callback:"  # a call of a step's URL is a signal with this prefix, which users cannot send
MOST_COMMENT = 2000
_TOKEN = re.compile(r"cb_(?P<execution>[0-9a-f]{32})_(?P<step>[A-Za-z0-9_-]{1,128})_(?P<mac>[0-9a-f]{40})")


def token_of(secret: bytes, execution: UUID, step: str) -> str:
    """Return the secret token of a callback URL; it is computed and never stored."""
    return f"cb_{execution.hex}_{step}_{_mac(secret, execution, step)}"


def read_token(secret: bytes, token: str) -> tuple[UUID, str] | None:
    """Return the execution and the step of a callback token, or None if the token is not valid."""
    found = _TOKEN.fullmatch(token)
    if found is None:
        return None
    execution, step = UUID(hex=found["execution"]), found["step"]
    return (execution, step) if hmac.compare_digest(found["mac"], _mac(secret, execution, step)) else None


def _mac(secret: bytes, execution: UUID, step: str) -> str:
    return hmac.new(secret, execution.bytes + step.encode(), "sha256").hexdigest()[:40]


def name_of(step: str, wait: Wait) -> str:
    """Return the name of the event or signal that a step waits for; empty for other waits."""
    if isinstance(wait, EventWait | SignalWait):
        return wait.name
    return f"{CALLBACK}{step}" if isinstance(wait, Callback) else ""


def timed_out(step: str, wait: Wait) -> StepEnd:
    """Return the end of a wait that timed out."""
    word = "fail" if not isinstance(wait, EventWait | SignalWait | Approval | Callback) else wait.on_timeout
    if word == "skip":
        return StepEnd(step=step, state="skipped", reason=TIMEOUT)
    if word == "approve":
        return StepEnd(step=step, result=_answer(True, TIMEOUT, ""), reason=TIMEOUT)
    if word == "reject":
        failure = Failure(type="Rejected", message="No user approved in time.", kind="timeout", permanent=True)
        return StepEnd(step=step, state="failed", error=failure, reason=TIMEOUT)
    kind = KINDS.get(type(wait), "wait")
    message = f"The {kind} that the step waited for did not arrive in time."
    failure = Failure(type="WaitTimeout", message=message, kind="timeout", permanent=True)
    return StepEnd(step=step, state="failed", error=failure, reason=TIMEOUT)


def approval_end(step: str, *, agreed: bool, by: str, comment: str) -> StepEnd:
    """Return the end of an approval that was granted or denied."""
    if agreed:
        why = f"approved by {by}" + (f": {comment}" if comment else "")
        return StepEnd(step=step, result=_answer(True, by, comment), reason=why[:MOST_COMMENT])
    suffix = f": {comment}" if comment else "."
    failure = Failure(type="Rejected", message=f"Rejected by {by}{suffix}", permanent=True)
    return StepEnd(step=step, state="failed", error=failure, reason="rejected")


def may_answer(wait: Approval, role: str) -> bool:
    """Return whether a user with this role may answer: the role must be one of the approval's, or include one."""
    return not wait.roles or any(includes(role, named) for named in wait.roles)


def approvals_before(plan: Plan, step: str) -> dict[str, Approval]:
    """Return the approvals of a step and of all steps before it, by step: the steps after `step` need all of them.

    An undo step has none, because only the next undo step follows it.
    """
    found, looked, names = dict[str, Approval](), set[str](), [step]
    while names:
        name = names.pop()
        if name in looked or name not in plan.nodes:
            continue
        looked.add(name)
        node = plan.nodes[name]
        if isinstance(node.step.wait, Approval):
            found[name] = node.step.wait
        names += node.upstreams
    return found


def _answer(agreed: bool, by: str, comment: str) -> bytes:
    return msgspec.json.encode({"approved": agreed, "by": by, "comment": comment})


def passes(node: PlanNode, context: WorkflowContext, event: dict[str, Any]) -> Deciding[bool]:
    """Return whether an event satisfies the wait of a step. If the filter raises an error, it does not."""
    wait = node.step.wait
    if not isinstance(wait, EventWait):
        return False
    if not wait.filter:
        return True
    condition = condition_of(wait.filter, "event.filter", OF_EVENT)
    rows = yield RowRequest(results=node.needed_steps)
    scope = {**scope_of(context, {}), "steps": {name: step_value(rows.get(name)) for name in node.needed_steps}}
    try:
        with limited_budget(SMALL_STEPS) as meter:
            return condition.value({**scope, "event": event}, meter) is True
    except ValueError:
        return False
