"""`horae server`: API, scheduler and worker gateway; any number may share one PostgreSQL."""

from pathlib import Path
from typing import Any

import click

from horae.cli.lazy import HoraeCommand
from horae.cli.remote import config_option
from horae.cli.terminal import echo

ROLES = ("api", "gateway", "scheduler")


@click.command(
    cls=HoraeCommand,
    examples=(
        "horae server --store postgresql://horae@db/horae --host 0.0.0.0",
        "horae server --store postgresql://horae@db/horae --only api --only gateway",
    ),
)
@click.option("--store", metavar="URL", help="The store.  [env: HORAE_STORE; default: horae.db in --data]")
@click.option("--data", metavar="DIR", help="The folder for all state.  [env: HORAE_DATA; default: .]")
@click.option("--host", metavar="HOST", help="The address to listen on.  [env: HORAE_HOST; default: 127.0.0.1]")
@click.option("--port", metavar="PORT", help="The port to listen on.  [env: HORAE_PORT; default: 8420]")
@click.option(
    "--advertise", metavar="URL", help="The server's URL for workers and other servers.  [env: HORAE_ADVERTISE]"
)
@click.option("--only", multiple=True, type=click.Choice(ROLES), help="Give the server only this role; repeatable.")
@config_option
def server(only: tuple[str, ...], config: Path | None, **flags: Any) -> None:
    """Run a server: API, scheduler and worker gateway.

    Any number of servers may share one PostgreSQL; all are active, and any may fail. At SIGTERM, the server finishes
    running requests and stops; a second SIGTERM aborts.
    """
    from horae.cli.installation.serving import read_settings
    from horae.cli.process import run

    run(_serve(read_settings(flags, config), only or ROLES))


async def _serve(settings: Any, roles: tuple[str, ...]) -> None:
    from horae.cli.first_key import ensure_key
    from horae.cli.installation.serving import listen, open_node, warn_without_tls
    from horae.cli.process import signals, unless_aborted
    from horae.config.show import masked
    from horae.env import system_env

    node = await open_node(system_env(), settings, "horae server")
    stop = node.stop
    with signals(node.env.clock) as taken:
        try:
            key = await ensure_key(node.tenancy.keys, settings)
            serving = await listen(node, settings, roles, "horae server")
            stop = serving.stop
            warn_without_tls(serving)
            also = f", for other machines at {serving.remote}" if serving.remote else ""
            echo(f"Horae serves {', '.join(roles)} at {serving.url}{also}")
            echo(f"store  {masked(settings.store_url)}\nkey    {key}")
            await taken.drain.wait()
        finally:
            await unless_aborted(stop(), taken)
