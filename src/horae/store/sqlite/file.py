"""A store in a file: one writer, which commits many scripts together, and readers that never wait for the writer."""

import asyncio
import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import TypeVar

from horae import private
from horae.env import Env
from horae.errors import StoreUnavailable
from horae.store import seed
from horae.store.script import ScriptFactory
from horae.store.sqlite import migrate
from horae.store.sqlite.base import OwnDriver
from horae.store.sqlite.checkpoint import Checkpoints
from horae.store.sqlite.connection import Connection, connect
from horae.store.sqlite.copy import copy_to
from horae.store.sqlite.faults import reraise
from horae.store.sqlite.library import sqlite3
from horae.store.sqlite.owner import Ownership
from horae.store.sqlite.readers import Readers
from horae.store.sqlite.writer import Writer, breathing

T = TypeVar("T")
ROOM = 1024 * 1024  # a store with less free space than this (in bytes) counts as full


class FileDriver(OwnDriver):
    """Runs scripts on a file that this process owns."""

    def __init__(self, path: Path, env: Env, ownership: Ownership, writer: Connection) -> None:
        super().__init__(env)
        self.path: Path = path
        self.statements = writer.statements
        self._ownership = ownership
        self._connection = writer
        self._checkpoints = Checkpoints(path)
        self._writer = Writer(writer, self._checkpoints, env.clock)
        self._readers = Readers(path, env, self.statements)
        self._closed = False

    @classmethod
    async def open(cls, path: Path, env: Env, owner: str = "") -> "FileDriver":
        """Take ownership of a file. A new file can only be accessed by this process's user. Raises StoreInUse.

        `owner` names this process for other processes that try to open the file.
        """
        try:
            private.make_folder(path.parent)
            ownership = Ownership(path, owner)
        except OSError as error:
            raise StoreUnavailable(
                f"{path} cannot be opened ({error}).", "Check the folder and its permissions."
            ) from error
        try:
            os.close(private.open_file(path, os.O_RDWR))
            return cls(path, env, ownership, Connection(open_durable(path), Counter()))
        except BaseException as error:
            ownership.release()
            reraise(error)

    async def write(self, make: ScriptFactory[T], *, hot: bool = True) -> T:
        self._check()
        return await self._writer.write(make, self.before, hot)

    async def write_between(self, make: ScriptFactory[T]) -> T:
        self._check()
        return await self._writer.write(make, self.before or breathing(self._env.clock), True)

    async def read(self, make: ScriptFactory[T], *, snapshot: bool = False, hot: bool = False) -> T:
        self._check()
        return await self._readers.read(make, self.before)

    def _check(self) -> None:
        self._ownership.check()
        if self._closed:
            raise StoreUnavailable("The store is closed.")

    async def migrate(self) -> None:
        if await self.read(seed.needs_migration):
            await asyncio.to_thread(migrate.upgrade_file, self.path)
            await self.write(seed.first_rows(self._env))

    async def copy_file(self, path: Path) -> None:
        """Copy the state of the store at one instant, while it is in use."""
        await asyncio.to_thread(self._readers.apart, lambda raw: copy_to(raw, path))

    def tell_owner(self, owner: str) -> None:
        """Write the owner's name into the lock file, where other processes read it."""
        self._ownership.set_description(owner)

    async def ping(self) -> None:
        await self.read(seed.ping)

    async def check_room(self) -> None:
        await asyncio.to_thread(_take_room, self.path)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await self._writer.close()
        self._checkpoints.close()
        self._readers.close()
        self._connection.raw.close()
        self._ownership.release()


def _take_room(path: Path) -> None:
    """Check that there is room, by allocating ROOM bytes in a temporary file beside the store."""
    try:
        with tempfile.TemporaryFile(dir=path.parent) as file:
            os.posix_fallocate(file.fileno(), 0, ROOM)
    except OSError as error:
        remedy = "Make room on this disk; Horae then continues by itself."
        raise StoreUnavailable(f"There is no room to write beside {path} ({error.strerror}).", remedy) from error


def open_durable(path: Path) -> "sqlite3.Connection":
    """Open a connection whose commits are durable when they return, and check that SQLite accepted these settings."""
    raw = connect(path)
    raw.execute("PRAGMA journal_mode = WAL")
    raw.execute("PRAGMA synchronous = FULL")
    raw.execute("PRAGMA cache_size = -32768")
    raw.execute("PRAGMA wal_autocheckpoint = 0")  # see checkpoint.py
    raw.execute("PRAGMA journal_size_limit = 67108864")
    mode, level = raw.execute("PRAGMA journal_mode").fetchone()[0], raw.execute("PRAGMA synchronous").fetchone()[0]
    if (mode, level) != ("wal", 2):
        raw.close()
        raise StoreUnavailable(
            f"{path} is on a disk where commits are not durable (journal {mode}, synchronous {level}).",
            "Use a local disk.",
        )
    return raw
