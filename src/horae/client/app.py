"""`App` and `@app.job`: functions as jobs.

    app = App()

    @app.job(schedule=cron("0 9 * * MON-FRI", tz="Europe/Paris"), retries=3, timeout="5m")
    async def digest(day: date): ...

    await digest.submit(day=date.today(), delay="10m", key="digest-2026-11-15")
    digest.sync.submit(day=date.today())  # without an event loop

Registration alone defines no job on a server; `horae apply --app module:app` (or `horae up --app`) does.
"""

import inspect
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, Unpack, overload

from horae.client.encode import encode
from horae.client.kernel.trigger_options import CronOptions, IntervalOptions, TriggerRules
from horae.client.loops import FORK_LOCK
from horae.client.options import JobOptions, RetryFunction, WorkflowOptions
from horae.client.spelling import camel, named, option, process_limits, text_of
from horae.client.submitting import Submittable
from horae.client.workflows import job_options
from horae.client.workflows.job_options import plain
from horae.client.workflows.options import StepOptions
from horae.client.workflows.workflow import BUILDING, AppWorkflow, StepCall, StepNode, described
from horae.errors import BadInput
from horae.model.definitions.function_signature import Signature, signature_of
from horae.model.executions.job_exceptions import Span
from horae.model.fields.values import NAME

if TYPE_CHECKING:
    from horae.client.client import Client
    from horae.worker.code.context import Context

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
S = TypeVar("S")


RULED_RETRIES = 100  # retries of a job with its own retry function, unless it sets them
_MOST_DESCRIPTION = 4096


def cron(expression: str, tz: str | None = None, **rules: Unpack[CronOptions]) -> dict[str, Any]:
    """Return a trigger that fires at the times of a cron expression, in a time zone (UTC by default).

    Pass it as `schedule` or in `triggers`. Here and in `every` and `once`, `rules` are the options of a trigger in the
    REST API by their Python names, such as `start_at`, `max_fires` and `name`.
    """
    return _trigger(cron=expression, timezone=tz, **rules)


def every(span: Span, **rules: Unpack[IntervalOptions]) -> dict[str, Any]:
    """Return a trigger that fires repeatedly, at an interval such as "5m"."""
    return _trigger(every=span, **rules)


def once(at: datetime | str, **rules: Unpack[TriggerRules]) -> dict[str, Any]:
    """Return a trigger that fires once, at an instant."""
    return _trigger(at=at, **rules)


def _trigger(**parts: Any) -> dict[str, Any]:
    named = {camel(name): part for name, part in parts.items() if part is not None}
    return {name: part if name == "params" else plain(part, name) for name, part in named.items()}


class AppJob(Submittable[Callable[P, R]], Generic[P, R]):
    """A function that is a job.

    A call runs the function here and now; `submit` and `sync.submit` let a worker run it. In a function under
    `@app.workflow`, a call adds a step instead.
    """

    def __init__(self, app: "App", function: Callable[P, R], name: str, document: dict[str, Any], retry: Any) -> None:
        self.app = app
        self.function = function
        self.name = name
        self.signature: Signature = signature_of(function)
        self.retry_function: RetryFunction | None = retry
        self._document = document
        update_wrapper(self, function)

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

    # In a workflow, a job is called without the context, and the returned value stands for the result.
    @overload
    def __call__(
        self: "Submittable[Callable[Concatenate[Context, Q], Coroutine[Any, Any, Any]]]",
        *args: Q.args,
        **kwargs: Q.kwargs,
    ) -> Any: ...

    @overload
    def __call__(self: "Submittable[Callable[Concatenate[Context, Q], S]]", *args: Q.args, **kwargs: Q.kwargs) -> S: ...

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if BUILDING.get() is None:
            return self.function(*args, **kwargs)
        return self.step()(*args, **kwargs)

    def step(self, **options: Unpack[StepOptions]) -> StepCall:
        """Set options of a step of a workflow, such as `when`, `retries`, `undo` and `name`.

        Return a callable that adds the step, as in `job.step(retries=2)(params)`.
        """
        return StepCall(self, options)

    def map(self, items: Any, *args: Any, **named: Any) -> StepNode:
        """In a workflow, add a step that runs one execution for each item; other arguments are the same for all items.

        `concurrency` bounds the executions that run at once; `tolerate` is how many of them, or what share, may fail.
        """
        return self.step().map(items, *args, **named)

    def __repr__(self) -> str:
        return f"<job {self.name}>"

    def definition(self) -> dict[str, Any]:
        """Return the job's definition as POST /api/v1/jobs accepts it."""
        return {**self._document, "schema": self.signature.schema}


class App:
    """A collection of jobs, with the client that submits them."""

    def __init__(self, name: str = "app", *, client: "Client | None" = None) -> None:
        self.name = name
        self.jobs: dict[str, AppJob[Any, Any]] = {}
        self.workflows: dict[str, AppWorkflow] = {}
        self._client = client

    @property
    def client(self) -> "Client":
        """The client for submissions. By default it calls HORAE_URL, or else the server on this machine.

        Assign another client to use it instead.
        """
        if self._client is None:
            with FORK_LOCK:  # if several threads come here at once, only one creates the client
                from horae.client.client import Client

                self._client = self._client or Client()
        return self._client

    @client.setter
    def client(self, client: "Client") -> None:
        self._client = client

    @contextmanager
    def with_client(self, client: "Client") -> Iterator[None]:
        """Use another client during a `with` block."""
        before, self._client = self._client, client
        try:
            yield
        finally:
            self._client = before

    @overload
    def job(self, name: Callable[P, R], /) -> AppJob[P, R]: ...

    # The params of a submission to a batch are those of an item, not those of the function.
    @overload
    def job(
        self, name: str | None = None, *, batch: Mapping[str, Any], **options: Unpack[JobOptions]
    ) -> Callable[[Callable[..., R]], AppJob[..., R]]: ...

    @overload
    def job(
        self, name: str | None = None, *, batch: None = ..., **options: Unpack[JobOptions]
    ) -> Callable[[Callable[P, R]], AppJob[P, R]]: ...

    def job(self, name: str | Callable[..., Any] | None = None, **options: Any) -> Any:
        """Register a function as a job, as `@app.job` or `@app.job(...)`.

        The job's name defaults to the function's name, its description to the docstring.

        A sync function with a timeout runs in a separate process unless `isolation` is "thread"; a function with
        `process_limits` always does. `retry` is a mapping with a retry policy, a list of delays, or a function of
        (failures, error). The worker calls this function after every failure; it returns the time to wait, False to
        give up, or None for the delay of the default policy.
        """
        if callable(name):
            return self.job()(name)
        how = {
            "isolation": options.pop("isolation", None),
            "limits": named(option("process_limits", "@app.job"), process_limits, options.pop("process_limits", None)),
        }
        about = _description("@app.job", options)
        rule = options.pop("retry") if callable(options.get("retry")) else None
        if rule is not None and options.get("retries") is None:
            options["retries"] = RULED_RETRIES
        given = job_options.described(options, "@app.job", job_options.OF_DECORATOR)

        def register(function: Callable[P, R]) -> AppJob[P, R]:
            return self._add(function, name, how, about, given, rule)

        return register

    @overload
    def workflow(self, name: Callable[..., Any], /) -> AppWorkflow: ...

    @overload
    def workflow(
        self, name: str | None = None, **options: Unpack[WorkflowOptions]
    ) -> Callable[[Callable[..., Any]], AppWorkflow]: ...

    def workflow(self, name: str | Callable[..., Any] | None = None, **options: Any) -> Any:
        """Register a function as a workflow, as `@app.workflow` or `@app.workflow(...)`.

        The jobs that the function calls become the steps of the workflow. Options are those of a job that apply to a
        workflow (`schedule`, `timeout`, `queue`, `tags`...), and `on_error`, the policy for the other steps when a step
        fails.
        """
        if callable(name):
            return self.workflow()(name)
        description = _description("@app.workflow", options)

        def register(function: Callable[..., Any]) -> AppWorkflow:
            chosen = self._free_name(str(name or function.__name__), "workflow")
            about = inspect.cleandoc(description or function.__doc__ or "")[:_MOST_DESCRIPTION]
            document = {"name": chosen, "description": about, **described(options)}
            workflow = AppWorkflow(self, function, chosen, document)
            self.workflows[chosen] = workflow
            return workflow

        return register

    def definitions(self) -> list[dict[str, Any]]:
        """Return the definitions of all jobs as POST /api/v1/jobs accepts them; workflows follow the jobs they call."""
        jobs = [job.definition() for job in self.jobs.values()]
        return jobs + [workflow.definition() for workflow in self.workflows.values()]

    def _add(
        self,
        function: Callable[P, R],
        name: str | None,
        how: dict[str, Any],
        description: str | None,
        options: dict[str, Any],
        rule: Any,
    ) -> AppJob[P, R]:
        chosen = self._free_name(str(name or getattr(function, "__name__", "?")), "job")
        about = inspect.cleandoc(function.__doc__ or "") if description is None else description
        python = {"function": chosen, **{field: value for field, value in how.items() if value}}
        document = {"name": chosen, "python": python, "description": about[:_MOST_DESCRIPTION], **options}
        encode(document, f"The job {chosen!r}")
        job = AppJob(self, function, chosen, document, rule)
        if "batch" not in document:  # the params of a batch are those of an item
            job.signature.binder(document.get("params", {}))  # refuses params that the function does not have
        self.jobs[chosen] = job
        return job

    def _free_name(self, chosen: str, kind: str) -> str:
        if not NAME.fullmatch(chosen):
            remedy = f"Choose a name with @app.{kind}(name=...): letters, digits, '.', '_' and '-'."
            raise BadInput(f"{chosen!r} cannot be the name of a {kind}.", remedy, field="name")
        if chosen in self.jobs or chosen in self.workflows:
            raise BadInput(f"There is already a job {chosen!r} in this app.", "Rename one of them.", field="name")
        return chosen


def _description(call: str, options: dict[str, Any]) -> str | None:
    """Remove the description from the options and return it."""
    return named(option("description", call), text_of, options.pop("description", None))
