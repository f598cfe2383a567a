"""`step`: steps of a workflow that are not calls of the app's own jobs.

step.command(["pg_dump", "shop"], retries=2) >> step.approval(roles=["operator"]) >> ship()
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Unpack

from horae.client.spelling import OptionTypeError, items_of, mapping_of, named, option, span_value, text_of
from horae.client.workflows.expression import WorkflowExpression, rendered
from horae.client.workflows.options import (
    ApprovalOptions,
    CallbackOptions,
    EventOptions,
    SignalOptions,
    StepOptions,
    WaitOptions,
)
from horae.client.workflows.workflow import INDEX, ITEM, PhaseSteps, StepNode, building, nodes_of
from horae.model.executions.job_exceptions import Span
from horae.model.fields.kinds import Custom, Duration
from horae.model.fields.table import Object, Row
from horae.model.workflows.waits import APPROVAL, CALLBACK, EVENT, SIGNAL

# Typed as Any, so that they may be passed to any parameter of a job.
item: Any = ITEM  # in the params of a step with `map`: the item of the execution
index: Any = INDEX  # and the position of the item
execution: Any = WorkflowExpression("execution")  # the workflow's own execution: its id, scheduledAt and interval


def job(ref: str, params: Mapping[str, Any] | None = None, /, **options: Unpack[StepOptions]) -> StepNode:
    """Run a job that another app or a file defines."""
    if not isinstance(ref, str):
        raise TypeError(f"step.job(...) {OptionTypeError('the name of a job', ref)}")
    return _make(ref, {"job": ref, **({} if params is None else {"params": rendered(params)})}, options)


def command(line: str | Sequence[str] | Mapping[str, Any], **options: Unpack[StepOptions]) -> StepNode:
    """Run a program. Pass a value of the workflow as a param: `step.command("ls ${params.at}", params={...})`."""
    _fixed(line, f'step.command(["ls", "${{params.path}}"], params={{"path": {_spoken(line)}}})')
    return _make("command", {"command": named("step.command(...)", _line, line)}, options)


def http(request: str | Mapping[str, Any], **options: Unpack[StepOptions]) -> StepNode:
    """Send a request. Pass a value of the workflow as a param: `step.http("${params.url}", params={...})`."""
    _fixed(request, f'step.http({{"url": "${{params.url}}"}}, params={{"url": {_spoken(request)}}})')
    return _make("http", {"http": named("step.http(...)", _request, request)}, options)


def sleep(
    span: Span | None = None,
    *,
    until: datetime | str | WorkflowExpression | None = None,
    **options: Unpack[WaitOptions],
) -> StepNode:
    """Wait for a span, or until an instant."""
    if (span is None) == (until is None):
        raise TypeError("sleep takes a span, or until=")
    at = until.isoformat() if isinstance(until, datetime) else until
    return _make(
        "sleep", {"sleep": named("step.sleep(...)", span_value, span) if at is None else {"until": at}}, options
    )


def event(
    named: str,
    /,
    *,
    filter: str | WorkflowExpression | None = None,  # noqa: A002
    **options: Unpack[EventOptions],
) -> StepNode:
    """Wait for an event with this name; it is the result of the step.

    `filter` is a condition on the event, in which `step.event_value` stands for the event.
    """
    return _wait("event", EVENT, {"name": named, "filter": filter}, options)


event_value = WorkflowExpression("event")


def signal(named: str, /, **options: Unpack[SignalOptions]) -> StepNode:
    """Wait for a signal to the workflow's execution. The payload of the signal is the result of the step."""
    return _wait("signal", SIGNAL, {"name": named}, options)


def approval(**options: Unpack[ApprovalOptions]) -> StepNode:
    """Wait until a user approves or rejects the step."""
    return _wait("approval", APPROVAL, {}, options)


def callback(**options: Unpack[CallbackOptions]) -> StepNode:
    """Wait until the step's own URL is called. The body of this request is the result of the step."""
    return _wait("callback", CALLBACK, {}, options)


def switch(
    *branches: tuple[Any, StepNode | Sequence[StepNode]], default: Any = (), **options: Unpack[WaitOptions]
) -> StepNode:
    """Run one of several branches: the steps of the first pair (condition, steps) whose condition holds.

    If no condition holds, the steps in `default` run.
    """
    call = "step.switch(...)"
    cases = [named(call, _case, branch) for branch in branches]
    if names := named(option("default", call), _names, default):
        cases.append({"else": names})
    return _make("switch", {"switch": cases}, options)


def _names(steps: Any) -> list[str]:
    return [node.name for node in nodes_of(steps)]


def _case(branch: Any) -> dict[str, Any]:
    if not isinstance(branch, tuple | list) or len(branch) != 2:
        raise OptionTypeError("pairs of a condition and steps", branch)
    when, steps = branch
    return {"when": when, "then": _names(steps)}


def _line(line: Any) -> Any:
    if isinstance(line, Mapping):
        return dict(line)
    return line if isinstance(line, str) else items_of(line, "a text, a list of arguments or a mapping")


def _request(request: Any) -> Any:
    return request if isinstance(request, str) else dict(mapping_of(request, "a URL or a mapping"))


def _wait(name: str, kind: Object, given: dict[str, Any], options: Mapping[str, Any]) -> StepNode:
    """Add a step that waits. Options of the wait, such as its timeout, become fields of the wait, not of the step."""
    own = {row.keyword: row for row in kind.table.rows if row.name not in given}
    fields = {
        own[word].name: named(option(word, f"step.{name}(...)"), partial(_spelled, own[word]), value)
        for word, value in options.items()
        if word in own
    }
    wait = {word: value for word, value in {**given, **fields}.items() if value is not None}
    return _make(name, {name: wait}, {word: value for word, value in options.items() if word not in own})


def _spelled(row: Row, value: Any) -> Any:
    if value is not None and isinstance(row.kind, Custom):
        return items_of(value, f"a list of {row.name}")
    return span_value(value) if isinstance(row.kind, Duration) else value


def _make(wanted: str, document: dict[str, Any], options: Mapping[str, Any]) -> StepNode:
    steps: PhaseSteps = building()
    call = f"step.{wanted}(...)"
    step_options = dict(options)
    own = named(option("name", call), text_of, step_options.pop("name", None))
    return steps.add(wanted, document, own).describe(step_options, call)


def _spoken(part: Any) -> str:
    """Guess the variable that holds the first workflow value in a task, for the example in an error message."""
    if isinstance(part, WorkflowExpression):
        return part.name if isinstance(part, StepNode) else part._source.removeprefix("params.")
    parts = part.values() if isinstance(part, Mapping) else part if isinstance(part, list | tuple) else ()
    return next((spoken for each in parts if (spoken := _spoken(each))), "")


def _fixed(part: Any, remedy: str) -> None:
    """Raise TypeError if a task contains a value of the workflow: a task has to be known before the workflow runs."""
    if isinstance(part, WorkflowExpression):
        raise TypeError(f"{part!r} is known only when the workflow runs. Pass it to the step as a param: {remedy}")
    for each in part.values() if isinstance(part, Mapping) else part if isinstance(part, list | tuple) else ():
        _fixed(each, remedy)
