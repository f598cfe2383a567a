"""Back up and restore a SQLite store."""

import os
import shutil
from collections import Counter
from pathlib import Path
from typing import TypeVar

from horae.errors import BadInput
from horae.private import create_file
from horae.store.driver import run
from horae.store.script import ScriptFactory
from horae.store.sqlite.connection import Connection, connect
from horae.store.sqlite.library import sqlite3
from horae.store.sqlite.owner import Ownership

T = TypeVar("T")


def copy_to(source: "sqlite3.Connection", path: Path) -> None:
    """Copy a live database by SQLite's backup function.

    The copy is one snapshot: writers do not wait for it, and their changes do not restart it.
    """
    path.unlink(missing_ok=True)
    os.close(create_file(path))
    target = connect(path)
    try:
        source.backup(target)
        target.execute("PRAGMA journal_mode = DELETE")
    finally:
        target.close()
    _sync(path)


def put_in_place(backup: Path, path: Path, prepare: ScriptFactory[T]) -> T:
    """Replace a store's file by a copy of a backup, and return the result of the script `prepare`.

    No process may have the store open. The copy must pass SQLite's integrity check, and `prepare` runs on it before it
    replaces the file.
    """
    part = path.with_name(path.name + ".restoring")
    ownership = Ownership(path, "horae db restore")
    try:
        part.unlink(missing_ok=True)
        os.close(create_file(part))
        shutil.copyfile(backup, part)
        _check(part)
        prepared = _written(part, prepare)
        _sync(part)
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        os.replace(part, path)
        return prepared
    finally:
        part.unlink(missing_ok=True)
        ownership.release()


def _written(path: Path, make: ScriptFactory[T]) -> T:
    """Run a script on a file that no other process has open."""
    raw = connect(path)
    try:
        raw.execute("BEGIN")
        result = run(make(), Connection(raw, Counter()).execute)
        raw.execute("COMMIT")
        return result
    finally:
        raw.close()


def _check(path: Path) -> None:
    raw = connect(path)
    try:
        found = raw.execute("PRAGMA integrity_check").fetchone()[0]
    except sqlite3.DatabaseError as error:
        found = str(error)
    finally:
        raw.close()
    if found != "ok":
        raise BadInput(f"The backup is damaged ({found}).", "Use another backup.", field="file")


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
