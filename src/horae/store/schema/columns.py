"""Column types for both databases, and short functions that define columns, indexes and tables."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    Uuid,
    text,
)
from sqlalchemy.types import TypeEngine, UserDefinedType

metadata = MetaData()


class SmallUuid(UserDefinedType[Any]):
    """A column of 16 bytes on SQLite. The declared type makes the SQLite driver return its values as UUIDs."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "UUID"


ID: TypeEngine[Any] = Uuid(native_uuid=True).with_variant(SmallUuid(), "sqlite")
INT, BIG, SMALL, TEXT, BYTES, BOOL, FLOAT = Integer, BigInteger, SmallInteger, Text, LargeBinary, Boolean, Double
# A text that both databases compare byte by byte, so that all texts with the same prefix are one range of an index.
BYTEWISE: TypeEngine[Any] = Text(collation="C").with_variant(Text(), "sqlite")

# PostgreSQL's autovacuum settings for shelves, where thousands of rows are inserted and deleted each second. Vacuums
# begin after a fixed number of dead rows instead of a fraction of the table.
BUSY = {
    "autovacuum_vacuum_scale_factor": 0,
    "autovacuum_vacuum_threshold": 5000,
    "autovacuum_vacuum_cost_delay": 0,
    "autovacuum_analyze_scale_factor": 0,
    "autovacuum_analyze_threshold": 50000,
}


def col(name: str, kind: Any, default: str | None = None) -> Column[Any]:
    """Define a column that is not NULL; `default` is an SQL expression."""
    return Column(name, kind, nullable=False, server_default=None if default is None else text(default))


def opt(name: str, kind: Any) -> Column[Any]:
    """Define a column that may be NULL."""
    return Column(name, kind, nullable=True)


def key(name: str, kind: Any) -> Column[Any]:
    """Define a column of the primary key."""
    return Column(name, kind, primary_key=True, nullable=False, autoincrement=False)


def counted(name: str) -> Column[Any]:
    """Define a primary key whose values the database generates by counting."""
    return Column(name, Integer, Identity(), primary_key=True)


def table(
    name: str, *items: Any, small: bool = False, by: str | None = None, storage: Mapping[str, float] | None = None
) -> Table:
    """Define a table.

    On SQLite, a table with `small` rows is stored in the tree of its primary key (WITHOUT ROWID), which saves an index.
    On PostgreSQL, the table is partitioned by ranges of the column `by`, and has the settings in `storage`.
    """
    return Table(
        name,
        metadata,
        *items,
        sqlite_with_rowid=not small,
        postgresql_partition_by=by and f"RANGE ({by})",
        postgresql_with=dict(storage or {}),
    )


def partial(name: str, *columns: str, where: str, unique: bool = False) -> Index:
    """Define an index of the rows that meet a condition."""
    return Index(name, *columns, unique=unique, postgresql_where=text(where), sqlite_where=text(where))
