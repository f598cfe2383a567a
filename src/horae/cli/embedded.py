"""The worker inside `horae up`: its jobs, its session and its registration."""

import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from msgspec import Raw, structs
from msgspec.json import encode

from horae.cli.apps import load_app
from horae.cli.fleet.worker import tracer_factory, worker_settings
from horae.config.settings import Settings
from horae.engine.server_node import ServerNode
from horae.errors import HoraeError
from horae.model.fleet.protocol import Register
from horae.model.fleet.session import LIVE
from horae.model.fleet.submit import Submit
from horae.model.tenancy.principal import DEFAULT_NAMESPACE
from horae.worker.gateway_transport import GatewayTransport
from horae.worker.worker import WorkerRuntime


class CombinedApps:
    """The functions of several apps as one app."""

    def __init__(self, apps: list[Any]) -> None:
        self.apps = apps
        self.jobs: Mapping[str, Any] = {name: job for app in apps for name, job in app.jobs.items()}

    def definitions(self) -> list[dict[str, Any]]:
        """Return the job definitions of all apps."""
        return [document for app in self.apps for document in app.definitions()]


def registry_of(app: str, demo: bool) -> CombinedApps:
    """Return the user's app, the demo app, or both, as requested."""
    apps: list[Any] = [load_app(app)] if app else []
    if demo:
        from horae.cli.installation.demo import Demo

        apps.append(Demo())
    return CombinedApps(apps)


def with_demo(settings: Settings) -> Settings:
    """Add the queue of the demo's orders to the worker's queues, unless the user chose the queues."""
    from horae.cli.installation.demo import QUEUE

    is_default = settings.queues == Settings().queues
    return structs.replace(settings, queues=(*settings.queues, QUEUE)) if is_default else settings


async def apply_jobs(node: ServerNode, registry: CombinedApps) -> None:
    """Apply the apps' job definitions to the store. Some new jobs of the demo run once, and some start paused."""
    from horae.cli.apps import places_of
    from horae.cli.definitions.apply import with_places
    from horae.cli.installation.demo import FIRST, PAUSED, Demo
    from horae.engine.definitions.document_applier import Documents

    documents = registry.definitions()
    if not documents:
        return
    places = {name: place for app in registry.apps for name, place in places_of(app).items()}
    with with_places(documents, places), _with_server_remedy():
        applied = await node.definitions.document_applier.apply(DEFAULT_NAMESPACE, Documents(jobs=documents))
    has_demo = any(isinstance(app, Demo) for app in registry.apps)
    for job in (one for one in applied.items if has_demo and one.outcome == "created"):
        if job.name in PAUSED:
            await node.definitions.jobs.pause(DEFAULT_NAMESPACE, job.name)
        if job.name in FIRST:
            first = Submit(job=job.name, params=Raw(encode(FIRST[job.name])))
            await node.submitter.submit(DEFAULT_NAMESPACE, [first], origin="trigger", caller="demo")


@contextmanager
def _with_server_remedy() -> Iterator[None]:
    """Add to the remedy of an error how to get a server for commands, because the error ends this server."""
    try:
        yield
    except HoraeError as error:
        error.remedy = f"{error.remedy} To run commands that need a server, start `horae up` without --app.".lstrip()
        raise


async def embedded_worker(node: ServerNode, settings: Settings, registry: CombinedApps) -> WorkerRuntime:
    """Create a worker that calls the node in this process.

    Unlike `horae worker`, it does not restart its process because of a stuck thread, since the process is the server's,
    too. A stuck thread keeps its slot.
    """
    is_alone = not node.store.database.is_shared
    name = settings.worker_name or (f"embedded@{platform.node()}" if is_alone else "")
    if is_alone:
        await _end_previous_session(node, name)
    chosen = worker_settings(settings, name=name, replace=False)
    sink = None if node.tracer is None else node.tracer.sink
    if sink is not None:
        sink.serve_users()
    return WorkerRuntime(node.env, chosen, GatewayTransport(node), registry, tracer_factory(sink))


async def _end_previous_session(node: ServerNode, name: str) -> None:
    """Mark the session of an earlier embedded worker as lost.

    That worker ended with its process, so there is no need to wait for the session's timeout.
    """
    for session in await node.store.sessions(DEFAULT_NAMESPACE, node.env.now()):
        if session.worker == name and session.state in LIVE and _has_ended(session.presence):
            await node.store.mark_lost(session.id, session.last_seen)


def _has_ended(presence: Register) -> bool:
    """Return whether a worker's process was on this machine and has ended. Its id may be that of this process now."""
    if presence.host != platform.node() or not presence.pid:
        return False
    try:
        os.kill(presence.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return presence.pid == os.getpid()
