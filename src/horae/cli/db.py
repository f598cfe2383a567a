"""`horae db`: the store itself. These commands open it; stop the server of a SQLite store first."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from horae.cli.lazy import Group
from horae.cli.output import Output
from horae.cli.remote import World, config_option, output_option


@click.group(cls=Group, examples=("horae db version", "horae db backup horae.backup"))
def db() -> None:
    """Upgrade, move, back up and restore the store."""


def store_command(work: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
    """Give a coroutine function the store's URL, an environment and an output."""

    @wraps(work)
    def callback(
        *args: Any, store: str | None, data: str | None, config: Path | None, output: str, **more: Any
    ) -> None:
        from horae.config import load
        from horae.env import system_env

        world = click.get_current_context().find_object(World) or World()
        env = world.env or system_env()
        settings = load({"store": store, "data": data}, file=config).settings
        out = Output(output, env.now)  # type: ignore[arg-type]
        asyncio.run(work(settings.store_url, env, out, *args, **more))  # type: ignore[arg-type]

    return output_option(_store(_data(config_option(callback))))


_store = click.option("--store", metavar="URL", help="The store.  [env: HORAE_STORE; default: horae.db in --data]")
_data = click.option("--data", metavar="DIR", help="The folder for all state.  [env: HORAE_DATA; default: .]")


@db.command(examples=("horae db version", "horae db version --store postgresql://horae@db/horae"))
@store_command
async def version(url: str, env: Any, out: Output) -> None:
    """Show the store's version and the one this program knows."""
    from horae.store.migrations import HEAD

    found = await _version(url, env)
    if out.is_for_people:
        return out.say(f"The store is at {found or 'no version: it has no tables'}; this program knows {HEAD}.")
    return out.document({"store": found, "program": HEAD})


@db.command(examples=("horae db upgrade", "horae db upgrade --store postgresql://horae@db/horae"))
@store_command
async def upgrade(url: str, env: Any, out: Output) -> None:
    """Bring the store to this program's version; servers do the same at their start."""
    from horae.store.checkup import schema_version
    from horae.store.open import open_store_driver

    driver = await open_store_driver(url, env, "(horae db upgrade)")
    try:
        before = await schema_version(driver)
        await driver.migrate()
        after = await schema_version(driver)
    finally:
        await driver.close()
    if not out.is_for_people:
        return out.document({"before": before, "after": after})
    if before == after:
        return out.say(f"The store is at {after} already.")
    return out.say(f"Upgraded the store from {before or 'nothing'} to {after}.")


async def _version(url: str, env: Any) -> str | None:
    from horae.cli.checks import sqlite_path
    from horae.errors import NotFound
    from horae.store.checkup import schema_version
    from horae.store.open import open_store_driver

    path = sqlite_path(url)
    if path is not None and not path.exists():
        raise NotFound(f"There is no store at {path}.", "Name another with --store or --data; `horae up` makes one.")
    driver = await open_store_driver(url, env, "(horae db)")
    try:
        return await schema_version(driver)
    finally:
        await driver.close()
