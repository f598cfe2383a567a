"""The shared parts of `up` and `server`: they open a node with the settings, and serve it."""

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import msgspec

from horae.cli.first_key import make_folder
from horae.cli.process import tune_garbage_collector
from horae.cli.terminal import echo
from horae.config.build import connections, engine_settings
from horae.config.load import load
from horae.config.settings import Settings
from horae.engine.server_node import ServerNode
from horae.env import Env
from horae.errors import BadInput
from horae.feature import enabled
from horae.feature import load as load_target
from horae.model.executions.tracer import Tracer
from horae.server.cors import Cors
from horae.server.http.connection_limits import ConnectionLimits
from horae.server.http.proxies import Proxies
from horae.server.http.tls import Tls
from horae.server.run import Serving, is_loopback, remote_url, serve
from horae.worker.processes.spawner import raise_open_files


def read_settings(flags: dict[str, Any], config: Path | None) -> Settings:
    """Return the settings of a long-running command, and configure its logs."""
    from horae.cli.installation.logs import configure_logs

    settings = load(flags, file=config).settings
    configure_logs(settings)
    return settings


async def open_node(env: Env, settings: Settings, command: str) -> ServerNode:
    """Open a node on the store, which is created or migrated if necessary."""
    make_folder(settings.data)
    owner = f"({command}, {settings.public_url})"
    own = engine_settings(with_reachable_url(settings))
    return await ServerNode.open(env, settings.store_url, own, owner, connections(settings), _tracer(env, settings))


def _tracer(env: Env, settings: Settings) -> Tracer | None:
    for feature in enabled(settings.features):
        if feature.open_tracer:
            tracer: Tracer | None = load_target(feature.open_tracer)(settings.otlp_endpoint, os.environ, env)
            return tracer
    return None


def with_reachable_url(settings: Settings) -> Settings:
    """Advertise the machine's name if the host is a wildcard address, which others cannot connect to."""
    remote = remote_url(settings.host, settings.port, "https" if settings.tls_cert else "http")
    if settings.advertise or not remote or not settings.port:
        return settings
    return msgspec.structs.replace(settings, advertise=remote)


def warn_without_tls(serving: Serving) -> None:
    """Warn when other machines can connect over plain HTTP, where keys can be read on the network."""
    if is_loopback(serving.host) or serving.is_private:
        return
    echo(
        f"Warning: other machines reach this server on {serving.host or 'all addresses'}, port {serving.port}, without"
        " TLS: keys and params can be read on the way. Put a TLS proxy in front and keep --host 127.0.0.1, unless you"
        " trust the whole network.",
        err=True,
    )


def tls_of(settings: Settings) -> Tls | None:
    """Return the server's certificate, if it has one."""
    if not settings.tls_cert:
        if settings.tls_key or settings.tls_client_ca:
            detail = "tls_key or tls_client_ca is set, but there is no certificate."
            raise BadInput(detail, "Name the certificate's file with tls_cert.", field="tls_cert")
        return None
    authority = Path(settings.tls_client_ca) if settings.tls_client_ca else None
    return Tls(Path(settings.tls_cert), Path(settings.tls_key or settings.tls_cert), authority)


async def listen(node: ServerNode, settings: Settings, roles: Collection[str], command: str) -> Serving:
    """Start serving. A host other than loopback allows connections from other machines."""
    raise_open_files()  # each connection needs an open file; the usual soft limit is below the limit per address
    remote = not is_loopback(settings.host)
    proxies = Proxies(settings.trusted_proxies, settings.proxy_hops, settings.allowed_hosts)
    limits = ConnectionLimits(settings.max_connections, settings.max_connections_per_address, proxies)
    serving = await serve(
        node, settings.host, settings.port, roles=roles, allow_remote=remote, tls=tls_of(settings), limits=limits,
        proxies=proxies, cors=Cors(settings.cors_origins),
    )  # fmt: skip
    # Commands that find a SQLite file in use then ask this server instead of opening the file.
    node.store.database.tell_owner(f"({command}, {serving.url})")
    tune_garbage_collector()
    return serving
