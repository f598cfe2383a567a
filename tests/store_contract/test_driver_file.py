"""The promises of a SQLite file: one owner, one writer, one sync for many scripts."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from horae.env import Env, VirtualClock
from horae.errors import BadInput, Busy, StoreInUse, StoreUnavailable
from horae.store.driver import one
from horae.store.open import open_store_driver
from horae.store.script import Fetch, Script, Statement
from horae.store.sqlite.connection import connect
from horae.store.sqlite.file import FileDriver
from horae.store.sqlite.library import sqlite3
from horae.store.sqlite.owner import refuse_network
from tests.store_contract.test_driver import GET, PUT
from tests.waiting import eventually


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "horae.db"


def traced(driver: FileDriver) -> list[str]:
    """Record every statement that the writer runs from now on."""
    texts: list[str] = []
    driver._connection.raw.set_trace_callback(texts.append)
    return texts


async def test_the_error_for_a_file_that_is_not_a_store_has_a_remedy(path: Path, env: Env):
    path.write_bytes(b"not a SQLite database entirely" * 300)
    with pytest.raises(StoreUnavailable, match="not a SQLite database") as refused:
        await open_store_driver(f"sqlite:///{path}", env)
    assert "horae db restore" in refused.value.remedy
    assert path.read_bytes().startswith(b"not a SQLite database entirely")


async def test_the_error_for_a_second_process_names_the_owner(file_driver: FileDriver, path: Path, env: Env):
    await file_driver.close()
    first = await open_store_driver(f"sqlite:///{path}", env, "http://127.0.0.1:8420")
    with pytest.raises(StoreInUse, match=rf"process {os.getpid()} http://127.0.0.1:8420"):
        await open_store_driver(f"sqlite:///{path}", env)
    script = (
        "import asyncio; from horae.env import system_env; from horae.store.open import open_store_driver as o;"
        f"asyncio.run(o('sqlite:///{path}', system_env()))"
    )
    other = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "StoreInUse" in other.stderr
    assert f"process {os.getpid()} http://127.0.0.1:8420" in other.stderr

    await first.close()
    second = await open_store_driver(f"sqlite:///{path}", env)
    await second.close()


async def test_only_the_owner_may_read_the_file(file_driver: FileDriver, path: Path):
    await file_driver.write(one(PUT, "a", "1"))
    for name in ("horae.db", "horae.db-wal", "horae.db-shm", "horae.db.lock"):
        assert (path.with_name(name)).stat().st_mode & 0o077 == 0, name


async def test_commits_are_synced(file_driver: FileDriver):
    raw = file_driver._connection.raw
    assert raw.execute("PRAGMA synchronous").fetchone() == (2,)
    assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)


async def test_pending_scripts_are_committed_together(file_driver: FileDriver):
    texts = traced(file_driver)
    await asyncio.gather(*(file_driver.write(one(PUT, f"k{n}", "x")) for n in range(64)))

    assert texts.count("COMMIT") == 1
    assert texts.count("BEGIN IMMEDIATE") == 1


@pytest.mark.parametrize("sync", [0.0, 1.0], ids=["quick disk", "slow disk"])
async def test_a_script_that_breaks_the_transaction_fails_alone(file_driver: FileDriver, sync: float):
    file_driver._writer._sync = sync

    def breaking() -> Script[None]:
        yield Fetch(PUT, ("bad", "1"))
        yield Fetch(Statement("break", "ROLLBACK"))

    results = await asyncio.gather(
        file_driver.write(one(PUT, "a", "1")),
        file_driver.write(breaking),
        file_driver.write(one(PUT, "b", "1")),
        return_exceptions=True,
    )

    assert [type(result).__name__ for result in results] == ["list", "OperationalError", "list"]
    assert await file_driver.read(one(GET, "a")) == await file_driver.read(one(GET, "b")) == [("1",)]
    assert await file_driver.read(one(GET, "bad")) == []


async def test_a_full_disk_is_reported_and_survived(file_driver: FileDriver):
    raw = file_driver._connection.raw
    pages = raw.execute("PRAGMA page_count").fetchone()[0]
    raw.execute(f"PRAGMA max_page_count = {pages + 2}")

    with pytest.raises(StoreUnavailable, match="full disk") as told:
        await file_driver.write(one(PUT, "a", "x" * 100_000))
    assert "Make room" in told.value.remedy
    await file_driver.write(one(PUT, "b", "small"))

    raw.execute("PRAGMA max_page_count = 1000000")
    await file_driver.write(one(PUT, "a", "x" * 100_000))
    assert len((await file_driver.read(one(GET, "a")))[0][0]) == 100_000


async def test_a_read_only_file_is_reported(file_driver: FileDriver):
    file_driver._connection.raw.execute("PRAGMA query_only = ON")
    with pytest.raises(StoreUnavailable, match="read-only"):
        await file_driver.write(one(PUT, "a", "1"))


async def test_the_outcome_of_a_commit_with_an_input_error_is_unknown(
    file_driver: FileDriver, monkeypatch: pytest.MonkeyPatch
):
    error = sqlite_error(10)

    def broken() -> None:
        raise error

    monkeypatch.setattr(file_driver._connection, "commit", broken)
    with pytest.raises(StoreUnavailable) as told:
        await file_driver.write(one(PUT, "a", "1"))

    assert told.value.fields == {"unknown": True}
    assert "nothing was changed" not in told.value.remedy


def sqlite_error(code: int) -> Exception:
    from horae.store.sqlite.library import sqlite3

    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = code
    return error


async def test_readers_neither_wait_for_the_writer_nor_see_what_is_not_committed(file_driver: FileDriver):
    stopped, going = asyncio.Event(), asyncio.Event()

    async def before(op: Any) -> None:
        if op.statement.name == "get":
            stopped.set()
            await going.wait()

    def script() -> Script[None]:
        yield Fetch(PUT, ("a", "1"))
        yield Fetch(GET, ("a",))

    file_driver.before = before
    writing = asyncio.create_task(file_driver.write(script))
    await stopped.wait()
    file_driver.before = None

    assert await file_driver.read(one(GET, "a")) == []
    going.set()
    await writing
    assert await file_driver.read(one(GET, "a")) == [("1",)]


async def test_a_read_cannot_write(file_driver: FileDriver):
    with pytest.raises(StoreUnavailable, match="read-only"):
        await file_driver.read(one(PUT, "a", "1"))


ENDLESS = Statement(
    "endless", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n WHERE i < $1"
)
LONG = Statement(
    "long", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT $1) SELECT max(i) FROM n"
)


class TickingClock(VirtualClock):
    """A clock that moves a millisecond with every reading."""

    def monotonic(self) -> float:
        self.advance(1000)
        return super().monotonic()


async def test_a_long_read_leaves_the_loop_and_an_endless_one_is_stopped(path: Path, env: Env):
    driver = await open_store_driver(f"sqlite:///{path}", Env(TickingClock(), env.ids, env.rng))
    assert await driver.read(one(LONG, 50_000)) == [(50_000,)]
    assert driver.statements["long"] == 2  # begun on the loop, repeated on a thread

    with pytest.raises(Busy, match="too long"):
        await driver.read(one(ENDLESS, 1 << 60))
    assert await driver.read(one(LONG, 10)) == [(10,)]
    await driver.close()


async def test_a_cancelled_read_is_stopped(path: Path, env: Env):
    driver = await open_store_driver(f"sqlite:///{path}", Env(TickingClock(), env.ids, env.rng))
    reading = asyncio.create_task(driver.read(one(ENDLESS, 1 << 60)))
    await eventually(lambda: driver.statements["endless"] == 2)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await driver.close()


async def test_the_log_is_checkpointed_during_writes(file_driver: FileDriver, path: Path):
    for _ in range(30):
        await asyncio.gather(*(file_driver.write(one(PUT, f"k{n}", "x" * 300)) for n in range(200)))

    assert path.with_name("horae.db-wal").stat().st_size < 8_000_000
    assert path.stat().st_size > 50_000


async def test_a_forked_child_is_refused(file_driver: FileDriver):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            file_driver._ownership.check()
        except StoreInUse as error:
            os.write(writer, str(error).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    told = os.read(reader, 1000).decode()
    os.close(reader)
    assert f"opened by process {os.getpid()}" in told
    assert "fork" in told


def test_a_network_file_system_is_refused(tmp_path: Path):
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/vda / ext4 rw 0 0\nserver:/x {tmp_path}/my\\040share nfs4 rw 0 0\n")
    refuse_network(tmp_path / "horae.db", mounts)
    with pytest.raises(BadInput, match=r"network file system \(nfs4\)"):
        refuse_network(tmp_path / "my share" / "horae.db", mounts)


async def test_acknowledged_writes_survive_a_crash(file_driver: FileDriver, path: Path, env: Env):
    await file_driver.write(one(PUT, "a", "1"))
    copy = path.with_name("copy.db")  # the state after a crash: the file and its log, nothing closed
    copy.write_bytes(path.read_bytes())
    copy.with_name("copy.db-wal").write_bytes(path.with_name("horae.db-wal").read_bytes())

    raw = connect(copy)
    assert raw.execute("SELECT value FROM store WHERE key = 'a'").fetchall() == [("1",)]
    raw.close()


async def test_a_closed_store_is_not_available(file_driver: FileDriver):
    await file_driver.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await file_driver.write(one(PUT, "a", "1"))


@pytest.mark.parametrize("url", ["mysql://x", "horae.db", "sqlite://host/path", "postgresql:/x", ""])
async def test_other_urls_are_refused(url: str, env: Env):
    with pytest.raises(BadInput, match="sqlite:///path"):
        await open_store_driver(url, env)


async def test_a_folder_that_cannot_be_created_is_reported(tmp_path: Path, env: Env):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        await open_store_driver(f"sqlite:///{tmp_path}/file/horae.db", env)


async def test_a_file_that_is_not_a_database_is_reported(path: Path, env: Env):
    path.write_text("hello, this is not a database at all" * 100)
    with pytest.raises(Exception, match="not a database"):
        await open_store_driver(f"sqlite:///{path}", env)
    path.unlink()
    driver = await open_store_driver(f"sqlite:///{path}", env)
    await driver.close()


async def test_scripts_that_are_not_hot_run_on_the_thread_and_in_order(file_driver: FileDriver):
    order: list[int] = []

    def put(number: int) -> Script[None]:
        yield Fetch(PUT, (f"k{number}", "x"))
        order.append(number)

    await asyncio.gather(*(file_driver.write(lambda n=n: put(n), hot=n % 3 != 0) for n in range(10)))

    assert order == list(range(10))


async def test_a_hook_also_runs_for_scripts_that_are_not_hot(file_driver: FileDriver):
    names: list[str] = []

    async def before(op: Any) -> None:
        names.append(op.statement.name)

    file_driver.before = before
    await file_driver.write(one(PUT, "a", "1"), hot=False)
    assert names == ["put"]


async def test_callers_do_not_wait_for_a_writer_that_was_cancelled(file_driver: FileDriver):
    stopped = asyncio.Event()

    async def before(op: Any) -> None:
        stopped.set()
        await asyncio.Event().wait()

    file_driver.before = before
    writing = [asyncio.create_task(file_driver.write(one(PUT, f"k{n}", "1"))) for n in range(3)]
    await stopped.wait()
    file_driver._writer._task.cancel()
    results = await asyncio.gather(*writing, return_exceptions=True)
    file_driver.before = None

    assert all(isinstance(result, asyncio.CancelledError) for result in results)
    await file_driver.write(one(PUT, "later", "1"))
    assert await file_driver.read(one(GET, "k0")) == []


async def test_a_password_in_a_url_is_not_shown(env: Env):
    with pytest.raises(BadInput) as told:
        await open_store_driver("mysql://me:secret@host/db", env)
    assert "secret" not in str(told.value)


def test_values_are_bound_without_a_search_for_an_adapter():
    raw = connect(None)
    values = (b"\0\xff", b"", None, True, False, 7, "text", 1.5)
    bound = raw.execute(f"SELECT {', '.join('?' * len(values))}", values).fetchone()

    assert bound == (b"\0\xff", b"", None, 1, 0, 7, "text", 1.5)
    assert {bytes, bool, type(None)} <= {kind for kind, _ in sqlite3.adapters}
    raw.close()
