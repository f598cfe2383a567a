"""schema/ as SQL, and tables as a database describes them: what the revisions make together is what schema/ says."""

from typing import Any

from sqlalchemy.schema import CreateIndex, CreateTable

from horae.store.ddl import extras
from horae.store.driver import Driver
from horae.store.schema.whole import metadata
from horae.store.script import Fetch, Rows, Script, Statement

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
    """Every statement that makes the tables of schema/ in an empty database."""
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
    """Run statements of a revision, or of schema/."""
    for text in statements:
        yield Fetch(Statement("make", text, sqlite=text))


async def described(driver: Driver) -> list[set[tuple[Any, ...]]]:
    """Columns, indexes and rules of all tables but Alembic's own, in no order: a column that came later is the last."""

    def script() -> Script[list[Rows]]:
        return [(yield Fetch(_COLUMNS)), (yield Fetch(_INDEXES)), (yield Fetch(_RULES))]

    return [
        {(name, *(_plain(value) for value in rest)) for name, *rest in rows if "alembic" not in name}
        for rows in await driver.read(script)
    ]


def _plain(value: Any) -> Any:
    return " ".join(value.split()) if isinstance(value, str) else value
