"""`horae db`: on real stores."""

import asyncio
import json
from pathlib import Path

import pytest

from horae.engine.server_node import ServerNode
from horae.env import system_env
from horae.store.contract import Store
from horae.store.open import open_store_driver
from horae.store.sqlite.library import VERSION
from horae.store.tenancy import namespaces
from tests.cli.fake_api import run


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("HORAE_STORE", "HORAE_DATA"):
        monkeypatch.delenv(name, raising=False)


def test_upgrade_creates_a_store_and_version_shows_its_revision():
    assert run(None, "db", "version").exit_code == 3
    assert not Path("horae.db").exists()
    assert "from nothing to 0001" in run(None, "db", "upgrade").stdout
    assert "is at 0001 already" in run(None, "db", "upgrade").stdout
    assert json.loads(run(None, "db", "version", "-o", "json").stdout) == {
        "store": "0001",
        "program": "0001",
        "kind": "sqlite",
        "version": VERSION,
        "settings": {"library": VERSION, "journal_mode": "wal", "synchronous": "2"},
    }
    assert f"SQLite {VERSION} at revision 0001" in run(None, "db", "version").stdout


def test_a_store_is_backed_up_and_restored():
    run(None, "db", "upgrade")
    assert "Wrote horae.backup" in run(None, "db", "backup", "horae.backup").stdout
    restored = run(None, "db", "restore", "horae.backup", "--data", "elsewhere", "-o", "json")
    assert json.loads(restored.stdout)["epoch"] > 1
    assert run(None, "db", "version", "--data", "elsewhere").exit_code == 0


def test_replacing_a_store_needs_a_confirmation():
    run(None, "db", "upgrade")
    run(None, "db", "backup", "horae.backup")
    refused = run(None, "db", "restore", "horae.backup", "--replace", input="n\n")
    assert refused.exit_code == 1
    assert "by horae.backup?" in refused.stderr
    assert run(None, "db", "restore", "horae.backup", "--replace", "--yes").exit_code == 0


def test_a_file_that_is_no_backup_is_refused():
    Path("notes.txt").write_text("hello")
    assert run(None, "db", "restore", "notes.txt").exit_code == 2
    assert run(None, "db", "restore", "gone").exit_code == 3


def test_everything_moves_to_postgresql(postgres_url):
    run(None, "db", "upgrade")
    moved = run(None, "db", "migrate", "--from", "sqlite:///horae.db", "--to", postgres_url)
    assert moved.exit_code == 0, moved.stderr
    assert "both stores have the same content" in moved.stdout
    assert "namespaces" in moved.stdout


def test_migrate_fills_the_store_of_the_settings_by_default(postgres_url):
    run(None, "db", "upgrade")
    moved = run(None, "db", "migrate", "--from", "sqlite:///horae.db", env={"HORAE_STORE": postgres_url})
    assert "both stores have the same content" in moved.stdout
    assert run(None, "db", "migrate", "--from", "sqlite:///horae.db").exit_code == 2


def test_migrating_from_a_missing_store_creates_no_store(tmp_path):
    assert run(None, "db", "migrate", "--from", "sqlite:///gone.db", "--to", "sqlite:///new.db").exit_code == 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_job_is_paused_in_a_store_without_a_server(kind, request):
    url = "sqlite:///horae.db" if kind == "sqlite" else request.getfixturevalue("postgres_url")
    asyncio.run(with_a_job(url))

    missing = run(None, "db", "pause-job", "nobody", "--store", url)
    assert (missing.exit_code, "no job named" in missing.stderr) == (3, True)
    elsewhere = run(None, "db", "pause-job", "nightly", "--namespace", "nowhere", "--store", url)
    assert (elsewhere.exit_code, "no namespace named" in elsewhere.stderr) == (3, True)
    paused = run(None, "db", "pause-job", "nightly", "--reason", "it is too slow", "--store", url)
    assert paused.exit_code == 0, paused.stderr
    assert "is paused" in paused.stdout
    assert "was not active" in run(None, "db", "pause-job", "nightly", "--store", url).stdout
    state, reason, next_fire_at, resumed = asyncio.run(resumed_job(url))
    assert (state, reason, next_fire_at, resumed) == ("paused", "it is too slow", None, "active")


def test_a_store_of_another_version_is_not_changed_by_a_pause():
    Path("horae.db").touch()
    refused = run(None, "db", "pause-job", "nightly")
    assert refused.exit_code == 4
    assert "horae db upgrade" in refused.stderr


async def opened(url: str) -> ServerNode:
    env = system_env()
    driver = await open_store_driver(url, env)
    await driver.migrate()
    node = ServerNode(env, Store(driver, env))
    await node.prepare()
    return node


async def with_a_job(url: str) -> None:
    node = await opened(url)
    body = {"name": "nightly", "command": "true", "schedule": {"every": "1h"}}
    await node.definitions.jobs.create(await default(node), body)
    await node.stop()


async def resumed_job(url: str) -> tuple[str, str, str | None, str]:
    node = await opened(url)
    namespace = await default(node)
    shown = await node.definitions.jobs.get(namespace, "nightly")
    resumed = await node.definitions.jobs.resume(namespace, "nightly")
    await node.stop()
    return shown.state, shown.auto_paused.reason, shown.next_fire_at, resumed.state


async def default(node: ServerNode) -> int:
    found = await node.store.read(lambda: namespaces.by_name("default"))
    assert found is not None
    return found.id
