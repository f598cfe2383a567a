"""Steps in the user's own database: the effect and the stored step commit together, or not at all."""

import asyncio
import sqlite3
from contextlib import closing

import asyncpg
import pytest

from horae import App, GiveUp
from horae.errors import HoraeError
from horae.testing import Crash, Inline
from horae.worker.code.transactions import database_of

app = App()
COUNT = "UPDATE effects SET n = n + 1 RETURNING n"


@app.job(durable=True, retries=3)
async def books(ctx, connection, fails: str = "") -> list[int]:
    mine = ctx.transaction(connection)
    first = await mine.step("book", count, connection, fails if ctx.failures == 0 else "")
    second = await mine.step("book", count, connection)
    await ctx.step("remembered elsewhere", int)
    return [first, second]


async def count(connection: asyncpg.Connection, fails: str = "") -> int:
    n = await connection.fetchval(COUNT)
    if fails:
        raise OSError(fails)
    return n


class Bound:
    """A job whose function gets a connection that JSON could not carry."""

    def __init__(self, job, connection) -> None:
        self.name, self.signature, self.definition = job.name, _Signature(job.function, connection), job.definition
        self.function = job.function


class _Signature:
    def __init__(self, function, connection) -> None:
        self._connection = connection

    def binder(self, defaults):
        return lambda item, ctx: ((ctx, self._connection), __import__("json").loads(bytes(item)))


@pytest.fixture
async def postgres_connection(postgres_url):
    connection = await asyncpg.connect(postgres_url)
    await connection.execute("CREATE TABLE effects (n int); INSERT INTO effects VALUES (0)")
    yield connection
    await connection.close()


async def test_an_effect_in_postgresql_happens_once_whenever_the_process_dies(postgres_connection):
    connection = postgres_connection
    await Inline(Bound(makes, connection)).finish()
    run = Inline(Bound(books, connection), crash_after=1, fails="before the commit")
    assert await run.finish() == [1, 2]

    assert [attempt.outcome for attempt in run.attempts] == ["failed", "crashed", "success"]
    assert await connection.fetchval("SELECT n FROM effects") == 2
    rows = await connection.fetch("SELECT execution, name, result FROM horae_steps ORDER BY name")
    assert [tuple(row) for row in rows] == [(str(run.id), "book", "1"), (str(run.id), "book#2", "2")]


@app.job()
async def makes(ctx, connection) -> None:
    await ctx.transaction(connection).create_table()


async def test_a_second_attempt_waits_for_the_first_and_gets_its_result(postgres_connection, postgres_url):
    """The first attempt belongs to a worker that seemed dead and still runs."""
    first, second = postgres_connection, await asyncpg.connect(postgres_url)
    await Inline(Bound(makes, first)).finish()
    inside, go = asyncio.Event(), asyncio.Event()
    ran = []

    async def slow(name: str, connection: asyncpg.Connection) -> str:
        ran.append(name)
        inside.set()
        await go.wait()
        return name

    @app.job("twin")
    async def twin(ctx, connection, name: str) -> str:
        return await ctx.transaction(connection).step("effect", slow, name, connection)

    old, new = Inline(Bound(twin, first), name="old"), Inline(Bound(twin, second), name="new")
    new.id = old.id
    one = asyncio.create_task(old.finish())
    await inside.wait()
    two = asyncio.create_task(new.finish())
    try:
        go.set()
        assert await asyncio.gather(one, two) == ["old", "old"]
        assert ran == ["old"]
    finally:
        await second.close()


async def test_the_step_row_commits_or_rolls_back_with_the_users_transaction(postgres_connection):
    connection = postgres_connection
    await Inline(Bound(makes, connection)).finish()

    @app.job("within")
    async def within(ctx, connection, commit: bool) -> int:
        async with connection.transaction():
            n = await ctx.transaction(connection).step("book", count, connection)
            if not commit:
                raise GiveUp("no")
        return n

    run = Inline(Bound(within, connection), commit=False)
    with pytest.raises(GiveUp):
        await run.finish()
    assert await connection.fetch("SELECT * FROM horae_steps") == []
    assert await connection.fetchval("SELECT n FROM effects") == 0
    assert await Inline(Bound(within, connection), commit=True).finish() == 1


async def test_a_missing_table_is_reported_with_its_remedy(postgres_connection):
    with pytest.raises(HoraeError, match="create_table"):
        await Inline(Bound(within_nothing, postgres_connection)).finish()


@app.job()
async def within_nothing(ctx, connection) -> int:
    return await ctx.transaction(connection).step("book", count, connection)


@app.job(durable=True, retries=1)
def books_locally(ctx, path: str, nested: bool) -> list[int]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        mine = ctx.sync.transaction(connection)
        mine.create_table()
        if nested:
            connection.execute("BEGIN")
        first = mine.step("book", count_locally, connection, ctx.failures == 0)
        second = mine.step("book", count_locally, connection, False)
        if nested:
            connection.commit()
        ctx.sync.step("elsewhere", int)
        return [first, second]


def count_locally(connection: sqlite3.Connection, fails: bool) -> int:
    n = connection.execute(COUNT).fetchone()[0]
    if fails:
        raise OSError("before the commit")
    return n


@pytest.mark.parametrize("nested", [False, True])
async def test_an_effect_in_sqlite_happens_once(tmp_path, nested):
    path = str(tmp_path / "own.db")
    own = sqlite3.connect(path, isolation_level=None)
    own.executescript("CREATE TABLE effects (n); INSERT INTO effects VALUES (0)")
    run = Inline(books_locally, path=path, nested=nested, crash_after=1)

    assert await run.finish() == [1, 2]
    assert own.execute("SELECT n FROM effects").fetchone() == (2,)


class Cursor:
    def __init__(self, rows) -> None:
        self._rows, self.description = rows, ["result"]

    def fetchone(self):
        return self._rows[0] if self._rows else None


class Connection:
    """The used part of a psycopg connection."""

    __module__ = "psycopg"

    def __init__(self) -> None:
        self.told: list[object] = []
        self.kept: str | None = None

    def transaction(self) -> "Connection":
        return self

    def __enter__(self) -> "Connection":
        self.told.append("begin")
        return self

    def __exit__(self, kind, error, trace) -> None:
        self.told.append("commit" if kind is None else "rollback")

    def execute(self, text: str, values) -> Cursor:
        self.told.append((text.split(maxsplit=1)[0], text.count("%s"), len(values)))
        if text.startswith("INSERT"):
            return Cursor([("book",)] if self.kept is None else [])
        if text.startswith("UPDATE"):
            self.kept = values[0]
        return Cursor([(self.kept,)])


async def test_psycopg_is_called_with_its_own_syntax():
    connection = Connection()

    @app.job("psycopg")
    def twice(ctx, connection) -> int:
        return ctx.sync.transaction(connection).step("book", int, 7)

    for _ in range(2):
        assert await Inline(Bound(twice, connection)).finish() == 7
    assert connection.told == [
        "begin", ("INSERT", 3, 3), ("UPDATE", 3, 3), "commit", "begin", ("INSERT", 3, 3), ("SELECT", 2, 2), "commit",
    ]  # fmt: skip


def test_another_librarys_connection_is_refused():
    with pytest.raises(TypeError, match="asyncpg, psycopg"):
        database_of(object())


def test_a_crash_cannot_be_handled_by_the_function():
    assert not issubclass(Crash, Exception)
