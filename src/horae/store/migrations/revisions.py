"""The revision of a store, and its upgrade to the newest."""

from pathlib import Path
from typing import TYPE_CHECKING

from horae.errors import StoreTooNew

if TYPE_CHECKING:
    from sqlalchemy import Connection

REVISIONS = ("0001_first",)  # the files in versions/, in their order; known without importing Alembic
HEAD = REVISIONS[-1][:4]


def needs_upgrade(current: str | None) -> bool:
    """Return whether a store at this revision must be migrated; revisions are numbered, so a greater one is newer."""
    if current is not None and current > HEAD:
        raise StoreTooNew(
            f"The store is at version {current}, this Horae knows versions up to {HEAD}.",
            "Install the newer Horae that migrated it (pip install -U horae), or restore a backup made before.",
        )
    return current != HEAD


def fresh(dialect: str, revision: str = HEAD) -> list[str]:
    """Return the statements that turn an empty database into a store, so that a first start does not import Alembic
    (half a second).

    The result is the same as an upgrade by Alembic from nothing (a test compares them).
    """
    version = "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"
    made = [text for name in REVISIONS if name[:4] <= revision for text in statements(name, dialect)]
    return [version, *made, f"INSERT INTO alembic_version VALUES ('{revision}')"]


def statements(revision: str, dialect: str) -> list[str]:
    """Return the statements in a revision's file for a dialect."""
    text = (Path(__file__).parent / "versions" / f"{revision}.{dialect}.sql").read_text()
    return [statement for statement in text.split(";\n") if statement.strip()]


def upgrade(connection: "Connection") -> None:
    """Upgrade a store to HEAD in one transaction. The caller holds the lock that excludes other servers."""
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory(str(Path(__file__).parent))
    context = EnvironmentContext(
        Config(), scripts, fn=lambda revision, _: scripts._upgrade_revs("head", revision), destination_rev="head"
    )
    with context:
        context.configure(connection=connection, transactional_ddl=True)
        with context.begin_transaction():
            context.run_migrations()
