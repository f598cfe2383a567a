"""`horae db`: the store.

These commands open the store, or ask the server that owns a SQLite file in use.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from horae.cli.lazy import HoraeGroup
from horae.cli.output import Printer
from horae.cli.prompts import confirm
from horae.cli.remote import CliOverrides, config_option, output_option

if TYPE_CHECKING:
    from horae.client.client import Client
    from horae.config.settings import Settings
    from horae.errors import StoreInUse
    from horae.store.checkup import Facts


@click.group(cls=HoraeGroup, examples=("horae db version", "horae db backup horae.backup"))
def db() -> None:
    """Upgrade, move, back up and restore the store."""


def store_command(work: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
    """Turn a coroutine function that takes the settings, the environment and the output into a click callback."""

    @wraps(work)
    def callback(
        *args: Any, store: str | None, data: str | None, config: Path | None, output: str, **more: Any
    ) -> None:
        from horae.config.load import load
        from horae.env import system_env

        world = click.get_current_context().find_object(CliOverrides) or CliOverrides()
        env = world.env or system_env()
        settings = load({"store": store, "data": data}, file=config).settings
        out = Printer(output, env.now)  # type: ignore[arg-type]
        asyncio.run(work(settings, env, out, *args, **more))  # type: ignore[arg-type]

    return output_option(_store(_data(config_option(callback))))


_store = click.option("--store", metavar="URL", help="The store.  [env: HORAE_STORE; default: horae.db in --data]")
_data = click.option("--data", metavar="DIR", help="The folder for all state.  [env: HORAE_DATA; default: .]")


@db.command(examples=("horae db version", "horae db version --store postgresql://horae@db/horae"))
@store_command
async def version(settings: "Settings", env: Any, out: Printer) -> None:
    """Show the kind of store, its revision and the newest revision that this program knows.

    If a SQLite store is in use, the command asks its server, with the key in HORAE_KEY or in the store's folder.
    """
    from horae.cli.installation.store_checks import product_of
    from horae.store.migrations.revisions import HEAD

    facts = await _facts(settings, env)
    if out.is_for_people:
        at = f"revision {facts.version}" if facts.version else "no revision: it has no tables"
        out.say(f"The store is {product_of(facts)} at {at}; this program's newest revision is {HEAD}.")
        return out.say(", ".join(f"{name} {value}" for name, value in facts.settings.items()))
    facts_shown = {"kind": facts.dialect, "version": facts.product, "settings": facts.settings}
    return out.document({"store": facts.version, "program": HEAD, **facts_shown})


@db.command(examples=("horae db upgrade", "horae db upgrade --store postgresql://horae@db/horae"))
@store_command
async def upgrade(settings: "Settings", env: Any, out: Printer) -> None:
    """Upgrade the store to this program's version; servers do the same at their start."""
    from horae.store.checkup import schema_version
    from horae.store.open import open_store_driver

    driver = await open_store_driver(settings.direct_url, env, "(horae db upgrade)")
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


@db.command(
    "pause-job",
    examples=(
        "horae db pause-job nightly",
        "horae db pause-job nightly --namespace team-a --store postgresql://db/horae",
    ),
)
@click.argument("name")
@click.option("--namespace", default="default", show_default=True, metavar="NAME", help="The namespace of the job.")
@click.option("--reason", default="paused in the store", show_default=True, help="The reason, shown with the job.")
@store_command
async def pause_job(settings: "Settings", env: Any, out: Printer, name: str, namespace: str, reason: str) -> None:
    """Pause a job in a store while no server runs.

    Once a server runs, `horae jobs resume` resumes the job. While a server runs, use `horae jobs pause`.
    """
    from horae.store.offline import pause_job as pause
    from horae.store.open import open_store_driver

    _refuse_absent(settings.store_url)
    driver = await open_store_driver(settings.direct_url, env, "(horae db pause-job)")
    try:
        paused = await pause(driver, namespace, name, reason, env.now())
    finally:
        await driver.close()
    if not out.is_for_people:
        return out.document({"job": name, "namespace": namespace, "paused": paused})
    return out.say(f'The job "{name}" is paused.' if paused else f'The job "{name}" was not active.')


async def _facts(settings: "Settings", env: Any) -> "Facts":
    """Return the facts about the store, from the store or from the server that owns it."""
    from horae.cli.installation.store_checks import reported_facts
    from horae.errors import StoreInUse
    from horae.store.checkup import examine
    from horae.store.contract import Store
    from horae.store.open import open_store_driver

    _refuse_absent(settings.store_url)
    try:
        driver = await open_store_driver(settings.direct_url, env, "(horae db)")
    except StoreInUse as owned:
        async with _owner(owned, settings, env) as client:
            return reported_facts((await client.store()).raw)
    try:
        return await examine(Store(driver, env))
    finally:
        await driver.close()


def _owner(owned: "StoreInUse", settings: "Settings", env: Any) -> "Client":
    """Return a client of the server that owns a SQLite store.

    Raises `owned` again when the server's URL is unknown.
    """
    from horae.cli.installation.store_checks import sqlite_path
    from horae.client.client import Client
    from horae.client.local import find_key, read_key

    url = str(owned.fields.get("url") or "")
    path = sqlite_path(settings.store_url)
    if not url or path is None:
        raise owned
    return Client(url, find_key([url], settings) or read_key(path.with_name("admin.key")), env=env)


@db.command(
    examples=("horae db migrate --from sqlite:///horae.db --to postgresql://horae@db/horae",),
)
@click.option("--from", "source", metavar="URL", required=True, help="The store to read; stop its servers first.")
@click.option("--to", "target", metavar="URL", help="The store to fill; it must be empty.  [env: HORAE_STORE]")
@output_option
def migrate(source: str, target: str | None, output: str) -> None:
    """Copy everything into another store, verified by counts and checksums."""
    from horae.config.load import load
    from horae.config.show import masked
    from horae.env import system_env
    from horae.store.copying.transfer import migrate as copy

    _refuse_absent(source)
    target = target or load({}).settings.store
    if not target:
        raise click.UsageError("Name the store to fill with --to or HORAE_STORE.")
    env = system_env()
    sums = asyncio.run(copy(source, target, env))
    out = Printer(output, env.now)  # type: ignore[arg-type]
    tables = {name: total.rows for name, total in sums.items() if total.rows}
    if not out.is_for_people:
        items = [{"table": n, "rows": s.rows, "checksum": f"{s.checksum:016x}"} for n, s in sums.items()]
        return out.document({"from": masked(source), "to": masked(target), "items": items})
    out.table(tables.items(), [("TABLE", lambda row: row[0]), ("ROWS", lambda row: row[1])])
    return out.say(f"Copied {sum(tables.values()):,} rows; both stores have the same content.")


@db.command(
    examples=("horae db backup horae.backup", "horae db backup horae.backup --store postgresql://horae@db/horae")
)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@store_command
async def backup(settings: "Settings", env: Any, out: Printer, file: Path) -> None:
    """Write a copy of the store, as it is at one instant, into a file.

    The store may be in use. If a SQLite store is in use, its server sends the copy; for that, the command needs a key
    in HORAE_KEY or in the store's folder.
    """
    from horae.errors import StoreInUse
    from horae.store.open import open_store_driver

    _refuse_absent(settings.store_url)
    try:
        driver = await open_store_driver(settings.direct_url, env, "(horae db backup)")
    except StoreInUse as owned:
        await _ask_owner(_owner(owned, settings, env), file)
    else:
        await _copy(driver, env, file)
    size = file.stat().st_size
    if not out.is_for_people:
        return out.document({"file": str(file), "bytes": size})
    return out.say(f"Wrote {file}, {size:,} bytes. Restore it with: horae db restore {file}")


async def _copy(driver: Any, env: Any, file: Path) -> None:
    from horae.store.copying.backup import backup as write

    try:
        await write(driver, file, env)
    finally:
        await driver.close()


async def _ask_owner(owner: "Client", file: Path) -> None:
    """Receive the copy from the server that owns a SQLite store; the file appears complete or not at all."""
    from horae.private import create_file
    from horae.store.copying.backup import check_backup_path

    check_backup_path(file)
    part = file.with_name(file.name + ".part")
    part.unlink(missing_ok=True)
    try:
        with os.fdopen(create_file(part), "wb") as target:
            async with owner as client:
                async for piece in client.backup():
                    target.write(piece)
            target.flush()
            os.fsync(target.fileno())
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


@db.command(examples=("horae db restore horae.backup", "horae db restore horae.backup --replace --yes"))
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--replace", is_flag=True, help="Replace a store that is not empty.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@store_command
async def restore(settings: "Settings", env: Any, out: Printer, file: Path, replace: bool, yes: bool) -> None:
    """Replace the store by a backup and begin a new epoch; stop all servers first.

    Every worker's session ends, and all earlier tokens become invalid.
    """
    from horae.config.show import masked
    from horae.errors import NotFound
    from horae.store.copying.backup import restore as put_back

    url = settings.direct_url
    if not file.is_file():
        raise NotFound(f"There is no file {file}.", "Name a file that `horae db backup` wrote.")
    if replace and not yes:
        confirm(f"Replace everything in {masked(url)} by {file}?")
    epoch = await put_back(file, url, env, replace=replace)
    if not out.is_for_people:
        return out.document({"store": masked(url), "file": str(file), "epoch": epoch})
    return out.say(f"Restored {masked(url)} from {file}; the store begins epoch {epoch}.")


@db.command(
    "new-epoch", examples=("horae db new-epoch", "horae db new-epoch --store postgresql://horae@db/horae --yes")
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@store_command
async def new_epoch(settings: "Settings", env: Any, out: Printer, yes: bool) -> None:
    """Begin a new epoch in a store that went back in time, or was copied, without Horae's knowledge.

    Horae notices failovers, restored dumps, and its own restores. It cannot notice that a SQLite file or PostgreSQL's
    files were copied or put back. Run this command in that case, before a server starts on these files. Every worker's
    session ends, its executions keep all their retries, and all earlier tokens become invalid.
    """
    from horae.config.show import masked
    from horae.store import epochs
    from horae.store.open import open_store_driver

    url = settings.direct_url
    _refuse_absent(url)
    if not yes:
        confirm(f"End the sessions of all workers of {masked(url)}?")
    driver = await open_store_driver(url, env, "(horae db new-epoch)")
    try:
        await driver.migrate()
        epoch = await driver.rewrite(lambda: epochs.renew(env.new_id, env.now()))
    finally:
        await driver.close()
    if not out.is_for_people:
        return out.document({"store": masked(url), "epoch": epoch})
    return out.say(f"The store {masked(url)} begins epoch {epoch}.")


def _refuse_absent(url: str) -> None:
    """Raise NotFound for a SQLite store that does not exist: opening it would create it."""
    from horae.cli.installation.store_checks import sqlite_path
    from horae.errors import NotFound

    path = sqlite_path(url)
    if path is not None and not path.exists():
        raise NotFound(f"There is no store at {path}.", "Name another with --store or --data; `horae up` creates one.")
