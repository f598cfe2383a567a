"""Backup and restore. The backup of a SQLite store is a SQLite file; that of PostgreSQL is a file of frames.

A file of frames (portable file) is compressed by gzip. It has a header, the rows of all tables in pages, and a footer
with checksums.
"""

import gzip
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Struct
from sqlalchemy import Table

from horae import private
from horae.env import Env, Instant
from horae.errors import BadInput, HoraeError, StoreInUse
from horae.store import epochs
from horae.store.copying import transfer
from horae.store.driver import Driver
from horae.store.migrations.revisions import HEAD, needs_upgrade
from horae.store.open import open_store_driver
from horae.store.schema import all_tables as schema
from horae.store.script import Insert, Rows, Script

SQLITE_MAGIC = b"SQLite format 3\x00"
GZIP_MAGIC = b"\x1f\x8b"
REPLACE = "Name a new file or an empty database, or have it replaced: --replace."


class Header(Struct, kw_only=True, tag="horae-backup"):
    """The first frame of a portable file."""

    version: int = 1
    schema: str = HEAD
    made_at: Instant


class TablePage(Struct, tag="page"):
    """Some rows of one table; UUIDs are written as 16 bytes."""

    table: str
    columns: list[str]
    rows: list[list[Any]]


class Footer(Struct, tag="end"):
    """The last frame: the number of rows and the checksum of each table, against which a restore checks its rows."""

    sums: dict[str, transfer.TableSum]


Frame = Header | TablePage | Footer


async def backup(driver: Driver, path: Path, env: Env) -> None:
    """Write a copy of the store as it is at one instant; the file appears whole or not at all.

    It may replace an older backup, but no other file.
    """
    check_backup_path(path)
    part = path.with_name(path.name + ".part")
    try:
        if not driver.is_shared:
            await driver.copy_file(part)
        else:
            await _write(driver, part, env)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


async def restore(path: Path, url: str, env: Env, *, replace: bool = False) -> int:
    """Replace the contents of a store by a backup and begin a new epoch, which ends all sessions; return the epoch.

    A restore that breaks off leaves the store and its epoch unchanged. Raises Conflict for a store with jobs,
    executions or keys, unless `replace` is true, and for a store with running servers.
    """
    kind = _magic(path)
    replaced = await _replaced(url, env) if replace else None
    if kind == SQLITE_MAGIC:
        epoch = await _restore_file(path, url, env, replaced, replace)
    driver = await open_store_driver(url, env, "horae db restore")
    try:
        await driver.migrate()
        return epoch if kind == SQLITE_MAGIC else await _read(path, driver, env, replaced, replace)
    finally:
        await driver.close()


async def _replaced(url: str, env: Env) -> epochs.StoreIdentity | None:
    """Return the identity of the store that will be replaced; None if it does not exist or cannot be read."""
    if url.startswith("sqlite:///") and not Path(url.removeprefix("sqlite:///")).exists():
        return None
    try:
        driver = await open_store_driver(url, env, "horae db restore")
    except StoreInUse:
        raise
    except HoraeError:
        return None
    try:
        await driver.migrate()
        return await driver.read(epochs.identity)
    except HoraeError:
        return None
    finally:
        await driver.close()


def check_backup_path(path: Path) -> None:
    """Raise BadInput unless a backup may be written to this path: any file there must be an older backup."""
    if not path.parent.is_dir():
        raise BadInput(f"There is no folder {path.parent}.", "Create it, or name another file.", field="file")
    if path.with_name(path.name + ".lock").exists():
        raise BadInput(f"{path} is a store, not a backup.", "Name another file.", field="file")
    try:
        if path.exists():
            _magic(path)
    except BadInput:
        raise BadInput(f"{path} exists and is not a backup.", "Name another file.", field="file") from None


def _magic(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            start = file.read(len(SQLITE_MAGIC))
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}.", "Name a readable file.", field="file") from None
    for magic in (SQLITE_MAGIC, GZIP_MAGIC):
        if start.startswith(magic):
            return magic
    raise BadInput(f"{path} is not a backup of Horae.", "Name a file made by 'horae db backup'.", field="file")


async def _restore_file(path: Path, url: str, env: Env, replaced: epochs.StoreIdentity | None, replace: bool) -> int:
    if not url.startswith("sqlite:///"):
        raise BadInput(
            f"{path} is a backup of a SQLite store, and the target is not SQLite.",
            f"Move it: horae db migrate --from sqlite:///{path} --to {url}",
            field="file",
        )
    from horae.store.sqlite.copy import put_in_place

    if not replace:
        driver = await open_store_driver(url, env, "horae db restore")
        try:
            await driver.migrate()
            await transfer.refuse_occupied(driver, REPLACE)
        finally:
            await driver.close()
    return put_in_place(
        path, Path(url.removeprefix("sqlite:///")), lambda: epochs.renew(env.new_id, env.now(), replaced)
    )


async def _write(driver: Driver, path: Path, env: Env) -> None:
    path.unlink(missing_ok=True)
    with (
        os.fdopen(private.create_file(path), "wb") as raw,
        gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=1) as file,
    ):
        _frame(file, Header(made_at=env.now()))

        async def put(table: Table, rows: Rows) -> None:
            values = [[v.bytes if isinstance(v, UUID) else v for v in row] for row in rows]
            _frame(file, TablePage(str(table.name), [str(column.name) for column in table.columns], values))

        async with driver.snapshot() as read:
            sums = await transfer.each_table(read, put)
        _frame(file, Footer(sums))


async def _read(path: Path, driver: Driver, env: Env, replaced: epochs.StoreIdentity | None, replace: bool) -> int:
    await transfer.refuse_served(driver, env.now())
    if not replace:
        await transfer.refuse_occupied(driver, REPLACE)
    sums = _checked(path)

    def script() -> Script[int]:
        yield from transfer.clear()
        for frame in _frames(path):
            if isinstance(frame, TablePage):
                table = schema.metadata.tables[frame.table]
                yield Insert(table.name, transfer.kinds(table), [_row(table, row) for row in frame.rows])
        yield from transfer.settle_identities()
        transfer.refuse_differing(sums, (yield from transfer.sums_of()))
        return (yield from epochs.renew(env.new_id, env.now(), replaced))

    return await driver.rewrite(script)


def _checked(path: Path) -> transfer.Sums:
    """Read a portable file to its end, before the store is changed; return the sums of its tables.

    Raises BadInput for a damaged file, and for a file with an older schema.
    """
    found = {str(table.name): transfer.TableSum() for table in schema.metadata.sorted_tables}
    stated: transfer.Sums = {}
    try:
        for frame in _frames(path):
            if isinstance(frame, Header) and needs_upgrade(frame.schema):
                raise BadInput(
                    f"{path} is a backup of a store at the older revision {frame.schema}.",
                    "Restore it with the version of Horae that wrote it, then run `horae db upgrade` with this one.",
                )
            if isinstance(frame, TablePage):
                found[frame.table].add([tuple(row) for row in frame.rows])
            elif isinstance(frame, Footer):
                stated = frame.sums
    except (EOFError, OSError, zlib.error, msgspec.DecodeError, KeyError) as error:
        raise BadInput(f"The backup is damaged ({error}).", "Use another backup.", field="file") from error
    if stated != found:
        raise BadInput("The backup is damaged (its checksums differ).", "Use another backup.", field="file")
    return found


def _row(table: Table, row: list[Any]) -> tuple[Any, ...]:
    pairs = zip(row, transfer.kinds(table), strict=True)
    return tuple(UUID(bytes=value) if kind == "uuid" and value is not None else value for value, (_, kind) in pairs)


def _frame(file: gzip.GzipFile, frame: Frame) -> None:
    body = msgspec.msgpack.encode(frame)
    file.write(len(body).to_bytes(4, "big") + body)


def _frames(path: Path) -> Iterator[Frame]:
    decoder = msgspec.msgpack.Decoder(Frame)
    with gzip.open(path, "rb") as file:
        while size := file.read(4):
            yield decoder.decode(file.read(int.from_bytes(size, "big")))
