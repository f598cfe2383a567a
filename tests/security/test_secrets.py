"""Secrets: only the executions that use them ever get a value, in any form."""

import asyncio
import contextlib
import json
import sys
import zlib
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import msgspec
import pytest
import structlog

from horae.engine.server_node import ServerNode
from horae.engine.settings import EngineSettings
from horae.env import SECOND, system_env, virtual_env
from horae.errors import Conflict, MasterKeyMissing
from horae.model.base.webhook_signature import sign
from horae.model.fleet.protocol import Answer, Exchange, Register
from horae.model.fleet.submit import Submit
from horae.outbound.allow import AllowedAddresses
from horae.server.app import Application
from horae.store.driver import one
from horae.store.schema import all_tables as schema
from horae.store.script import Statement
from horae.store.tenancy import namespaces
from horae.worker.gateway_transport import GatewayTransport
from horae.worker.settings import WorkerSettings
from horae.worker.worker import WorkerRuntime
from tests.security import leaks
from tests.security.leaks import CANARY, found_in
from tests.waiting import eventually
from tests.worker.web import web as serving

Api = httpx2.AsyncClient
OLD, NEW = (b64encode(bytes([n]) * 32).decode() for n in (1, 2))
ENDED = {"success", "failed", "cancelled", "skipped"}
both = pytest.mark.parametrize("store", ["sqlite", "postgresql"])


@asynccontextmanager
async def installed(url: str, tmp_path: Any, keys: str = OLD) -> AsyncIterator[tuple[ServerNode, Api]]:
    """Run a server with a master key, and return its administrator."""
    settings = EngineSettings(master_keys=keys, artifacts=str(tmp_path / "artifacts"))
    node = await ServerNode.open(system_env(), url, settings)
    await node.start()
    key = "k" * 40
    await node.tenancy.keys.ensure_admin_key(key)
    transport = httpx2.ASGITransport(app=Application(node))
    async with Api(transport=transport, base_url="http://h", headers={"authorization": f"Bearer {key}"}) as api:
        yield node, api
    await node.stop()


@asynccontextmanager
async def working(node: ServerNode, **settings: Any) -> AsyncIterator[None]:
    """Run a worker beside the node, with jobs that leak."""
    allowed = AllowedAddresses.read(["127.0.0.1"])
    worker = WorkerRuntime(
        node.env, WorkerSettings(name="w", outbound=allowed, **settings), GatewayTransport(node), leaks.app
    )
    running = asyncio.ensure_future(worker.run())
    yield
    worker.abort()
    await running


def url_of(store: str, request: pytest.FixtureRequest, tmp_path: Any) -> str:
    return f"sqlite:///{tmp_path}/horae.db" if store == "sqlite" else request.getfixturevalue("postgres_url")


async def define(api: Api, *documents: dict[str, Any]) -> None:
    for document in documents:
        answer = await api.post("/api/v1/jobs", json={"retries": 0, **document})
        assert answer.status_code == 201, answer.text


async def ran(api: Api, job: str, **params: Any) -> dict[str, Any]:
    """Return a finished execution, as the API shows it."""
    made = await api.post("/api/v1/executions", json={"job": job, "params": params})
    place = f"/api/v1/executions/{made.json()['executionId']}"
    await eventually(lambda: _ended(api, place), within=50)
    shown: dict[str, Any] = (await api.get(place)).json()
    return shown


async def _ended(api: Api, place: str) -> bool:
    return (await api.get(place)).json()["status"] in ENDED


async def everything_of(api: Api, executions: list[dict[str, Any]]) -> dict[str, bytes]:
    """Return everything that the API shows, by route."""
    paths = ["/api/v1/jobs", "/api/v1/executions?limit=200", "/api/v1/dlq?limit=200", "/api/v1/dlq/groups", "/metrics"]
    paths += ["/api/v1/audit/log?limit=200", "/api/v1/secrets", "/api/v1/secrets/canary", "/api/v1/workers"]
    for job in {made["jobId"] for made in executions}:
        paths += [f"/api/v1/jobs/{job}{part}" for part in ("", "/versions", "/explain", "/versions/1")]
    for made in executions:
        place = f"/api/v1/executions/{made['executionId']}"
        paths += [f"{place}{part}" for part in ("", "/logs?limit=1000", "/attempts", "/artifacts", "/explain")]
        artifacts = (await api.get(f"{place}/artifacts")).json()["items"]
        paths += [artifact["url"] for artifact in artifacts]
    answers = {path: await api.get(path) for path in paths}
    assert [path for path, answer in answers.items() if answer.status_code not in (200, 404)] == []
    return {path: answer.content for path, answer in answers.items()}


async def dumped(node: ServerNode) -> bytes:
    """Return every value of every table."""
    parts = []
    for table in schema.metadata.sorted_tables:
        for row in await node.store.read(one(Statement(f"dump_{table.name}", f"SELECT * FROM {table.name}"))):
            parts += [plain(value) if isinstance(value, bytes) else str(value).encode() for value in row]
    return b"\n".join(parts)


def plain(value: bytes) -> bytes:
    """Return compressed values as a reader of the database would see them after decompression."""
    with contextlib.suppress(zlib.error):
        return zlib.decompress(value)
    return value


@both
async def test_a_canary_secret_is_found_in_no_output(store, request, tmp_path, capfd, caplog):
    """Logs, errors, tracebacks, results, checkpoints, steps, names, events, audit, metrics, views, dumps, output."""
    command = {"command": [sys.executable, "-c", leaks.SCRIPT, "${params.code}"], "params": {"code": "0"}}
    env = {"TOKEN": "secret://canary", "DSN": "pg://app:secret://canary@db", "SHOWN": "a plain value"}
    http = {"headers": {"X-Token": "secret://canary"}, "body": {"t": ["secret://canary"]}, "expect": ["200"]}
    told: list[Any] = []
    with structlog.testing.capture_logs() as logs:
        async with (
            installed(url_of(store, request, tmp_path), tmp_path) as (node, api),
            serving(
                lambda ask: (int(ask.path[1:4]), {}, b" ".join([ask.body, ask.headers["x-token"].encode()]))
            ) as web,
            working(node),
        ):
            node.base.hints.listen(told.append)
            assert (await api.put("/api/v1/secrets/canary", json={"value": CANARY})).status_code == 201
            await define(api, *leaks.app.definitions(), {"name": "leak-command", **command, "env": env})
            await define(api, {"name": "leak-http", "http": {**http, "url": web.url + "/${params.at}/secret://canary"}})
            await define(api, {"name": "never", "command": "x", "queue": "nobody", "env": env})
            done = [await ran(api, f"leak-{kind}", how=how) for kind in ("async", "thread", "process") for how in HOWS]
            done += [await ran(api, "leak-command", code=code) for code in ("0", "3")]
            done += [await ran(api, "leak-http", at=status) for status in ("200", "500")]
            made = await api.post("/api/v1/executions", json={"job": "never"})
            await api.patch("/api/v1/jobs/never", json={"env": {**env, "MORE": "secret://canary"}})
            diff = (await api.get("/api/v1/jobs/never/versions/1/diff/2")).content

            sinks = await everything_of(
                api, [*done, (await api.get(f"/api/v1/executions/{made.json()['executionId']}")).json()]
            )
            sinks |= {"diff": diff, "events": repr(told).encode(), "store": await dumped(node)}
    if store == "sqlite":
        sinks["file"] = b"".join(path.read_bytes() for path in tmp_path.glob("horae.db*"))
    sinks |= {"artifacts": b"".join(p.read_bytes() for p in (tmp_path / "artifacts").rglob("*") if p.is_file())}
    sinks["other handlers"] = caplog.text.encode()
    sinks |= {"logs": repr(logs).encode(), "output": "".join(capfd.readouterr()).encode()}

    assert {sink: found for sink, data in sinks.items() if (found := found_in(data))} == {}
    expected = [*(["success", "failed", "failed", "success"] * 3), "success", "failed", "success", "failed"]
    assert [
        execution["status"] for execution in done
    ] == expected  # the hidden values were used, and the executions worked
    assert found_in(web.asked[0].body + web.asked[0].headers["x-token"].encode())
    everything = b"".join(sinks.values())
    assert everything.count(b"***") > 100
    assert b"secret://canary" in sinks["diff"]
    assert b"a plain value" in everything
    assert b"there: ***" in sinks["other handlers"]
    parts = [part for part in (CANARY[:7], CANARY[-6:]) if part.encode() in everything]  # what was cut leaves none
    assert parts == []


HOWS = ("", "fail", "class", "large")


async def test_params_cannot_refer_to_secrets(tmp_path):
    script = "import os, sys; print(sys.argv[1], os.environ['A'], os.environ['HORAE_PARAMS'])"
    command = {
        "command": [sys.executable, "-c", script, "${params.x}"],
        "env": {"A": "${params.x}", "B": "secret://canary"},
    }
    http = {"url": "http://127.0.0.1:1/", "headers": {"A": "${params.x}", "B": "secret://canary"}, "body": "${params}"}
    async with (
        installed("sqlite://", tmp_path) as (node, api),
        serving(lambda ask: (200, {}, ask.body + ask.headers["a"].encode())) as web,
        working(node),
    ):
        await api.put("/api/v1/secrets/canary", json={"value": CANARY})
        await define(
            api, {"name": "c", **command}, {"name": "h", "http": {**http, "url": f"{web.url}/?q=${{params.x}}"}}
        )
        ran_command = await ran(api, "c", x="secret://canary")
        ran_http = await ran(api, "h", x="secret://canary")
        logs = (await api.get(f"/api/v1/executions/{ran_command['executionId']}/logs")).json()["items"]

    assert [line["text"] for line in logs] == ['secret://canary secret://canary {"x":"secret://canary"}']
    assert ran_http["result"]["body"] == '{"x":"secret://canary"}secret://canary'
    assert web.asked[0].path == "/?q=secret://canary"


async def test_a_deleted_secret_fails_the_execution_and_an_unreadable_one_lets_it_wait(tmp_path):
    url = f"sqlite:///{tmp_path}/horae.db"
    async with installed(url, tmp_path) as (node, api), working(node):
        await api.put("/api/v1/secrets/canary", json={"value": CANARY})
        await api.put("/api/v1/secrets/other", json={"value": CANARY})
        await define(api, {"name": "c", "command": "true", "env": {"A": "secret://canary"}})
        await define(
            api, {"name": "d", "command": "true", "env": {"A": "secret://other"}}, {"name": "e", "command": "true"}
        )
        assert (await ran(api, "c"))["status"] == "success"
        await api.delete("/api/v1/secrets/other?force=true")
        gone = await ran(api, "d")
    async with installed(url, tmp_path, keys=NEW) as (node, api), working(node):
        refused = await api.put("/api/v1/secrets/canary", json={"value": "another value"})
        waits = (await api.post("/api/v1/executions", json={"job": "c"})).json()["executionId"]
        assert (await ran(api, "e"))["status"] == "success", "what needs no secret runs meanwhile"
        explained = (await api.get(f"/api/v1/executions/{waits}/explain")).json()
        rotated = await api.post("/api/v1/master-key/rotation")
    async with installed(url, tmp_path) as (node, api), working(node):
        await eventually(lambda: _ended(api, f"/api/v1/executions/{waits}"), within=50)
        ended = (await api.get(f"/api/v1/executions/{waits}")).json()

    assert (gone["error"]["type"], gone["error"]["kind"]) == ("SecretUnavailable", "platform")
    assert 'There is no secret "other"' in gone["error"]["message"]
    assert "no-key" in {blocker["gate"] for blocker in explained["blockers"]}
    assert (ended["status"], ended["attempt"]) == ("success", 1)
    assert (refused.status_code, refused.json()["type"].rpartition(":")[2]) == (409, "master-key")
    assert rotated.status_code == 409
    assert 'The secret "canary" is left as it is.' in rotated.json()["detail"]


@both
async def test_a_rotation_seals_everything_with_the_first_key_and_the_old_one_can_go(store, request, tmp_path):
    url = url_of(store, request, tmp_path)
    async with installed(url, tmp_path) as (node, api):
        for name in ("a", "b"):
            await api.put(f"/api/v1/secrets/{name}", json={"value": f"value of {name}"})
    async with installed(url, tmp_path, keys=f"{NEW},{OLD}") as (node, api):
        await api.put("/api/v1/secrets/c", json={"value": "value of c"})
        assert (await node.base.secrets.grant(1, ["a", "c"])).values == {"a": "value of a", "c": "value of c"}
        assert (await api.post("/api/v1/master-key/rotation")).json() == {"resealed": 2, "current": 1}
        assert (await api.post("/api/v1/master-key/rotation")).json() == {"resealed": 0, "current": 3}
    async with installed(url, tmp_path, keys=NEW) as (node, api):
        given = await node.base.secrets.grant(1, ["a", "b", "c"])
        assert (given.values["b"], given.problems) == ("value of b", {})
        assert b"value of" not in await dumped(node)


async def granted(node: ServerNode, namespace: int, *, secrets: bool = True) -> Answer:
    """Return the secrets that a worker of a namespace gets with one exchange."""
    presence = Register(protocol=2, worker=f"w{namespace}{secrets}", secrets=secrets)
    session = (await node.gateway.register(namespace, presence)).session_id
    await node.base.directory.step()
    told = await node.gateway.exchange(namespace, session, Exchange(channel=0, n=1, free=10))
    return msgspec.json.decode(told, type=Answer)


async def test_values_are_sent_only_with_grants_that_refer_to_them():
    node = await ServerNode.open(virtual_env(), "sqlite://", EngineSettings(master_keys=OLD))
    await node.prepare()
    await node.tenancy.namespaces.create({"name": "other"})
    found = await node.store.read(lambda: namespaces.by_name("other"))
    assert found is not None
    other = found.id
    for namespace, value in ((1, "of the first"), (other, "of the other")):
        await node.base.secrets.put(namespace, "token", value)
        await node.base.secrets.put(namespace, "unused", "nobody's value")
        for name, env in (("plain", {}), ("uses", {"A": "secret://token"})):
            await node.definitions.jobs.create(namespace, {"name": name, "command": "x", "env": env})

    async def submit(namespace: int, *names: str) -> None:
        await node.submitter.submit(namespace, [Submit(job=name) for name in names], origin="submit")

    await submit(1, "plain")
    plain = await granted(node, 1)
    await submit(1, "uses")
    nothing = await granted(node, 1, secrets=False)
    foreign = await granted(node, other)
    own = await granted(node, 1)
    await submit(other, "uses")
    others = await granted(node, other)

    assert (len(plain.slices), plain.secrets) == (1, {})
    assert (nothing.slices, nothing.secrets) == ([], {})
    assert (foreign.slices, foreign.secrets) == ([], {})
    assert (len(own.slices), own.secrets) == (1, {"token": "of the first"})
    assert (len(others.slices), others.secrets) == (1, {"token": "of the other"})
    await node.stop()


async def test_a_worker_provides_only_allowed_secrets(tmp_path, monkeypatch):
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "token").write_text("from a file\n")
    (tmp_path / "files" / "tiny").write_text("ab")
    monkeypatch.setenv("ALLOWED", "from the environment")
    monkeypatch.setenv("DENIED", "not for jobs")
    script = "import os; v = os.environ['A']; print(len(v), v, v[::-1])"
    async with (
        installed("sqlite://", tmp_path) as (node, api),
        working(node, secret_env=("ALLOWED", "MISSING"), secret_files=str(tmp_path / "files")),
    ):
        said = {}
        for ref in ("env/ALLOWED", "file/token", "env/DENIED", "env/MISSING", "file/none", "file/tiny"):
            name = ref.replace("/", "-")
            await define(
                api, {"name": name, "command": [sys.executable, "-c", script], "env": {"A": f"secret://{ref}"}}
            )
            done = await ran(api, name)
            logs = (await api.get(f"/api/v1/executions/{done['executionId']}/logs")).json()["items"]
            said[ref] = done["error"]["message"] if done.get("error") else [line["text"] for line in logs]

    assert said["env/ALLOWED"] == [f"20 *** {'from the environment'[::-1]}"]
    assert said["file/token"] == [f"11 *** {'from a file'[::-1]}"]
    assert "HORAE_SECRET_ENV=DENIED" in said["env/DENIED"]
    assert "has no variable MISSING" in said["env/MISSING"]
    assert "cannot be read" in said["file/none"]
    assert "fewer than 4 characters" in said["file/tiny"]


async def test_without_a_master_key_setting_a_secret_explains_how_to_make_one(tmp_path):
    async with installed("sqlite://", tmp_path, keys="") as (node, api):
        refused = await api.put("/api/v1/secrets/canary", json={"value": CANARY})
        assert (refused.status_code, "openssl rand" in refused.json()["remedy"]) == (409, True)
        with pytest.raises(MasterKeyMissing):
            await node.base.secrets.put(1, "canary", CANARY)
        assert (await api.get("/api/v1/secrets")).json()["items"] == []
        assert issubclass(MasterKeyMissing, Conflict)
        assert found_in(json.dumps((await api.get("/api/v1/audit/log")).json()).encode()) == []


async def delivered(node: ServerNode, api: Api, made: dict[str, Any], secret: str, id: str) -> int:
    """Return the answer of a webhook to a message signed with a secret."""
    at = node.env.now() // SECOND
    headers = {"webhook-id": id, "webhook-timestamp": str(at), "webhook-signature": sign(secret, id, at, b"{}")}
    return (await api.post(made["url"][made["url"].index("/api/") :], content=b"{}", headers=headers)).status_code


async def test_webhook_secrets_are_sealed_rotated_and_may_be_references(tmp_path):
    url, shared = f"sqlite:///{tmp_path}/horae.db", "a secret that somebody shares with us"
    hooks: dict[str, dict[str, Any]] = {}
    async with installed(url, tmp_path) as (node, api):
        await api.put("/api/v1/secrets/shared", json={"value": shared})
        await api.put("/api/v1/secrets/short", json={"value": "short"})
        triggers = [{"name": name, "webhook": True} for name in ("made", "named", "none")]
        await define(api, {"name": "j", "command": "x", "triggers": triggers})
        for name, body in (("made", {}), ("named", {"secret": "secret://shared"})):
            hooks[name] = (await api.post(f"/api/v1/jobs/j/triggers/{name}/webhook", json=body)).json()
        for wrong in ("secret://nothing", "secret://short", "secret://env/HOME"):
            refused = await api.post("/api/v1/jobs/j/triggers/none/webhook", json={"secret": wrong})
            assert refused.status_code == 400, refused.text
        own = hooks["made"]["secret"]
        assert await delivered(node, api, hooks["made"], own, "m1") == 202
        assert await delivered(node, api, hooks["named"], shared, "m2") == 202
        assert await delivered(node, api, hooks["named"], own, "m3") == 401
        assert (await api.delete("/api/v1/secrets/shared")).json()["jobs"] == ["j"]
        dump = await dumped(node)
    assert hooks["named"]["secret"] == "secret://shared"
    assert own.encode() not in dump
    assert shared.encode() not in dump
    async with installed(url, tmp_path, keys=NEW) as (node, api):
        assert await delivered(node, api, hooks["made"], own, "m4") == 503
    async with installed(url, tmp_path, keys=f"{NEW},{OLD}") as (node, api):
        assert (await api.post("/api/v1/master-key/rotation")).json()["resealed"] == 3
    async with installed(url, tmp_path, keys=NEW) as (node, api):
        assert await delivered(node, api, hooks["made"], own, "m5") == 202
        assert await delivered(node, api, hooks["named"], shared, "m6") == 202
