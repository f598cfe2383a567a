"""Installations: a copy of a store is another installation, and its workers never register with the original."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from horae.engine.server_node import ServerNode
from horae.env import Env, system_env
from horae.model.fleet.server import ServerProcess
from horae.server.app import Application
from horae.store.copying import backup, transfer
from horae.store.fleet import sessions

PRESENT = {"protocol": 2, "worker": "w"}


@pytest.fixture
def real_env() -> Env:
    return system_env()


@asynccontextmanager
async def served(url: str, env: Env, key: str = "") -> AsyncIterator[tuple[ServerNode, httpx2.AsyncClient, str]]:
    """Yield a server on a store, a client of it with a worker's key, and that key."""
    node = await ServerNode.open(env, url)
    await node.prepare()
    await node.fleet.presence.step()
    key = key or (await node.tenancy.keys.create(1, "w", "worker")).text
    transport = httpx2.ASGITransport(app=Application(node))
    headers = {"authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(transport=transport, base_url="http://horae.test", headers=headers) as client:
        yield node, client, key
    await node.stop()


async def register(client: httpx2.AsyncClient, installation: str = "") -> Any:
    headers = {"horae-installation": installation} if installation else {}
    return await client.post("/api/v1/sessions", json=PRESENT, headers=headers)


async def exchange(client: httpx2.AsyncClient, registered: Any) -> httpx2.Response:
    headers = {"horae-installation": registered["installation"]}
    path = f"/api/v1/sessions/{registered['sessionId']}/exchange"
    return await client.post(path, json={"channel": 0, "n": 1}, headers=headers)


@pytest.fixture(params=("sqlite", "postgres"))
def urls(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Return the URLs of the original and of its future copy."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/a.db", f"sqlite:///{tmp_path}/b.db"
        return
    postgres = request.getfixturevalue("postgres")
    original: str = request.getfixturevalue("postgres_url")
    copy = f"copy_of_{original.rpartition('/')[2]}"
    yield original, postgres.create_database(copy)
    postgres.drop_database(copy)


async def test_a_worker_of_a_copy_is_refused_by_the_original(urls: Any, tmp_path: Path, real_env: Env):
    original, copy = urls
    async with served(original, real_env) as (node, live, key):
        theirs = (await register(live)).json()
        await backup.backup(node.store.driver, tmp_path / "backup", real_env)
        await backup.restore(tmp_path / "backup", copy, real_env)
        async with served(copy, real_env, key) as (copied, staging, _):
            mine = (await register(staging)).json()
            assert mine["installation"] != theirs["installation"]
            assert copied.fleet.presence.addresses == []

            refused = await register(live, mine["installation"])
            stray = await exchange(live, mine)

            assert (refused.status_code, stray.status_code) == (421, 421)
            assert refused.json()["type"] == "urn:horae:misdirected"
            assert len(await node.store.sessions(1, 0)) == 1
            assert (await exchange(staging, mine)).status_code == 200
            assert (await exchange(staging, theirs)).status_code == 409, "the copy ended the sessions that it found"


async def test_workers_continue_after_a_restore_in_place(urls: Any, tmp_path: Path, real_env: Env):
    url, _ = urls
    async with served(url, real_env) as (node, client, key):
        first = (await register(client)).json()
        await backup.backup(node.store.driver, tmp_path / "backup", real_env)
    known = {first["installation"]}
    for _ in range(2):  # the second restore has no record of the first
        await backup.restore(tmp_path / "backup", url, real_env, replace=True)
        async with served(url, real_env, key) as (_, client, _):
            for before in known:
                assert (await register(client, before)).status_code == 201
            assert (await exchange(client, first)).status_code == 409
            known.add((await register(client)).json()["installation"])
    assert len(known) == 3


async def test_a_restart_and_a_move_keep_the_installation(urls: Any, real_env: Env):
    original, copy = urls
    async with served(original, real_env) as (_, client, key):
        first = (await register(client)).json()
    async with served(original, real_env, key) as (_, client, _):
        assert (await exchange(client, first)).status_code == 200
    if original.startswith("sqlite"):
        await transfer.migrate(original, copy, real_env)
        async with served(copy, real_env, key) as (_, client, _):
            assert (await register(client)).json()["installation"] == first["installation"]


async def test_an_invalid_installation_is_refused_and_a_missing_one_admitted(urls: Any, real_env: Env):
    async with served(urls[0], real_env) as (_, client, _):
        assert (await register(client, "nonsense")).status_code == 421
        assert (await register(client)).status_code == 201


async def test_the_copy_of_a_file_sends_no_worker_to_the_original(urls: Any, real_env: Env):
    url, _ = urls
    async with served(url, real_env) as (node, _, _):
        other = ServerProcess(
            id=real_env.new_id(), url="http://original:1", host="h", pid=1, version="1", roles=("gateway",)
        )  # fmt: skip
        await node.store.write(lambda: sessions.record_server(other, real_env.now()))
        await node.fleet.presence.step()
        shared = not url.startswith("sqlite")
        assert node.fleet.answers.servers == (["http://original:1"] if shared else [])
