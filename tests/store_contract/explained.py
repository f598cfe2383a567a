"""Query plans of ops, so that tests can check that they use indexes."""

import re

from horae.store.driver import Driver
from horae.store.script import Among, Fetch, ForEach, Insert, Op, Script, Statement, Together

_NAME = "horae_explain"


async def explain(driver: Driver, op: Op, *, hot: bool = True) -> list[str]:
    """Return the lines of an op's plan, as a hot statement or a read: PostgreSQL's generic plan, or SQLite's plan."""
    if isinstance(op, Together):
        return [line for change in op.acting for line in await explain(driver, change, hot=hot)]
    if driver.dialect == "sqlite":
        return await driver.write(lambda: _sqlite(_sqlite_text(op)), hot=hot)
    return await driver.write(lambda: _postgres(_postgres_text(op)), hot=hot)


def _sqlite(text: str) -> Script[list[str]]:
    count = max((int(place) for place in re.findall(r"\?(\d+)", text)), default=0)
    rows = yield Fetch(Statement("explain", f"EXPLAIN QUERY PLAN {text}"), (None,) * count)
    return [str(row[3]) for row in rows]


def _postgres(text: str) -> Script[list[str]]:
    count = max((int(place) for place in re.findall(r"\$(\d+)", text)), default=0)
    values = f"({', '.join(['NULL'] * count)})" if count else ""
    yield Fetch(Statement("generic", "SET LOCAL plan_cache_mode = force_generic_plan"))
    yield Fetch(Statement("prepare", f"PREPARE {_NAME} AS {text}"))
    rows = yield Fetch(Statement("explain", f"EXPLAIN EXECUTE {_NAME}{values}"))
    yield Fetch(Statement("deallocate", f"DEALLOCATE {_NAME}"))
    return [str(row[0]) for row in rows]


def _sqlite_text(op: Op) -> str:
    from horae.store.sqlite import translate

    if isinstance(op, Fetch):
        return translate.translate(op.statement.on_sqlite)
    if isinstance(op, ForEach):
        if op.statement.at_once:
            return translate.for_many(op.statement.on_sqlite, op.columns, 8)
        return translate.for_each(op.statement.on_sqlite, op.columns).text
    if isinstance(op, Insert):
        return translate.insert(op.table, op.columns, op.conflict, op.returning).text
    return translate.among(op.statement.on_sqlite, len(op.ids))[0] if isinstance(op, Among) else "SELECT 1"


def _postgres_text(op: Op) -> str:
    from horae.store.postgres import statements

    if isinstance(op, Fetch | Among):
        return op.statement.text
    if isinstance(op, ForEach):
        return statements.for_each(op.statement.text, op.columns)
    if isinstance(op, Insert):
        return statements.insert_many(op.table, op.columns, op.conflict, op.returning)
    return "SELECT 1"
