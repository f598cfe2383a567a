"""How a worker is set up, and what it tells servers of that."""

import os
import platform
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec
from msgspec import Raw, Struct

from horae.env import SECOND, Micros
from horae.model.definitions.function_signature import Signature
from horae.model.definitions.resource_limits import FREE, ResourceLimits
from horae.model.fleet.protocol import PROTOCOL, Function, Register
from horae.outbound.allow import Allowed
from horae.version import __version__


class WorkerSettings(Struct, frozen=True, kw_only=True):
    """Everything that can be chosen about a worker."""

    name: str = ""  # shown as workerId; the host's name and the process id otherwise
    queues: tuple[str, ...] = ("default",)
    weights: dict[str, float] = {}  # of queues, against one another
    strict: bool = False  # its queues in their order
    labels: dict[str, str] = {}
    concurrency: int = 10  # its slots
    resources: dict[str, int] = {}  # what else it has that executions take, as memory in bytes
    kinds: tuple[str, ...] = ("command", "http")  # of work it takes beside its functions
    grace: Micros = 30 * SECOND  # how long a drain lets running work go on
    pass_env: tuple[str, ...] = ()  # further variables of the worker's environment that commands may see
    limits: ResourceLimits = FREE  # of executions in processes of their own, for what their jobs do not say
    command_user: str = ""  # that commands run as which do not say; its own if empty
    command_users: tuple[str, ...] = ()  # that commands may ask for; any but root if empty
    secret_env: tuple[str, ...] = ()  # variables of its environment that jobs may refer to as secret://env/NAME
    secret_files: str = ""  # the folder of what they may refer to as secret://file/NAME
    outbound: Allowed = Allowed()  # whom http jobs may call
    verbose: bool = False  # every attempt is logged
    replace: bool = True  # leave when a thread cannot be stopped; whoever started the worker starts another


class JobFunction(Protocol):
    """A function registered for a job, as the worker needs to know it."""

    @property
    def name(self) -> str: ...

    @property
    def function(self) -> Any: ...

    @property
    def signature(self) -> Signature: ...

    @property
    def retry_function(self) -> Any:
        """The job's own rule from (failures, error) to a span, False or None; or None."""
        ...


class Registry(Protocol):
    """Anything with jobs: an App, or a stand-in for one."""

    @property
    def jobs(self) -> Mapping[str, Any]: ...


def presence(name: str, settings: WorkerSettings, registry: Registry) -> Register:
    """Return what a worker tells of itself when it registers."""
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
    )
