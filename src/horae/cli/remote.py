"""The shared parts of commands that talk to a server: its address, the key, the output and an event loop."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial, wraps
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from horae.cli.output import Printer
from horae.client.client import Client
from horae.client.local import find_key, where
from horae.client.transport.calls import RequestRetryPolicy
from horae.client.transport.http import HttpClientTransport
from horae.client.transport.transport import ClientTransport
from horae.client.transport.trust import trust
from horae.config.load import load
from horae.config.settings import Settings
from horae.env import Env, system_env

_SERVER = "The server.  [env: HORAE_URL; default: http://127.0.0.1:8420]"
FORMATS = ("table", "json", "yaml")


class CliOverrides:
    """Replacements for the network and the clock in tests, passed as `ctx.obj` of the root."""

    def __init__(self, transport: ClientTransport | None = None, env: Env | None = None) -> None:
        self.transport = transport
        self.env = env


class Api:
    """The context of a command: the client of the server, the output and the environment."""

    def __init__(self, client: Client, out: Printer, env: Env) -> None:
        self.client, self.out, self.env = client, out, env


def output_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "-o", "--output", type=click.Choice(FORMATS), default="table", help="A table, or one JSON or YAML document."
    )(command)


def config_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--config", type=click.Path(path_type=Path), metavar="FILE", help="Settings file instead of ./horae.toml."
    )(command)


def page_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that select a page of a list. An incomplete list prints the --cursor to continue with."""
    command = click.option("--cursor", metavar="CURSOR", help="Continue where an earlier list ended.")(command)
    limit = click.option(
        "--limit", type=click.IntRange(1, 1000), metavar="N", help="The maximum number of items; 50 by default."
    )
    return limit(command)


def server_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for the server and its key. They are the last options in every help text."""
    command = click.option(
        "--namespace", metavar="NAME", help="The namespace, for a key that may use several.  [env: HORAE_NAMESPACE]"
    )(command)
    command = click.option("--api-key", metavar="KEY", help="The API key.  [env: HORAE_KEY]")(command)
    command = click.option("--server", metavar="URL", help=_SERVER)(command)
    return config_option(command)


def remote(work: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
    """Turn a coroutine function with an `Api` as its first argument into a click callback."""

    @wraps(work)
    def callback(
        *args: Any,
        output: str,
        server: str | None,
        api_key: str | None,
        namespace: str | None,
        config: Path | None,
        **options: Any,
    ) -> None:
        world = click.get_current_context().find_object(CliOverrides) or CliOverrides()
        asyncio.run(_run(work, world, (output, server, api_key, namespace, config), *args, **options))

    return output_option(server_options(callback))


async def _run(
    work: Callable[..., Awaitable[Any]],
    world: CliOverrides,
    where_to: tuple[str, str | None, str | None, str | None, Path | None],
    *args: Any,
    **options: Any,
) -> None:
    output, server, key, namespace, config = where_to
    env = world.env or system_env()
    settings = load({"url": server, "key": key, "namespace": namespace}, file=config).settings
    client = connect(world, env, settings)
    try:
        await work(Api(client, Printer(output, env.now), env), *args, **options)  # type: ignore[arg-type]
    finally:
        await client.close()


def connect(overrides: CliOverrides, env: Env, settings: Settings) -> Client:
    """Create a client that tries each server once and gives up if none listens, because a user is waiting."""
    patience = RequestRetryPolicy(total=10.0, refusals=1)
    if overrides.transport is not None:
        key, over = str(settings.key), overrides.transport
    else:
        urls = where(None, settings)
        patience = replace(patience, refusals=len(urls))
        key, over = find_key(urls, settings), HttpClientTransport(urls, partial(trust, settings))
    return Client(key=key, namespace=settings.namespace, transport=over, env=env, patience=patience)
