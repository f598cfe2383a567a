"""Backups of a store in use: complete, of one instant, while the server continues."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import httpx2
import pytest

from horae.engine.base.installation import MARK
from horae.engine.server_node import ServerNode
from horae.env import Env, system_env
from horae.errors import Busy, Conflict
from horae.model.fleet.submit import Submit
from horae.server.app import Application
from horae.store.contract import Store
from horae.store.copying import backup
from horae.store.open import open_store_driver
from horae.store.postgres.driver import PostgresDriver
from horae.store.sqlite.file import FileDriver
from tests.store_contract.auditing import audit_executions
from tests.waiting import eventually


@pytest.fixture
def real_env() -> Env:
    return system_env()


@pytest.fixture
async def busy(tmp_path: Path, real_env: Env) -> AsyncIterator[ServerNode]:
    node = await ServerNode.open(real_env, f"sqlite:///{tmp_path}/horae.db")
    await node.prepare()
    await node.definitions.jobs.create(1, {"name": "work", "command": "true"})
    yield node
    await node.stop()


async def client_of(node: ServerNode, **headers: str) -> httpx2.AsyncClient:
    key = (await node.tenancy.keys.create(1, "all", "admin", permissions=["installation"])).text
    transport = httpx2.ASGITransport(app=Application(node))
    return httpx2.AsyncClient(
        transport=transport, base_url="http://horae.test", headers={"authorization": f"Bearer {key}", **headers}
    )


async def accepted(file: Path, tmp_path: Path, env: Env) -> set[UUID]:
    """Restore a backup and return its executions; it must be intact."""
    url = f"sqlite:///{tmp_path}/restored.db"
    await backup.restore(file, url, env)
    driver = await open_store_driver(url, env)
    try:
        store = Store(driver, env)
        report = await store.read(lambda: audit_executions(env.now(), patience=None))
        assert report.findings == []
        node = ServerNode(env, store)
        page = await node.work.executions.list(1, limit=1000)
        return {one.execution_id for one in page.items}
    finally:
        await driver.close()


async def test_a_backup_under_load_has_everything_accepted_before_it(busy: ServerNode, tmp_path: Path, real_env: Env):
    done: list[UUID] = []
    enough = asyncio.Event()

    async def load() -> None:
        while not enough.is_set():
            (receipt,) = await busy.submitter.submit(1, [Submit(job="work")], origin="trigger")
            done.append(receipt.execution_id)

    loading = asyncio.create_task(load())
    await eventually(lambda: len(done) > 50)
    before = set(done)
    async with await client_of(busy) as client:
        answer = await client.get("/api/v1/backup")
    enough.set()
    await loading

    assert answer.status_code == 200
    assert int(answer.headers["content-length"]) == len(answer.content)
    (tmp_path / "b").write_bytes(answer.content)
    kept = await accepted(tmp_path / "b", tmp_path, real_env)
    assert before <= kept <= set(done)


async def test_no_temporary_file_of_a_copy_remains(busy: ServerNode, tmp_path: Path):
    (tmp_path / f"horae.db{MARK}left-by-a-crash").write_bytes(b"x")
    (await busy.tenancy.backups.take()).close()
    assert list(tmp_path.glob(f"*{MARK}*")) == []


@pytest.mark.parametrize(("name", "other"), [("", "horae"), ("horae[1].db", "horae1.db")])
async def test_a_copy_leaves_the_copies_of_other_servers_alone(
    tmp_path: Path, real_env: Env, monkeypatch: pytest.MonkeyPatch, name: str, other: str
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    node = await ServerNode.open(real_env, f"sqlite:///{tmp_path}/{name}" if name else "sqlite://")
    own, foreign = tmp_path / f"{name}{MARK}x", tmp_path / f"{other}{MARK}x"
    own.write_bytes(b"x")
    foreign.write_bytes(b"x")

    (await node.tenancy.backups.take()).close()
    await node.stop()

    assert foreign.exists()
    assert own.exists() == (not name)


async def test_one_copy_is_made_at_a_time(busy: ServerNode):
    first, second = await asyncio.gather(
        busy.tenancy.backups.take(), busy.tenancy.backups.take(), return_exceptions=True
    )
    assert isinstance(second, Busy)
    first.close()
    (await busy.tenancy.backups.take()).close()


async def test_a_store_that_others_can_open_is_not_copied_by_its_server(busy: ServerNode, monkeypatch):
    monkeypatch.setattr(FileDriver, "copy_file", PostgresDriver.copy_file)
    with pytest.raises(Conflict, match="PostgreSQL") as refused:
        await busy.tenancy.backups.take()
    assert "horae db backup" in refused.value.remedy
