"""`horae doctor`: checks of an installation, with remedies."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from horae.cli.lazy import HoraeCommand
from horae.cli.remote import CliOverrides, output_option, server_options
from horae.cli.terminal import echo

if TYPE_CHECKING:
    from horae.config.settings import Settings
    from horae.env import Env


@click.command(
    cls=HoraeCommand, examples=("horae doctor", "horae doctor --offline --store postgresql://horae@db/horae")
)
@click.option("--offline", is_flag=True, help="Open the store directly instead of asking its server.")
@click.option("--accept-clock", is_flag=True, help="Accept the present time after a clock jump: schedules continue.")
@click.option("--store", metavar="URL", help="The store to open with --offline.  [env: HORAE_STORE]")
@click.option("--data", metavar="DIR", help="The folder for all state.  [env: HORAE_DATA; default: .]")
@server_options
@output_option
def doctor(
    offline: bool,
    accept_clock: bool,
    store: str | None,
    data: str | None,
    output: str,
    server: str | None,
    api_key: str | None,
    namespace: str | None,
    config: Path | None,
) -> None:
    """Check the installation and show remedies.

    It asks the server about itself, its store (kind, version, settings, migrations, disk) and its workers, and checks
    this machine: settings, clock, disk, libraries. Use --offline when no server runs: it opens the store directly. If a
    check fails, the exit code is 1.
    """
    from horae.cli.checks import local_checks, server_checks
    from horae.cli.installation.store_checks import store_checks
    from horae.cli.output import Printer
    from horae.config.load import load
    from horae.env import system_env

    world = click.get_current_context().find_object(CliOverrides) or CliOverrides()
    env = world.env or system_env()
    given = {"url": server, "key": api_key, "namespace": namespace, "store": store, "data": data}
    settings = load(given, file=config).settings
    if accept_clock:
        asyncio.run(_accept_clock(settings, env, world))
    found = local_checks(settings)
    found += asyncio.run(store_checks(settings, env) if offline else server_checks(settings, env, world))
    out = Printer(output, env.now)  # type: ignore[arg-type]
    failed, doubtful = (sum(check.state == state for check in found) for state in ("fail", "warn"))
    if out.is_for_people:
        out.table([check.row for check in found], [("STATE", "state"), ("CHECK", "name"), ("", "detail")])
        for check in found:
            if check.remedy:
                echo(f"\n{check.name}: {check.remedy}")
        echo(f"\n{_summary(failed, doubtful)}")
    else:
        out.document({"items": [check.row for check in found]})
    if failed:
        click.get_current_context().exit(1)


def _summary(failed: int, doubtful: int) -> str:
    counts = ((failed, "check failed", "checks failed"), (doubtful, "warning", "warnings"))
    parts = [f"{count} {one if count == 1 else many}" for count, one, many in counts if count]
    return f"{', '.join(parts)}." if parts else "Nothing is wrong."


async def _accept_clock(settings: "Settings", env: "Env", world: CliOverrides) -> None:
    from horae.cli.remote import connect

    client = connect(world, env, settings)
    try:
        await client.clock.accept()
    finally:
        await client.close()
