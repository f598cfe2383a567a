"""The tables of schema/ as SQL, and as a database describes them: all revisions together must produce schema/."""

from typing import Any

from sqlalchemy.schema import CreateIndex, CreateTable

from horae.store.driver import Driver
from horae.store.schema.all_tables import metadata
from horae.store.script import Fetch, Rows, Script, Statement
from horae.store.tables import PARTITIONED

# Parts for one database only: default partitions, and the view that expands slices in each dialect.
_PARTS = "namespace, queue, job, attempt, failures, losses"
_SHELVES = f"""
    SELECT parcel, lo, hi, {_PARTS},
           CASE WHEN reason IN ('children', 'sleep', 'signal') THEN 'running' ELSE 'waiting' END AS state,
           reason, wake_at, CAST(NULL AS BIGINT) AS queued_at,
           CAST(NULL AS BIGINT) AS started_at, CAST(NULL AS BIGINT) AS completed_at
    FROM waiting
    UNION ALL SELECT parcel, lo, hi, {_PARTS}, 'queued', '', NULL, queued_at, NULL, NULL FROM queued
    UNION ALL SELECT parcel, lo, hi, {_PARTS}, 'running', '', NULL, queued_at, started_at, NULL FROM running
    UNION ALL SELECT parcel, lo, hi, {_PARTS}, state, reason, NULL, queued_at, started_at, completed_at FROM history"""
_OF_ITEMS = f"{_PARTS}, state, reason, wake_at, queued_at, started_at, completed_at"

POSTGRES_VIEW = f"""
CREATE VIEW executions AS
SELECT left(parcel::text, 32) || lpad(to_hex(item), 4, '0') AS id, parcel, item, {_OF_ITEMS}
FROM ({_SHELVES}) AS slices CROSS JOIN LATERAL generate_series(lo, hi - 1) AS item"""

# SQLite has no lateral series: slices are joined with a list of all possible item indexes.
SQLITE_VIEW = f"""
CREATE VIEW executions AS
WITH RECURSIVE indexes(item) AS (SELECT 0 UNION ALL SELECT item + 1 FROM indexes WHERE item < 1023),
slices AS ({_SHELVES})
SELECT lower(substr(hex(parcel), 1, 8) || '-' || substr(hex(parcel), 9, 4) || '-' || substr(hex(parcel), 13, 4) || '-'
       || substr(hex(parcel), 17, 4) || '-' || substr(hex(parcel), 21, 8)) || printf('%04x', item) AS id,
       parcel, item, {_OF_ITEMS}
FROM slices JOIN indexes ON item >= lo AND item < hi"""
# Rows are inserted in the order of the ends, so a range of times is a range of pages, or of rowids on SQLite.
POSTGRES_ENDED = "CREATE INDEX history_ended ON history USING brin (completed_at) WITH (autosummarize = on)"

_COLUMNS = Statement(
    "columns",
    "SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity,"
    " pg_get_expr(d.adbin, d.adrelid), c.relkind, coalesce(array_to_string(c.reloptions, ' '), '') FROM pg_class c"
    " JOIN pg_attribute a ON a.attrelid = c.oid LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum"
    " WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v') AND a.attnum > 0"
    " AND NOT a.attisdropped",
    sqlite='SELECT t.name, c.name, c.type, c."notnull", c.dflt_value, c.pk FROM sqlite_master t,'
    " pragma_table_xinfo(t.name) c WHERE t.type = 'table'",
)
_INDEXES = Statement(
    "indexes",
    "SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    sqlite="SELECT tbl_name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL",
)
_RULES = Statement(
    "rules",
    "SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint"
    " WHERE connamespace = 'public'::regnamespace AND contype <> 'n'"
    " UNION ALL SELECT viewname, definition FROM pg_views WHERE schemaname = 'public'",
    sqlite="SELECT name, sql FROM sqlite_master WHERE type IN ('view', 'trigger')",
)


def rendered(dialect: str) -> list[str]:
    """Return every statement that creates the tables of schema/ in an empty database."""
    return [*(str(one.compile(dialect=_dialect(dialect))).strip() for one in _made()), *extras(dialect)]


def _made() -> list[Any]:
    made: list[Any] = []
    for table in metadata.sorted_tables:
        made.append(CreateTable(table))
        made += [CreateIndex(index) for index in sorted(table.indexes, key=lambda index: str(index.name))]
    return made


def _dialect(name: str) -> Any:
    from sqlalchemy.dialects import postgresql, sqlite

    return sqlite.dialect() if name == "sqlite" else postgresql.dialect()  # type: ignore[no-untyped-call]


def making(statements: list[str]) -> Script[None]:
    """Return a script that runs statements of a revision, or of schema/."""
    for text in statements:
        yield Fetch(Statement("make", text, sqlite=text))


async def described(driver: Driver) -> list[set[tuple[Any, ...]]]:
    """Return columns, indexes and rules of all tables but Alembic's own, unordered: later columns come last."""

    def script() -> Script[list[Rows]]:
        return [(yield Fetch(_COLUMNS)), (yield Fetch(_INDEXES)), (yield Fetch(_RULES))]

    return [
        {(name, *(_plain(value) for value in rest)) for name, *rest in rows if "alembic" not in name}
        for rows in await driver.read(script)
    ]


def _plain(value: Any) -> Any:
    return " ".join(value.split()) if isinstance(value, str) else value


def extras(dialect: str) -> list[str]:
    """Return the statements that complete the tables of `schema/` for a dialect."""
    if dialect == "sqlite":
        return [SQLITE_VIEW]
    partitioned = (*PARTITIONED, "fires")
    defaults = [f"CREATE TABLE {name}_default PARTITION OF {name} DEFAULT" for name in partitioned]
    return [*defaults, POSTGRES_ENDED, POSTGRES_VIEW]
