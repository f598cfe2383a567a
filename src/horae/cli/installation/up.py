"""`horae up`: everything in one process."""

import shutil
import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from horae.cli.definitions.worker_options import worker_options
from horae.cli.lazy import HoraeCommand
from horae.cli.remote import config_option
from horae.cli.terminal import echo

if TYPE_CHECKING:
    from horae.config.settings import Settings
    from horae.engine.server_node import ServerNode
    from horae.server.run import Serving


@click.command(
    cls=HoraeCommand,
    examples=(
        "horae up",
        "horae up --demo",
        "horae up --port 9000 --data state --app jobs:app",
        "horae up --queue critical=5 --queue default=1 --label gpu=a100 --slots 4",
    ),
)
@click.option("--port", metavar="PORT", help="The port to listen on.  [env: HORAE_PORT; default: 8420]")
@click.option("--host", metavar="HOST", help="The address to listen on.  [env: HORAE_HOST; default: 127.0.0.1]")
@click.option("--data", metavar="DIR", help="The folder for all state.  [env: HORAE_DATA; default: .]")
@click.option("--store", metavar="URL", help="Another store.  [env: HORAE_STORE; default: horae.db in --data]")
@click.option(
    "--app",
    metavar="MODULE:APP",
    help="The app with your Python jobs, which are registered at the start.  [env: HORAE_APP]",
)
@worker_options
@click.option("--demo", is_flag=True, help="Register a few small example jobs.")
@config_option
def up(demo: bool, config: Path | None, **flags: Any) -> None:
    """Run everything in one process: API, scheduler and a worker.

    State is one SQLite file in the data folder; queues, slots, labels and resources belong to the worker. At Ctrl-C or
    SIGTERM, the worker drains and the process ends; a second signal aborts.
    """
    from horae.cli.installation.serving import read_settings
    from horae.cli.process import run

    run(_up(read_settings(flags, config), demo))


async def _up(settings: "Settings", demo: bool) -> None:
    from horae.cli.embedded import apply_jobs, embedded_worker, registry_of, with_demo
    from horae.cli.first_key import ensure_key
    from horae.cli.fleet.worker import unserved_warning
    from horae.cli.installation.serving import listen, open_node, warn_without_tls
    from horae.cli.process import run_until_stopped, signals, unless_aborted
    from horae.engine.parts.part import ROLES
    from horae.env import system_env

    registry = registry_of(settings.app, demo)
    if demo:
        settings = with_demo(settings)
    node = await open_node(system_env(), settings, "horae up")
    stop = node.stop
    with signals(node.env.clock) as taken:
        try:
            key = await ensure_key(node.tenancy.keys, settings)
            worker = await embedded_worker(node, settings, registry)
            serving = await listen(node, settings, ROLES, "horae up")
            stop = serving.stop
            warn_without_tls(serving)
            await apply_jobs(node, registry)
            await greet(node, serving, settings, key, demo)
            if said := unserved_warning(settings, registry):
                echo(said, err=True)
            await run_until_stopped(worker, taken)
            if not taken.drain.is_set():
                echo("The worker was drained and has ended. The server continues; Ctrl-C stops it.", err=True)
                await taken.drain.wait()
        finally:
            await unless_aborted(stop(), taken)


async def greet(node: "ServerNode", serving: "Serving", settings: "Settings", key: str, demo: bool) -> None:
    """Print the addresses, the key, and commands to try next."""
    from horae.config.show import masked
    from horae.version import __version__

    code = await node.tenancy.keys.new_sign_in_code()
    lines = [
        f"Horae {__version__} is up at {serving.url}",
        "",
        f"  sign in  {code.link(serving.url)}",
        "           (once, within ten minutes; `horae sign-in` prints another)",
    ]
    if serving.remote:
        lines.append(f"  remote   {serving.remote}")
    lines += [f"  store    {masked(settings.store_url)}", f"  key      {key}"]
    if settings.master_key_path.exists() and not settings.master_key:
        lines.append(
            f"  secrets  sealed with {settings.master_key_path}: back it up, and keep it out of version control"
        )
    here = " in this folder" if settings.data == Path() else ""
    lines += ["", f"Three things to try next, in another terminal{here}:"]
    lines += [f"  {line}" for line in (*activation(), *_exports(serving, settings), *(_DEMO if demo else _FIRST))]
    # One write, so that no log line of another thread comes between.
    echo("\n".join([*lines, "", "Ctrl-C stops it."]))


_FIRST = (
    "horae jobs create hello --command 'echo hello' --every 1m",
    "horae jobs trigger hello --follow",
    "horae executions list",
)
_DEMO = (
    "horae jobs list",
    "horae jobs trigger demo-primes --param up_to=100000 --follow",
    "horae dlq list",
)


def activation() -> list[str]:
    """Return the command that activates the virtual environment, if `horae` is not on the path."""
    activate = Path(sys.prefix) / "bin" / "activate"
    return [] if shutil.which("horae") or not activate.exists() else [f". {quote(str(activate))}"]


def _exports(serving: "Serving", settings: "Settings") -> list[str]:
    """Return the environment variables that other commands need, unless the defaults apply."""
    from horae.config.settings import DEFAULT_URL

    variables = {}
    if serving.url != DEFAULT_URL:
        variables["HORAE_URL"] = serving.url
    if settings.data != Path() and not settings.admin_key:
        variables["HORAE_DATA"] = str(settings.data.resolve())
    return [f"export {' '.join(f'{name}={quote(value)}' for name, value in variables.items())}"] if variables else []
