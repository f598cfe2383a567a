"""`step`: steps of a workflow that are no calls of the app's own jobs.

step.command(["pg_dump", "shop"], retries=2) >> step.approval(roles=["operator"]) >> ship()
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from horae.client.spelling import Unfit, items_of, mapping_of, named, option, spelled, text_of
from horae.client.workflows.expression import Expression, written
from horae.client.workflows.workflow import INDEX, ITEM, Node, Steps, building, nodes_of
from horae.model.executions.signals import Span

# Typed as Any, so that they may be given for whatever parameter a job has.
item: Any = ITEM  # of a foreach, for params that say more than the item
index: Any = INDEX
execution: Any = Expression("execution")  # the workflow's own: its id, scheduledAt and interval


def job(ref: str, /, params: Mapping[str, Any] | None = None, **options: Any) -> Node:
    """Run a job that another app or a file defines."""
    if not isinstance(ref, str):
        raise TypeError(f"step.job(...) {Unfit('the name of a job', ref)}")
    return _make(ref, {"job": ref, **({} if params is None else {"params": written(params)})}, options)


def command(line: str | Sequence[str] | Mapping[str, Any], **options: Any) -> Node:
    """Run a program. A value of the workflow reaches it as a param: `step.command("ls ${params.at}", params={...})`."""
    _fixed(line, f'step.command(["ls", "${{params.path}}"], params={{"path": {_spoken(line)}}})')
    return _make("command", {"command": named("step.command(...)", _line, line)}, options)


def http(request: str | Mapping[str, Any], **options: Any) -> Node:
    """Send a request. A value of the workflow reaches it as a param: `step.http("${params.url}", params={...})`."""
    _fixed(request, f'step.http({{"url": "${{params.url}}"}}, params={{"url": {_spoken(request)}}})')
    return _make("http", {"http": named("step.http(...)", _request, request)}, options)


def sleep(span: Span | None = None, *, until: datetime | str | Expression | None = None, **options: Any) -> Node:
    """Wait for a span, or until an instant."""
    if (span is None) == (until is None):
        raise TypeError("sleep takes a span, or until=")
    at = until.isoformat() if isinstance(until, datetime) else until
    return _make("sleep", {"sleep": named("step.sleep(...)", spelled, span) if at is None else {"until": at}}, options)


def event(named: str, /, *, filter: str | Expression | None = None, **options: Any) -> Node:
    """Wait for an event; the result is the event. `step.event_value` stands for it in the filter."""
    return _wait("event", {"name": named, "filter": filter}, options)


event_value = Expression("event")


def signal(named: str, /, **options: Any) -> Node:
    """Wait for a signal to this execution; the result is its payload."""
    return _wait("signal", {"name": named}, options)


def approval(
    *, roles: Sequence[str] | None = None, message: str | None = None, remind: Span | None = None, **options: Any
) -> Node:
    """Wait until somebody agrees."""
    call = "step.approval(...)"
    given = {
        "roles": None if roles is None else named(option("roles", call), _roles, roles),
        "message": message,
        "remind": named(option("remind", call), spelled, remind),
    }
    return _wait("approval", given, options)


def callback(**options: Any) -> Node:
    """Wait until the step's own URL is called; the result is the body."""
    return _wait("callback", {}, options)


def switch(*branches: tuple[Any, Node | Sequence[Node]], default: Any = (), **options: Any) -> Node:
    """Choose the steps that go on: those of the first (condition, steps) that holds, or the default's."""
    call = "step.switch(...)"
    cases = [named(call, _case, branch) for branch in branches]
    if names := named(option("default", call), _names, default):
        cases.append({"else": names})
    return _make("switch", {"switch": cases}, options)


def _names(steps: Any) -> list[str]:
    return [node.name for node in nodes_of(steps)]


def _case(branch: Any) -> dict[str, Any]:
    if not isinstance(branch, tuple | list) or len(branch) != 2:
        raise Unfit("pairs of a condition and steps", branch)
    when, steps = branch
    return {"when": when, "then": _names(steps)}


def _line(line: Any) -> Any:
    if isinstance(line, Mapping):
        return dict(line)
    return line if isinstance(line, str) else items_of(line, "a text, a list of arguments or a mapping")


def _request(request: Any) -> Any:
    return request if isinstance(request, str) else dict(mapping_of(request, "a URL or a mapping"))


def _roles(roles: Any) -> list[Any]:
    return items_of(roles, "a list of roles")


def _wait(kind: str, given: dict[str, Any], options: dict[str, Any]) -> Node:
    """A wait's timeout is the wait's own, not that of an execution."""
    timeout = named(option("timeout", f"step.{kind}(...)"), spelled, options.pop("timeout", None))
    given |= {"timeout": timeout, "onTimeout": options.pop("on_timeout", None)}
    return _make(kind, {kind: {name: value for name, value in given.items() if value is not None}}, options)


def _make(wanted: str, document: dict[str, Any], options: dict[str, Any]) -> Node:
    steps: Steps = building()
    call = f"step.{wanted}(...)"
    own = named(option("name", call), text_of, options.pop("name", None))
    return steps.add(wanted, document, own).describe(options, call)


def _spoken(part: Any) -> str:
    """Name the first value of the workflow in a task as the user's code might."""
    if isinstance(part, Expression):
        return part.name if isinstance(part, Node) else part._source.removeprefix("params.")
    parts = part.values() if isinstance(part, Mapping) else part if isinstance(part, list | tuple) else ()
    return next((spoken for each in parts if (spoken := _spoken(each))), "")


def _fixed(part: Any, remedy: str) -> None:
    """Refuse a value that only the running workflow knows, in a task that is sent as it stands."""
    if isinstance(part, Expression):
        raise TypeError(f"{part!r} is known when the workflow runs. Hand it to the step as a param: {remedy}")
    for each in part.values() if isinstance(part, Mapping) else part if isinstance(part, list | tuple) else ():
        _fixed(each, remedy)
