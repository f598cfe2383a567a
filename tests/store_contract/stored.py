"""Stores of every revision with rows in all tables, saved as text in `stores/`.

`python -m tests.store_contract.stored` writes the file of the newest revision: once, with the change that adds it.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Env, VirtualClock, virtual_env
from horae.store.copying import transfer
from horae.store.driver import Driver
from horae.store.migrations.revisions import HEAD, fresh
from horae.store.open import open_store_driver
from horae.store.schema.all_tables import metadata
from horae.store.script import ColumnType, Fetch, Insert, Rows, Script, Statement

STORES = Path(__file__).parent / "stores"


class Stored(Struct, frozen=True):
    """The rows of a table at a revision: bytes and ids are hexadecimal."""

    table: str
    columns: tuple[tuple[str, ColumnType], ...]
    rows: list[list[Any]]
    lived: bool = True  # false: no life leaves rows there, so these are invented

    def read(self) -> list[tuple[Any, ...]]:
        """Return the rows as a driver takes and returns them."""
        return [tuple(_read(value, kind) for value, (_, kind) in zip(r, self.columns, strict=True)) for r in self.rows]


def _read(value: Any, kind: ColumnType) -> Any:
    if value is None or kind not in ("uuid", "bytea"):
        return value
    return UUID(value) if kind == "uuid" else bytes.fromhex(value)


def _written(value: Any) -> Any:
    return value.hex if isinstance(value, UUID) else value.hex() if isinstance(value, bytes) else value


def path(revision: str) -> Path:
    return STORES / f"{revision}.jsonl"


def stored(revision: str) -> list[Stored]:
    """Return the tables of a store of this revision."""
    return [msgspec.json.decode(line, type=Stored) for line in path(revision).read_text().splitlines()]


def selected(table: str, columns: Sequence[tuple[str, ColumnType]]) -> Script[Rows]:
    """Return all rows of a table, in some order."""
    names = ", ".join(f'"{name}"' for name, _ in columns)
    return (yield Fetch(Statement("stored", f"SELECT {names} FROM {table}")))


async def fill(driver: Driver, revision: str) -> None:
    """Turn an empty database into the saved store of a revision."""

    def script() -> Script[None]:
        for text in fresh(driver.dialect, revision):
            yield Fetch(Statement("make", text, sqlite=text))
        for one in stored(revision):
            yield Insert(one.table, one.columns, one.read())

    await driver.rewrite(script)


async def write() -> None:
    """Run everything that a server does, and save the resulting store."""
    from tests.store_contract.life import live_through
    from tests.store_contract.test_driver_transfer import samples
    from tests.store_contract.world import World

    env: Env = virtual_env(clock=VirtualClock())
    driver = await open_store_driver("sqlite://", env)
    await driver.migrate()
    await live_through(World(driver, env))
    lines = []
    for table in metadata.sorted_tables:
        name, columns = str(table.name), tuple((str(name), kind) for name, kind in transfer.kinds(table))
        lived = await driver.read(lambda: selected(name, columns))  # noqa: B023
        written = sorted([[_written(value) for value in row] for row in lived or samples(table, env)], key=repr)
        lines.append(msgspec.json.encode(Stored(name, columns, written, bool(lived))).decode())
    path(HEAD).parent.mkdir(exist_ok=True)
    path(HEAD).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    asyncio.run(write())
