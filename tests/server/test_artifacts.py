"""Artifacts over HTTP: uploaded in pieces by the session of the execution, listed, read and deleted."""

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec import structs

from horae.engine.server_node import ServerNode
from horae.engine.settings import EngineSettings
from horae.env import Env
from horae.features.artifacts import engine
from horae.features.artifacts.part import ArtifactsPart
from horae.features.artifacts.store import artifacts
from horae.store.contract import Store
from horae.store.open import open_store_driver
from tests.server.conftest import Api, Connect, key_for
from tests.server.test_jobs import create
from tests.server.test_sessions import exchange, register

NOBODY = "0198c5a0-0000-7000-8000-000000000000"


@pytest.fixture
async def node(env: Env, tmp_path: Path) -> AsyncIterator[ServerNode]:
    driver = await open_store_driver("sqlite://", env)
    await driver.migrate()
    settings = structs.replace(EngineSettings(), artifacts=str(tmp_path / "kept"), artifact_limit=1_000_000)
    node = ServerNode(env, Store(driver, env), settings)
    await node.prepare()
    yield node
    await node.stop()


class Held:
    """A running execution, in the view of its worker and of others."""

    def __init__(self, worker: Api, session: object, slice: dict, execution: str) -> None:
        self._worker, self._session, self.slice, self.execution = worker, session, slice, execution

    async def put(self, name: str, content: object, kind: str = "text/plain", **other: object):
        query = {"parcel": self.slice["parcel"], "item": self.slice["lo"], "attempt": self.slice["attempt"], **other}
        path = f"/api/v1/sessions/{self._session}/artifacts/{name}"
        return await self._worker.put(path, params=query, content=content, headers={"content-type": kind})


@pytest.fixture
async def held(api: Api, worker: Api) -> Held:
    await create(api, name="report")
    made = (await api.post("/api/v1/executions", json={"job": "report"})).json()["executionId"]
    session = (await register(worker)).session_id
    answer = await worker.post(f"/api/v1/sessions/{session}/exchange", content=exchange(free=1))
    (slice,) = answer.json()["slices"]
    return Held(worker, session, slice, made)


async def pieces(*some: bytes) -> AsyncIterator[bytes]:
    for piece in some:
        yield piece


async def test_a_file_is_uploaded_listed_and_read(api: Api, held: Held):
    content = b"<h1>all is well</h1>" * 20_000
    answer = await held.put("site/index.html", pieces(content[:99_000], content[99_000:]), "text/html; charset=utf-8")
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert told["sha256"] == hashlib.sha256(content).hexdigest()
    assert (told["size"], told["type"], told["attempt"]) == (len(content), "text/html; charset=utf-8", 1)
    await held.put("a b.txt", b"")

    listed = (await api.get(f"/api/v1/executions/{held.execution}/artifacts")).json()
    assert [one["name"] for one in listed["items"]] == ["a b.txt", "site/index.html"]
    assert listed["items"][1] == told
    got = await api.get(told["url"])
    assert got.content == content
    assert got.headers["content-type"] == "text/html; charset=utf-8"
    assert got.headers["content-disposition"] == "attachment; filename*=UTF-8''index.html"
    assert (await api.get(listed["items"][0]["url"])).content == b""


async def test_no_file_of_a_job_is_a_script_or_a_page_of_this_server(api: Api, held: Held):
    for type in ("text/javascript", "application/x-ECMAscript; charset=utf-8"):
        told = (await held.put("a.js", b"alert(1)", type)).json()
        assert told["type"] == type
        got = await api.get(told["url"])
        assert (got.headers["content-type"], got.headers["x-content-type-options"]) == (
            "text/plain; charset=utf-8", "nosniff",
        )  # fmt: skip
        assert "sandbox" in got.headers.get_list("content-security-policy")


async def test_a_name_of_the_maximum_length_is_stored(api: Api, held: Held):
    name = "ü" * 127
    assert (await held.put(name, b"long")).status_code == 200
    (one,) = (await api.get(f"/api/v1/executions/{held.execution}/artifacts")).json()["items"]
    assert one["name"] == name
    assert (await api.get(one["url"])).content == b"long"


async def test_pages_of_artifacts(api: Api, held: Held):
    for name in "abc":
        await held.put(name, b"1")
    path = f"/api/v1/executions/{held.execution}/artifacts"
    first = (await api.get(path, params={"limit": 2})).json()
    rest = (await api.get(path, params={"limit": 2, "cursor": first["nextCursor"]})).json()
    assert [one["name"] for one in first["items"] + rest["items"]] == ["a", "b", "c"]
    assert rest["nextCursor"] is None


async def test_only_the_session_of_the_execution_uploads_files(
    api: Api, held: Held, connect: Connect, node: ServerNode
):
    assert (await held.put("a", b"1", attempt=2)).status_code == 409
    assert (await held.put("a", b"1", parcel=NOBODY)).status_code == 409
    assert (await held.put("../a", b"1")).status_code in (400, 404)
    assert (await held.put("%2e%2e/a", b"1")).status_code in (400, 404)
    assert (await held.put("a\\b", b"1")).status_code == 400
    assert (await held.put("a", b"1", kind="nonsense")).json()["field"] == "type"
    stranger = connect(authorization=f"Bearer {(await node.tenancy.keys.create(2, 'stranger', 'admin')).text}")
    assert (await held.put("a", b"1")).status_code == 200
    path = f"/api/v1/executions/{held.execution}/artifacts"
    assert (await stranger.get(path)).status_code == 404
    assert (await stranger.get(f"{path}/a")).status_code == 404
    assert (await api.get(f"{path}/b")).status_code == 404
    reader = connect(authorization=f"Bearer {await key_for(node, 'worker')}")
    assert (await reader.get(f"{path}/a")).status_code == 403


async def test_a_file_over_the_limit_is_refused_and_cleared_away(
    api: Api, held: Held, node: ServerNode, env: Env, tmp_path
):
    answer = await held.put("large", pieces(b"x" * 600_000, b"x" * 600_000))
    assert answer.status_code == 413
    assert "1000000" in answer.json()["detail"]
    assert (await api.get(f"/api/v1/executions/{held.execution}/artifacts")).json()["items"] == []
    await held.put("small", b"1")
    await held.put("small", b"22")
    files = lambda: sorted(len(path.read_bytes()) for path in (tmp_path / "kept").rglob("*") if path.is_file())  # noqa: E731
    assert len(files()) == 3

    env.clock.advance(artifacts.LONGEST_UPLOAD + 1)
    await node.part(ArtifactsPart).sweeper.step()

    assert files() == [2]
    assert (await api.get(f"/api/v1/executions/{held.execution}/artifacts/small")).content == b"22"


async def test_contents_that_cannot_be_deleted_do_not_stop_the_deletion_of_others(node: ServerNode, monkeypatch):
    sweeper, removed = node.part(ArtifactsPart).sweeper, []

    async def remove(location: str) -> None:
        if location < "c":
            raise PermissionError(location)
        removed.append(location)

    monkeypatch.setattr(engine, "BATCH", 2)
    monkeypatch.setattr(sweeper._place, "remove", remove)
    for location in "abcd":
        await node.store.write(lambda location=location: artifacts.record_location(location, 0))
    for _ in range(4):
        await sweeper.step()

    assert removed == ["c", "d"]
    assert await node.store.read(lambda: artifacts.litter(0, 10)) == [(0, "a"), (0, "b")]


async def test_a_missing_content_is_reported(api: Api, held: Held, tmp_path: Path):
    await held.put("a", b"1")
    (file,) = (path for path in (tmp_path / "kept").rglob("*") if path.is_file())
    file.unlink()
    answer = await api.get(f"/api/v1/executions/{held.execution}/artifacts/a")
    assert answer.status_code == 410
    assert "the same storage of artifacts" in answer.json()["remedy"]


async def test_an_unreachable_storage_is_reported(api: Api, held: Held, node: ServerNode, monkeypatch):
    await held.put("a", b"1")

    async def away(location: str) -> AsyncIterator[bytes]:
        raise RuntimeError("connection refused")
        yield b""

    monkeypatch.setattr(node.part(ArtifactsPart).artifacts.place, "read", away)
    answer = await api.get(f"/api/v1/executions/{held.execution}/artifacts/a")
    assert (answer.status_code, "cannot read from the storage" in answer.json()["detail"]) == (503, True)


async def test_an_upload_that_takes_too_long_is_refused(api: Api, held: Held, env: Env):
    async def slowly() -> AsyncIterator[bytes]:
        yield b"1"
        env.clock.advance(artifacts.LONGEST_UPLOAD)
        yield b"2"

    answer = await held.put("slow", slowly())
    assert (answer.status_code, "longer than 6h" in answer.json()["detail"]) == (413, True)
    assert (await api.get(f"/api/v1/executions/{held.execution}/artifacts")).json()["items"] == []


async def test_contents_that_cannot_be_removed_do_not_keep_others_from_being_removed(
    held: Held, node: ServerNode, env: Env, monkeypatch
):
    monkeypatch.setattr(engine, "BATCH", 2)
    for name in ("a", "b", "c"):
        await held.put(name, b"1")
        await held.put(name, b"2")
        env.clock.advance(1)
    sweeper, tried = node.part(ArtifactsPart).sweeper, []
    remove = node.part(ArtifactsPart).sweeper._place.remove

    async def fails(location: str) -> None:
        tried.append(location)
        if not location.endswith("c"):
            raise PermissionError(location)
        await remove(location)

    monkeypatch.setattr(sweeper._place, "remove", fails)
    env.clock.advance(artifacts.LONGEST_UPLOAD + 1)
    waits = [await sweeper.step() for _ in range(3)]
    assert [location[-1] for location in tried] == ["a", "b", "c", "a", "b"]
    assert waits == [engine.PACE, engine.ROUND_EVERY, engine.PACE]
