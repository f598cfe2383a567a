"""`@app.workflow`: a function that defines a workflow; its calls of jobs become steps.

    @app.workflow(schedule=cron("0 2 * * *"))
    def etl(day: str = "yesterday"):
        raw = extract(day)
        parts = transform.map(raw["parts"], concurrency=10)
        parts >> load(raw["rows"]) >> step.sleep("5m") >> publish()
        return raw["rows"]

The function runs once, when it is defined; no job is executed. Its return value is the workflow's result.
"""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any, Protocol, Unpack

import msgspec

from horae.client.encode import encode
from horae.client.spelling import (
    OptionTypeError,
    items_of,
    named,
    option,
    policy,
    refuse_unknown,
    snake,
    span_value,
    text_of,
    timeouts,
)
from horae.client.submitting import Submittable
from horae.client.workflows import job_options
from horae.client.workflows.expression import WorkflowExpression, rendered
from horae.client.workflows.options import StepOptions
from horae.errors import BadInput
from horae.model.definitions.function_signature import Signature, signature_of
from horae.model.fields.kinds import Duration
from horae.model.workflows.reading.steps import STEP
from horae.model.workflows.reading.workflow import WORKFLOW

if TYPE_CHECKING:
    from horae.client.app import App

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Fields of a step that are options of `.step(...)`, by their names in Python.
_SAID = {row.keyword: row for row in STEP.rows if row.field.sdk}
STEP_OPTIONS = tuple(_SAID)
_OF_WORKFLOWS = {row.keyword: row for row in WORKFLOW.rows if row.field.sdk}
ITEM, INDEX = WorkflowExpression("item"), WorkflowExpression("index")
BUILDING: ContextVar["PhaseSteps | None"] = ContextVar("horae_building", default=None)


class Callee(Protocol):
    """A job or workflow that a step runs."""

    name: str
    signature: Signature

    def _call(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]: ...


class StepNode(WorkflowExpression):
    """A step of the workflow that is being defined; used as a value, it stands for the step's result.

    `a >> b` makes b run after a, also with lists of steps on either side.
    """

    def __init__(self, name: str, document: dict[str, Any]) -> None:
        place = f"steps.{name}" if _IDENTIFIER.fullmatch(name) else f'steps["{name}"]'
        super().__init__(f"{place}.result")
        self.name, self.document = name, document
        self.state, self.error = WorkflowExpression(f"{place}.state"), WorkflowExpression(f"{place}.error")

    def __rshift__(self, other: "StepNode | Sequence[StepNode]") -> Any:
        for node in named(">>", nodes_of, other):
            node._follow(self)
        return other

    def __rrshift__(self, others: "Sequence[StepNode]") -> "StepNode":
        for node in named(">>", nodes_of, others):
            self._follow(node)
        return self

    __hash__ = WorkflowExpression.__hash__

    def describe(self, options: Mapping[str, Any], call: str) -> "StepNode":
        """Add options of the step. An unknown option raises a TypeError; `call` names the call in the message."""
        refuse_unknown(options, STEP_OPTIONS, call)
        self.document |= {
            _SAID[name].name: named(option(name, call), partial(_option, name, node=self), value)
            for name, value in options.items()
            if value is not None
        }
        return self

    def _follow(self, node: "StepNode") -> None:
        after = self.document.setdefault("after", [])
        if node.name not in after:
            after.append(node.name)


def nodes_of(steps: Any) -> list[StepNode]:
    """Return one step or a list of steps as a list."""
    wanted = "a step or a list of steps"
    nodes = [steps] if isinstance(steps, StepNode) else items_of(steps, wanted)
    for node in nodes:
        if not isinstance(node, StepNode):
            raise OptionTypeError(wanted, node)
    return nodes


class PhaseSteps:
    """The steps of one phase (`steps`, `onSuccess`, `onFailure` or `finally`), in the order of their calls."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken  # names in all phases
        self.nodes: list[StepNode] = []

    def add(self, wanted: str, document: dict[str, Any], own: str | None = None) -> StepNode:
        """Add a step. `own` is the name that the user gave it; otherwise a number makes the `wanted` name unique."""
        plain = re.sub(r"[^A-Za-z0-9_-]", "_", wanted)
        name, n = own or plain, 1
        if own is not None and own in self._taken:
            raise BadInput(f"There are two steps {own!r}.", "Rename one of them.", field="name")
        while name in self._taken:
            n += 1
            name = f"{plain}_{n}"
        self._taken.add(name)
        node = StepNode(name, {"name": name, **document})
        self.nodes.append(node)
        return node

    def documents(self) -> list[dict[str, Any]]:
        return [rendered(node.document) for node in self.nodes]


def build(function: Callable[..., Any], arguments: Mapping[str, Any], taken: set[str]) -> tuple[PhaseSteps, Any]:
    """Run a function whose calls of jobs become steps; return the steps and the function's result."""
    steps = PhaseSteps(taken)
    token = BUILDING.set(steps)
    try:
        returned = function(**arguments)
    finally:
        BUILDING.reset(token)
    if inspect.iscoroutine(returned):
        returned.close()
        raise TypeError(f"{function.__name__} builds a workflow: define it with `def`, not `async def`")
    return steps, returned


class StepCall:
    """A call of a job that becomes a step, with the options of the step."""

    def __init__(self, callee: Callee, options: Mapping[str, Any]) -> None:
        self._callee, self._options = callee, dict(options)

    def __call__(self, *args: Any, **named: Any) -> StepNode:
        return self._add(self._params(args, named), None)

    def map(
        self, items: Any, *args: Any, concurrency: int | None = None, tolerate: int | str | None = None, **named: Any
    ) -> StepNode:
        """Add a step that runs one execution for each item; other arguments are the same for all items.

        The items are known only when the workflow runs. An item is passed as the first parameter that is not among the
        keywords. `concurrency` bounds the executions that run at once; `tolerate` is how many of them may fail.
        """
        names = [parameter.name for parameter in self._callee.signature.parameters]
        free = next((name for name in names if name not in named), None)
        if free is None:
            raise TypeError(f"{self._callee.name} has no parameter left for the items")
        others = [name for name in self._callee.signature.by_position if name != free]
        call = f"{self._callee.name}.map(...)"
        if len(args) > len(others):
            raise TypeError(f"{call} takes {len(others)} params by position after the items, not {len(args)}")
        if twice := [name for name in others[: len(args)] if name in named]:
            raise TypeError(f"{call} got {twice[0]!r} twice")
        params = self._params((), {free: ITEM, **dict(zip(others, args, strict=False)), **named})
        rules = {"items": items, "concurrency": concurrency, "tolerate": tolerate}
        return self._add(params, {name: value for name, value in rules.items() if value is not None})

    def _params(self, args: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        params, options = self._callee._call(args, named)
        if options:
            name = next(iter(options))
            raise TypeError(f"{name!r} is not a param of {self._callee.name}: write .step({name}=...) before the call")
        return params

    def _add(self, params: dict[str, Any], foreach: dict[str, Any] | None) -> StepNode:
        options = dict(self._options)
        own = named(option("name", ".step(...)"), text_of, options.pop("name", None))
        document: dict[str, Any] = {"job": self._callee.name, "params": msgspec.json.decode(encode(rendered(params)))}
        if foreach is not None:
            document["foreach"] = foreach
        return building().add(self._callee.name, document, own).describe(options, ".step(...)")


def building() -> PhaseSteps:
    """Return the steps of the workflow that is being defined."""
    steps = BUILDING.get()
    if steps is None:
        raise RuntimeError("a step can only be added in a function under @app.workflow")
    return steps


def _option(name: str, value: Any, node: StepNode) -> Any:
    """Return an option of a step in the form of a definition. A function is called with the result of the step."""
    if name == "undo":
        return _undo(value, node)
    if name in ("until", "while_", "when") and callable(value) and not isinstance(value, WorkflowExpression):
        return value(node)
    if name == "after":
        steps = [value] if isinstance(value, StepNode) else items_of(value, "a step or a list of steps")
        return [one.name if isinstance(one, StepNode) else one for one in steps]
    if isinstance(_SAID[name].kind, Duration):
        return span_value(value)
    if name == "timeouts":
        return timeouts(value)
    return policy(value) if name == "retry" else value


def _undo(value: Any, node: StepNode) -> Any:
    """Return the undo of a step in the form of a definition.

    It is a job, or a function that calls one with the result of the step or of a mapped item.
    """
    if hasattr(value, "signature"):
        return {"job": value.name}
    if not callable(value):
        return value
    steps = PhaseSteps(set())
    token = BUILDING.set(steps)
    try:
        value(node[INDEX] if "foreach" in node.document else node)
    finally:
        BUILDING.reset(token)
    if len(steps.nodes) != 1:
        raise TypeError(f"the undo of {node.name} must call one job, not {len(steps.nodes)}")
    return {name: part for name, part in steps.nodes[0].document.items() if name != "name"}


def described(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a workflow as fields of a job, in the API's form."""
    given = job_options.described(options, "@app.workflow", ("name", "description", *_OF_WORKFLOWS))
    own = {row.name: given.pop(row.name) for row in _OF_WORKFLOWS.values() if row.name in given}
    return {**given, "workflow": own} if own else given


class AppWorkflow(Submittable[Callable[..., Any]]):
    """A workflow as its function defines it.

    `submit` lets the servers run it; a call inside another workflow becomes a step.
    """

    def __init__(self, app: "App", function: Callable[..., Any], name: str, document: dict[str, Any]) -> None:
        self.app, self.function, self.name = app, function, name
        self.signature: Signature = signature_of(function)
        self._taken: set[str] = set()
        own = {p.name: p.default for p in self.signature.parameters if p.default is not msgspec.NODEFAULT}
        params = msgspec.json.decode(encode({**own, **document.get("params", {})}))
        self._document = {**document, "params": params} if params else document
        self._phases: dict[str, PhaseSteps] = {}
        arguments = {p.name: WorkflowExpression(f"params.{p.name}") for p in self.signature.parameters}
        self._phases["steps"], self._output = build(function, arguments, self._taken)
        if not self._phases["steps"].nodes:
            remedy = "Call jobs in it, or step.command(...) and its like."
            raise BadInput(f"The workflow {name!r} has no steps.", remedy, field="workflow")
        update_wrapper(self, function)
        encode(self.definition(), f"The workflow {name!r}")

    def __repr__(self) -> str:
        return f"<workflow {self.name}>"

    def __call__(self, *args: Any, **named: Any) -> Any:
        if BUILDING.get() is None:
            raise TypeError(
                f"{self.name} is a workflow, which servers run: await {self._source_name}.submit(...),"
                f" or {self._source_name}.sync.submit(...)"
            )
        return self.step()(*args, **named)

    def step(self, **options: Unpack[StepOptions]) -> StepCall:
        """Set options of a step of another workflow. Return a callable that adds the step."""
        return StepCall(self, options)

    def map(self, items: Any, *args: Any, **named: Any) -> StepNode:
        """In another workflow, add a step that runs one execution of this workflow for each item."""
        return self.step().map(items, *args, **named)

    def on_success(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register a function; the steps that it calls run after all steps of the workflow have succeeded."""
        return self._handle("onSuccess", function)

    def on_failure(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register a function; the steps that it calls run after the workflow has failed.

        Its parameter `error`, if it has one, stands for the reason.
        """
        return self._handle("onFailure", function)

    def finally_(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register a function; the steps that it calls run at the end of the workflow, whatever its outcome."""
        return self._handle("finally", function)

    def definition(self) -> dict[str, Any]:
        """Return the workflow's definition as POST /api/v1/jobs accepts it."""
        document = dict(self._document)
        workflow = document.pop("workflow", {})
        workflow |= {phase: steps.documents() for phase, steps in self._phases.items()}
        if self._output is not None:
            workflow["output"] = rendered(self._output)
        return {**document, "workflow": workflow, "schema": self.signature.schema}

    def _handle(self, phase: str, function: Callable[..., Any]) -> Callable[..., Any]:
        known: dict[str, WorkflowExpression] = {
            p.name: WorkflowExpression(f"params.{p.name}") for p in self.signature.parameters
        }
        known |= {node.name: node for node in self._phases["steps"].nodes if _IDENTIFIER.fullmatch(node.name)}
        known["error"] = WorkflowExpression("error")
        if phase in self._phases:
            reason = f"The workflow {self.name!r} has two functions for {snake(phase)}."
            raise BadInput(reason, "Call the steps of both in one function.", field="workflow")
        wanted = list(inspect.signature(function).parameters)
        if unknown := [name for name in wanted if name not in known]:
            message = f"{function.__name__} has an unknown parameter {unknown[0]!r}"
            raise TypeError(f"{message}; its parameters may be {', '.join(sorted(known))}")
        self._phases[phase], _ = build(function, {name: known[name] for name in wanted}, self._taken)
        encode(self.definition(), f"The workflow {self.name!r}")
        return function
