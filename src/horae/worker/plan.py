"""The prepared form of a job version: everything that is compiled once for all its executions."""

import inspect
import sys
from collections.abc import Callable
from copy import copy
from typing import Any, Literal

import msgspec
from msgspec import Raw

from horae.env import SECOND
from horae.errors import HoraeError
from horae.model.definitions.function_signature import BadParams, Bind
from horae.model.definitions.job import Spec
from horae.model.definitions.resource_limits import NO_LIMITS
from horae.model.definitions.tasks import CommandTask, HttpTask, PythonTask
from horae.model.expressions.template import compile_template, compile_tree
from horae.model.tenancy.secret_refs import Values, fill, fill_tree, fill_url
from horae.worker.code.context import AttemptFacts
from horae.worker.code.failure import failed
from horae.worker.holding import HeldSlice, ItemOutcome, JobBacklog
from horae.worker.settings import JobFunction, Registry

Kind = Literal["thread", "async", "process", "command", "http", "broken"]
SOON = 0.25  # seconds; the longest `look_after`

_params = msgspec.json.Decoder(dict[str, Any] | None)


class PreparedJob:
    """A job's spec and everything that can be prepared before the first item arrives."""

    def __init__(self, spec: Spec) -> None:
        self.kind: Kind = "broken"
        self.spec = spec
        self.once = spec.delivery == "at-most-once"
        self.is_watched = _watched(spec)
        spans = [span / SECOND for span in (spec.timeout, spec.timeouts.heartbeat) if span is not None]
        self.look_after = min([SOON, *spans])  # seconds until the next check of time limits, if no item runs
        self.defaults = Raw(msgspec.json.encode(spec.params))
        self.problem: ItemOutcome | None = None  # the outcome of all items, if the job cannot run here
        self.function: Callable[..., Any] = lambda: None
        self.bind: Bind = lambda item, ctx: ((), {})
        self.wants_context = False
        self.entry: JobFunction | None = None
        self.argv: list[Any] = []
        self.cwd: Any = None
        self.limits = NO_LIMITS
        self.env: dict[str, Any] = {}
        self.url: Any = ""
        self.headers: dict[str, Any] = {}
        self.body: Any = None

    def filled(self, values: Values) -> "PreparedJob":
        """Return a copy with secrets instead of references, for the executions that were granted them."""
        plan = copy(self)
        plan.env = {name: fill(text, values) for name, text in self.env.items()}
        plan.url = fill_url(self.url, values)
        plan.headers = {name: fill(text, values) for name, text in self.headers.items()}
        if isinstance(self.spec.task, HttpTask):
            plan.body = fill_tree(self.spec.task.body, "http.body", values)
        return plan

    def facts(self, held_slice: HeldSlice, index: int, deadline: int | None) -> AttemptFacts:
        """Return the facts that an execution of this job can read about itself."""
        grant = held_slice.grant
        extra = held_slice.extra(index)
        ends = [end for end in (deadline, grant.deadline) if end is not None]
        return AttemptFacts(
            execution_id=held_slice.execution(index),
            job=self.spec.name,
            attempt=grant.attempt,
            token=grant.token,
            failures=grant.failures,
            scheduled_at=grant.due_at,
            deadline=min(ends, default=None),
            priority=grant.priority,
            parent=grant.parent,
            tags={**self.spec.tags, **extra.tags},
            trace=extra.trace,
            trace_state=extra.trace_state,
            interval=extra.interval,
            upstream=extra.upstream,
            params=held_slice.item(index),
            defaults=self.defaults,
            durable=self.spec.durable,
        )

    def params(self, item: Raw) -> dict[str, Any]:
        """Return the job's params overridden by the item's. Raises BadParams if the item is not an object."""
        try:
            return {**self.spec.params, **(_params.decode(item) or {})}
        except msgspec.MsgspecError as error:
            raise BadParams(str(error)) from None


def plan_for(backlog: JobBacklog, registry: Registry) -> PreparedJob:
    """Prepare a job; a problem becomes the outcome of its items."""
    if backlog.spec is None:
        plan = PreparedJob(Spec(name="", task=PythonTask(function="")))
        message = f"{backlog.problem}. Upgrade this worker, or send the job to other workers."
        plan.problem = failed("BadDefinition", message, kind="platform")
        return plan
    plan = PreparedJob(backlog.spec)
    try:
        _prepare(plan, backlog.spec, registry)
    except BadParams as error:
        plan.problem = failed("BadParams", str(error), permanent=True)
    except HoraeError as error:
        plan.problem = failed("BadDefinition", str(error), permanent=True)
    if plan.problem is not None:
        plan.kind = "broken"
    return plan


def _prepare(plan: PreparedJob, spec: Spec, registry: Registry) -> None:
    task = spec.task
    if isinstance(task, PythonTask):
        _prepare_function(plan, task, registry)
    elif isinstance(task, CommandTask):
        plan.kind, plan.limits = "command", task.limits
        plan.argv = [compile_template(part, f"command[{i}]") for i, part in enumerate(task.argv)]
        plan.cwd = None if task.cwd is None else compile_template(task.cwd, "command.cwd")
        plan.env = {name: compile_template(value, f"env.{name}") for name, value in spec.env.items()}
    elif isinstance(task, HttpTask):
        plan.kind = "http"
        plan.url = compile_template(task.url, "http.url")
        plan.headers = {name: compile_template(value, f"http.headers.{name}") for name, value in task.headers.items()}
        plan.body = compile_tree(task.body, "http.body")


def _prepare_function(plan: PreparedJob, task: PythonTask, registry: Registry) -> None:
    entry = registry.jobs.get(task.function)
    if entry is None:
        known = ", ".join(sorted(registry.jobs)[:5]) or "none"
        message = (
            f"this worker has no function {task.function!r}; it has {known}. Start it with the app that defines it."
        )
        plan.problem = failed("FunctionNotFound", message, kind="platform")
        return
    plan.entry, plan.function = entry, entry.function
    plan.bind = entry.signature.binder(plan.spec.params)
    plan.wants_context = entry.signature.context is not None
    plan.kind, plan.limits = _kind(entry, task, plan.spec), task.limits
    if plan.kind == "process" and not is_importable(entry.function):
        message = f"{task.function} cannot run in a process of its own: it is not at the top level of a module."
        plan.problem = failed(
            "BadDefinition", f"{message} Move it there, or choose isolation='thread'.", permanent=True
        )


def _kind(entry: JobFunction, task: PythonTask, spec: Spec) -> Kind:
    """Choose the kind of runner.

    Sync functions that may have to stop run in a process, because a thread cannot be stopped.
    """
    if task.isolation == "process" or task.limits != NO_LIMITS:
        return "process"
    if inspect.iscoroutinefunction(inspect.unwrap(entry.function)):
        return "async"
    may_stop = spec.preemptible or _watched(spec)
    by_default = task.isolation is None and may_stop and is_importable(entry.function)
    return "process" if by_default else "thread"


def _watched(spec: Spec) -> bool:
    """Return whether executions are stopped for a long run, a missing heartbeat or a total time limit."""
    return any(span is not None for span in (spec.timeout, spec.timeouts.heartbeat, spec.retry.within))


def is_importable(function: Any) -> bool:
    """Return whether another process can find this function by its module and name."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if module in (None, "__main__") or module not in sys.modules or "<" in name:
        return False
    found: Any = sys.modules[module]
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is not None and getattr(found, "function", found) is function
