"""The server's report about its store, of each kind."""

from pathlib import Path

import pytest

from horae.engine.server_node import ServerNode
from horae.env import system_env
from horae.feature import installed
from horae.features.archive.engine.archiver import DUTY
from horae.model.base.instant import format_instant
from horae.server.app import Application
from horae.store.executions.reads import housekeeping
from horae.store.migrations.revisions import HEAD
from horae.store.sqlite.library import VERSION
from tests.server.conftest import Api, connected, key_for


async def told(url: str) -> dict[str, object]:
    node = await ServerNode.open(system_env(), url)
    try:
        async with connected(Application(node), authorization=f"Bearer {await key_for(node, 'admin')}") as api:
            answer = await api.get("/api/v1/store")
            assert answer.status_code == 200
            document: dict[str, object] = answer.json()
            return document
    finally:
        await node.stop()


async def test_a_sqlite_file(tmp_path: Path):
    document = await told(f"sqlite:///{tmp_path}/horae.db")
    assert document.pop("freeBytes") > 0
    assert document.pop("sealed")["undecryptable"] == 0
    assert document == {
        "kind": "sqlite",
        "version": VERSION,
        "revision": HEAD,
        "newestRevision": HEAD,
        "settings": {"library": VERSION, "journal_mode": "wal", "synchronous": "2"},
        "features": sorted(feature.name for feature in installed()),
        "archiveProblem": None,
    }


@pytest.mark.timeout(60)
async def test_a_postgresql_database(postgres_url: str):
    document = await told(postgres_url)
    assert (document["kind"], document["revision"], document["freeBytes"]) == ("postgresql", HEAD, None)
    settings = document["settings"]
    assert settings["synchronous_commit"] == "on"
    assert str(document["version"]) == settings["server_version"]


async def test_it_is_for_administrators(worker: Api):
    assert (await worker.get("/api/v1/store")).status_code == 403


async def test_the_reason_for_a_stopped_archive_is_reported(api: Api, node: ServerNode):
    now = node.env.now()
    await node.store.write(lambda: housekeeping.take_duty(DUTY, node.id, now, now + 1))
    await node.store.write(lambda: housekeeping.report_duty(DUTY, "the disk is full", now))
    told = (await api.get("/api/v1/store")).json()["archiveProblem"]
    assert told == {"problem": "the disk is full", "since": format_instant(now)}
