"""Migrations of SQLite stores, in files and in memory."""

from functools import cache
from pathlib import Path

from horae.store.migrations.revisions import fresh, upgrade
from horae.store.sqlite.connection import connect
from horae.store.sqlite.library import sqlite3


def upgrade_file(path: Path) -> None:
    """Migrate a file's tables to HEAD in one transaction, on a connection of its own."""
    raw = connect(path)
    try:
        _upgrade(raw)
    finally:
        raw.close()


def copy_fresh(target: "sqlite3.Connection") -> None:
    """Create all tables in an empty database in memory.

    They are copied from a database that this process has created once, because simulations do this thousands of times.
    """
    _fresh().backup(target)


@cache
def _fresh() -> "sqlite3.Connection":
    raw = connect(None)
    _upgrade(raw)
    return raw


def _upgrade(raw: "sqlite3.Connection") -> None:
    raw.execute("BEGIN IMMEDIATE")
    try:
        if raw.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            _migrate(raw)
        else:
            for statement in fresh("sqlite"):
                raw.execute(statement)
        if raw.in_transaction:  # false if Alembic has committed
            raw.execute("COMMIT")
    except BaseException:
        raw.rollback()
        raise


def _migrate(raw: "sqlite3.Connection") -> None:
    """Run Alembic inside the transaction that `_upgrade` began."""
    from sqlalchemy import create_engine
    from sqlalchemy.pool import StaticPool

    engine = create_engine("sqlite://", module=sqlite3, creator=lambda: raw, poolclass=StaticPool)
    with engine.connect() as connection:
        upgrade(connection)
        connection.commit()
