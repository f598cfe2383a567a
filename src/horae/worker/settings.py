"""Settings of a worker, and the registration that it sends to servers."""

import os
import platform
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec
from msgspec import Raw, Struct

from horae.env import SECOND, Micros
from horae.model.definitions.function_signature import Signature
from horae.model.definitions.resource_limits import NO_LIMITS, ResourceLimits
from horae.model.fleet.protocol import PROTOCOL, Function, Register
from horae.outbound.allow import AllowedAddresses
from horae.version import __version__


class WorkerSettings(Struct, frozen=True, kw_only=True):
    """Every setting of a worker."""

    name: str = ""  # shown as workerId; by default the host name and the process id
    queues: tuple[str, ...] = ("default",)
    weights: dict[str, float] = {}  # the weights of queues, relative to each other
    strict: bool = False  # serve the queues strictly in their order, not by their weights
    labels: dict[str, str] = {}
    concurrency: int = 10  # its slots
    resources: dict[str, int] = {}  # other resources that executions use, such as memory in bytes
    kinds: tuple[str, ...] = ("command", "http")  # kinds of tasks that it accepts besides its functions
    grace: Micros = 30 * SECOND  # the time that a drain leaves to running work
    pass_env: tuple[str, ...] = ()  # more environment variables that commands may read
    limits: ResourceLimits = NO_LIMITS  # default limits of executions in their own processes
    command_user: str = ""  # default user of commands; the worker's own if empty
    command_users: tuple[str, ...] = ()  # users that commands may choose; any but root if empty
    secret_env: tuple[str, ...] = ()  # environment variables that jobs may use as secret://env/NAME
    secret_files: str = ""  # the folder of files that jobs may use as secret://file/NAME
    outbound: AllowedAddresses = AllowedAddresses()  # hosts that http jobs may call
    verbose: bool = False  # log every attempt
    replace: bool = True  # exit when a thread cannot be stopped; the parent process starts another worker


class JobFunction(Protocol):
    """A function registered for a job, with the facts that the worker needs."""

    @property
    def name(self) -> str: ...

    @property
    def function(self) -> Any: ...

    @property
    def signature(self) -> Signature: ...

    @property
    def retry_function(self) -> Any:
        """The job's own retry rule, if any: a function of (failures, error) that returns a span, False or None."""
        ...


class Registry(Protocol):
    """Any object with jobs: an App, or a stand-in for one."""

    @property
    def jobs(self) -> Mapping[str, Any]: ...


def registration(name: str, settings: WorkerSettings, registry: Registry) -> Register:
    """Return the data that a worker sends when it registers."""
    functions = [
        Function(name=name, params=Raw(msgspec.json.encode(job.signature.schema)))
        for name, job in registry.jobs.items()
    ]
    return Register(
        protocol=PROTOCOL,
        worker=name,
        host=platform.node(),
        pid=os.getpid(),
        version=__version__,
        labels=settings.labels,
        queues=settings.queues,
        weights=settings.weights,
        strict=settings.strict,
        concurrency=settings.concurrency,
        resources=settings.resources,
        kinds=settings.kinds,
        functions=functions,
        secrets=True,
        reattaches=True,
    )
