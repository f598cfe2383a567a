"""Horae, a distributed job scheduler: cron at scale, a durable job queue and a workflow engine in one system.

The names in this package are public; its subpackages are internal. Names are imported on first use, so that `import
horae` is cheap.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from horae.version import __version__

if TYPE_CHECKING:
    from horae.client.app import App, cron, every, once
    from horae.client.client import Client
    from horae.client.sync import SyncClient
    from horae.client.transport.embedded import EmbeddedTransport
    from horae.client.workflows import steps as step
    from horae.errors import HoraeError
    from horae.model.executions.job_exceptions import Cancelled, GiveUp, Retry, SignalTimeout
    from horae.worker.code.context import Context, current

__all__ = [
    "App",
    "Cancelled",
    "Client",
    "Context",
    "EmbeddedTransport",
    "GiveUp",
    "HoraeError",
    "Retry",
    "SignalTimeout",
    "SyncClient",
    "__version__",
    "cron",
    "current",
    "every",
    "once",
    "step",
]

_HOMES = {
    "horae.client.app": ("App", "cron", "every", "once"),
    "horae.client.client": ("Client",),
    "horae.client.transport.embedded": ("EmbeddedTransport",),
    "horae.client.sync": ("SyncClient",),
    "horae.errors": ("HoraeError",),
    "horae.model.executions.job_exceptions": ("Cancelled", "GiveUp", "Retry", "SignalTimeout"),
    "horae.worker.code.context": ("Context", "current"),
}
_MODULES = {"step": "horae.client.workflows.steps"}  # public names that are modules themselves
_HOME = _MODULES | {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'horae' has no attribute {name!r}")
    module = import_module(_HOME[name])
    found = module if name in _MODULES else getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
