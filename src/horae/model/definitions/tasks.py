"""The task of a job: a command, a function, a request, or a workflow, as stored and sent to workers."""

from typing import Any, Literal

from msgspec import Struct

from horae.model.definitions.resource_limits import NO_LIMITS, ResourceLimits
from horae.model.workflows.decisions.values import Workflow

Isolation = Literal["thread", "process"]


class _Stored(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The base of tasks as they are stored and sent to workers: camelCase, durations in microseconds."""


class CommandTask(_Stored, frozen=True, kw_only=True, tag_field="kind", tag="command"):
    """A program: `argv` without a shell, or one explicit `shell` line."""

    argv: tuple[str, ...] = ()
    shell: str | None = None
    cwd: str | None = None
    limits: ResourceLimits = NO_LIMITS
    user: str | None = None  # the system user; None: the worker's own


class PythonTask(_Stored, frozen=True, kw_only=True, tag_field="kind", tag="python"):
    """A function registered with `@app.job` in a module that a worker has loaded."""

    function: str
    isolation: Isolation | None = None  # None: threads, or a process when a sync function has a timeout or limits
    limits: ResourceLimits = NO_LIMITS  # the limits of its process, if it runs in one of its own


class HttpTask(_Stored, frozen=True, kw_only=True, tag_field="kind", tag="http"):
    """One HTTP request; a status outside `expect` is a failure."""

    url: str
    method: str = "POST"
    headers: dict[str, str] = {}
    body: Any = None  # None sends the params as JSON
    expect: tuple[str, ...] = ("2xx",)
    redirects: int = 0  # number of redirects that are followed; a further redirect counts as the response


Task = CommandTask | PythonTask | HttpTask | Workflow
