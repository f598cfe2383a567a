"""`horae worker`: a process that executes jobs, on any machine that can reach a server."""

import asyncio
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from horae.cli.definitions.worker_options import worker_options
from horae.cli.lazy import HoraeCommand
from horae.cli.remote import config_option
from horae.cli.terminal import echo

if TYPE_CHECKING:
    from horae.config.settings import Settings
    from horae.env import Clock
    from horae.model.executions.tracer import SpanSink
    from horae.worker.code.tracing import TracerFactory
    from horae.worker.settings import WorkerSettings
    from horae.worker.worker import WorkerRuntime


class NoFunctions:
    """The registry of a worker without an app, which runs commands and HTTP requests only."""

    jobs: dict[str, Any] = {}  # noqa: RUF012

    def definitions(self) -> list[dict[str, Any]]:
        return []


@click.command(
    cls=HoraeCommand,
    examples=(
        "horae worker --server https://horae:8420 --enrol he_... --app reports.jobs:app",
        "horae worker --server http://a:8420,http://b:8420 --queue gpu --label gpu=a100 --slots 2",
        "horae worker --label zone=eu-1 --slots 8 --resource memory=16GiB --resource gpu=2",
    ),
)
@click.option(
    "--server",
    "url",
    metavar="URL[,URL]",
    help="The servers from which the worker takes executions. While none of them answers, it uses other servers that"
    " they reported.  [env: HORAE_URL; default: http://127.0.0.1:8420]",
)
@click.option("--key", "--api-key", "key", metavar="KEY", help="The API key.  [env: HORAE_KEY]")
@click.option(
    "--namespace", metavar="NAME", help="The namespace, for a key that may use several.  [env: HORAE_NAMESPACE]"
)
@click.option(
    "--enrol",
    metavar="TOKEN",
    help="The token for which the worker gets its own key at its first start.  [env: HORAE_ENROL]",
)
@click.option(
    "--data", metavar="DIR", help="The folder in which the worker stores its own key.  [env: HORAE_DATA; default: .]"
)
@click.option("--app", metavar="MODULE:APP", help="The app with the Python jobs.  [env: HORAE_APP]")
@worker_options
@click.option("--name", "worker_name", metavar="NAME", help="The worker's name.  [default: host name and process id]")
@click.option("--spot", is_flag=True, default=None, help="The machine can be reclaimed at short notice.")
@click.option("--notice-file", metavar="PATH", help="A file that appears before the machine is reclaimed.")
@click.option(
    "--notice-url", metavar="URL", help="The URL of the cloud's termination notice, or one of aws, gcp and azure."
)
@click.option(
    "--drain-grace", metavar="SPAN", help="How long running work may continue during a drain.  [default: 30s]"
)
@config_option
def worker(config: Path | None, **flags: Any) -> None:
    """Run a worker that executes jobs for a server.

    It needs no access to the store, only HTTP and a key. At SIGTERM it drains: it hands back preemptible executions and
    executions that have not started, and gives the other executions the grace time to finish. Then it hands back those
    that are still running. A second SIGTERM aborts.
    """
    from horae.cli.installation.serving import read_settings
    from horae.cli.process import run

    if run(_work(read_settings(flags, config))) == "replace":
        # A thread that cannot be stopped ends only with its process; the same command line starts again.
        os.execv(sys.executable, sys.orig_argv)


async def _work(settings: "Settings") -> str:
    from horae.cli.apps import load_app
    from horae.cli.process import freeze_loaded_objects, run_until_stopped, signals
    from horae.client.local import find_key, where
    from horae.client.transport.trust import trust
    from horae.env import system_env
    from horae.errors import HoraeError
    from horae.worker.http_transport import HttpTransport
    from horae.worker.worker import WorkerRuntime

    urls = where(None, settings)
    key = await enrolled(settings, urls) or find_key(urls, settings)
    if not key:
        remedy = (
            "Create a token with `horae workers enrol` for --enrol, or a key with `horae keys create --role worker`."
        )
        raise HoraeError("A worker needs a key.", remedy)
    registry = load_app(settings.app) if settings.app else NoFunctions()
    env = system_env()
    tls = trust(settings) if any(url.startswith("https:") for url in urls) else None
    transport = HttpTransport(urls, key, tls, namespace=settings.namespace, rng=env.rng, clock=env.clock)
    sink = open_sink(settings)
    runtime = WorkerRuntime(env, worker_settings(settings), transport, registry, tracer_factory(sink))
    if sink is not None:
        sink.serve_users()
    echo(f"Worker {runtime.name} pulls from {', '.join(urls)}: {description_of(settings, registry)}")
    if said := unserved_warning(settings, registry):
        echo(said, err=True)
    freeze_loaded_objects()
    try:
        with signals(env.clock) as taken, watch_for_notice(runtime, env.clock, settings):
            return await run_until_stopped(runtime, taken)
    finally:
        if sink is not None:
            await sink.close()


def open_sink(settings: "Settings") -> "SpanSink | None":
    """Return the sink for a worker's spans, if a feature provides it and the settings configure it. Raises BadInput."""
    from horae.feature import enabled, load

    for feature in enabled(settings.features):
        if feature.open_sink:
            sink: SpanSink | None = load(feature.open_sink)(settings.otlp_endpoint, "horae-worker", os.environ)
            return sink
    return None


def tracer_factory(sink: "SpanSink | None") -> "TracerFactory":
    """Return the function that creates a worker's tracer of attempts, which sends their spans to the sink."""
    from horae.worker.code.tracing import AttemptTracer

    return None if sink is None else partial(AttemptTracer, sink)


async def enrolled(settings: "Settings", urls: list[str]) -> str:
    """Return the worker's own key: stored by an earlier start, or obtained with a token now.

    Return an empty text if there is neither a stored key nor a token, or if the settings have another key.
    """
    from horae.cli.first_key import make_folder, private_file
    from horae.client.client import Client
    from horae.client.local import read_key
    from horae.client.transport.http import HttpClientTransport
    from horae.client.transport.trust import trust

    known = "" if settings.key else read_key(settings.worker_key_file)
    if known or settings.key or not settings.enrol:
        return known
    make_folder(settings.data)
    transport = HttpClientTransport(urls, partial(trust, settings))
    with private_file(settings.worker_key_file) as keep:
        async with Client(key="", transport=transport) as client:
            name = settings.worker_name or socket.gethostname()
            enrolment = await client.workers.redeem(str(settings.enrol), name=name)
        keep(enrolment.raw["key"])
    echo(f"Enrolled as {enrolment.raw['keyId']}; its key is in {settings.worker_key_file}")
    return str(enrolment.raw["key"])


@contextmanager
def watch_for_notice(made: "WorkerRuntime", clock: "Clock", settings: "Settings") -> Iterator[None]:
    """Watch for a termination notice, if a source is configured."""
    from horae.worker.notices.notice_watch import drain_on_notice

    if not settings.notice_file and not settings.notice_url:
        yield
        return
    watching = asyncio.ensure_future(drain_on_notice(made, clock, settings.notice_file, settings.notice_url))
    try:
        yield
    finally:
        watching.cancel()


def worker_settings(settings: "Settings", **changes: Any) -> "WorkerSettings":
    """Return the part of the settings that workers use."""
    from horae.config.limits import check_user, command_limits
    from horae.model.admission.placement.labels import read_resources
    from horae.model.admission.queue import read_served
    from horae.outbound.allow import AllowedAddresses
    from horae.worker.settings import WorkerSettings

    served = read_served(settings.queues)
    chosen = {
        "name": settings.worker_name,
        "queues": served.queues,
        "weights": served.weights,
        "strict": served.strict,
        "labels": {"spot": "true", **settings.labels} if settings.spot else settings.labels,
        "concurrency": settings.concurrency,
        "resources": read_resources(settings.resources),
        "grace": settings.drain_grace,
        "pass_env": settings.pass_env,
        "secret_env": settings.secret_env,
        "secret_files": settings.secret_files,
        "limits": command_limits(settings),
        "command_user": check_user(settings),
        "command_users": settings.command_users,
        "outbound": AllowedAddresses.read(settings.outbound_allow),
        "verbose": settings.log_level == "debug",
    }
    return WorkerSettings(**{**chosen, **changes})


def unserved_warning(settings: "Settings", registry: Any) -> str:
    """Return a warning about queues of the app that this worker does not serve; empty if it serves all."""
    from horae.model.admission.queue import DEFAULT_QUEUE, read_served

    served = read_served(settings.queues)
    jobs: dict[str, list[str]] = {}
    for document in registry.definitions():
        if (queue := document.get("queue") or DEFAULT_QUEUE) not in served.queues:
            jobs.setdefault(queue, []).append(document["name"])
    if not jobs:
        return ""
    missing = "; ".join(f"{queue} ({', '.join(names)})" for queue, names in sorted(jobs.items()))
    wanted = [",".join([*served.queues, *sorted(jobs)])] if served.strict else [*settings.queues, *sorted(jobs)]
    flags = " ".join(f"--queue {queue}" for queue in wanted)
    return f"This worker does not serve all queues of its app: {missing}. To serve them, start it with {flags}."


def description_of(settings: "Settings", registry: Any) -> str:
    """Describe the worker's slots, queues and functions in one line."""
    functions = f", functions {', '.join(sorted(registry.jobs))}" if registry.jobs else ""
    return f"{settings.concurrency} at a time from {', '.join(settings.queues)}{functions}"
