"""Erasure: somebody's data goes from history, logs and files, with a receipt; that something ran stays."""

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from horae.engine.node import Node
from horae.engine.settings import EngineSettings
from horae.env import virtual_env
from horae.errors import MasterKeyMissing
from horae.model.protocol import PROTOCOL
from horae.server.app import Application
from horae.store.contract import Store
from horae.store.driver import one
from horae.store.open import open_store_driver
from horae.store.script import Statement

Api = httpx2.AsyncClient
CANARY = "canary-4711"
KEY = base64.b64encode(b"k" * 32).decode()
TABLES = ("parcels", "history", "attempts", "logs", "progress", "artifacts", "unique_keys", "steps", "signals", "blobs")
both = pytest.mark.parametrize("node", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture
async def node(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Node]:
    env = virtual_env()
    is_plain = getattr(request, "param", "sqlite") == "sqlite"
    driver = await open_store_driver("sqlite://" if is_plain else request.getfixturevalue("postgres_url"), env)
    await driver.migrate()
    node = Node(env, Store(driver, env), EngineSettings(artifacts=str(tmp_path / "artifacts"), master_keys=KEY))
    await node.prepare()
    yield node
    await node.stop()


@pytest.fixture
async def api(node: Node) -> AsyncIterator[Api]:
    key = await node.keys.ensure_admin_key()
    transport = httpx2.ASGITransport(app=Application(node))
    headers = {"authorization": f"Bearer {key}"}
    async with Api(transport=transport, base_url="http://horae.test", headers=headers) as api:
        assert (await api.post("/api/v1/jobs", json={"name": "mail", "command": ["true"]})).status_code == 201
        yield api


class Worker:
    """A worker over the API, by hand."""

    def __init__(self, api: Api) -> None:
        self._api, self._n, self._session = api, 0, ""

    async def exchange(self, **said: Any) -> dict[str, Any]:
        if not self._session:
            presence = {"protocol": PROTOCOL, "worker": "w", "queues": ["default"], "concurrency": 9}
            made = await self._api.post("/api/v1/sessions", json={**presence, "kinds": ["command"]})
            self._session = made.json()["sessionId"]
        self._n += 1
        answer = await self._api.post(
            f"/api/v1/sessions/{self._session}/exchange", json={"channel": 0, "n": self._n, "free": 9, **said}
        )
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        return told

    async def run(self, ends: str = "success") -> None:
        """Take what there is, log, leave a file, and end it."""
        for grant in (await self.exchange())["slices"]:
            place = {name: grant[name] for name in ("parcel", "attempt")}
            for item in range(grant["lo"], grant["hi"]):
                line = [1, "stdout", f"to {CANARY}"]
                await self.exchange(free=0, logs=[{**place, "item": item, "seq": 0, "lines": [line]}])
                query = {"parcel": grant["parcel"], "item": item, "attempt": grant["attempt"]}
                url = f"/api/v1/sessions/{self._session}/artifacts/letter.txt"
                assert (await self._api.put(url, params=query, content=CANARY)).status_code in (200, 201)
            more: dict[str, Any] = {"results": [{"to": CANARY}] * (grant["hi"] - grant["lo"])}
            if ends == "failed":
                more = {"error": {"type": "Bounced", "message": CANARY, "traceback": CANARY, "permanent": True}}
            outcome = {**place, "lo": grant["lo"], "hi": grant["hi"], "outcome": ends, "startedAt": [1], "endedAt": [2]}
            await self.exchange(free=0, outcomes=[{**outcome, **more}])


async def submit(api: Api, **said: Any) -> str:
    made = await api.post("/api/v1/executions", json={"job": "mail", **said})
    assert made.status_code == 201, made.text
    id: str = made.json()["executionId"]
    return id


async def erase(api: Api, **where: Any) -> dict[str, Any]:
    answer = await api.post("/api/v1/erasures", json={"where": where})
    assert answer.status_code == 200, answer.text
    done: dict[str, Any] = answer.json()
    return done


async def held(node: Node) -> str:
    return repr([await node.store.read(one(Statement(f"all {t}", f"SELECT * FROM {t}"))) for t in TABLES])


@both
@pytest.mark.parametrize("ends", ["success", "failed"])
async def test_all_that_an_execution_held_goes_and_that_it_ran_stays(api: Api, node: Node, ends: str, tmp_path: Path):
    id = await submit(api, params={"to": CANARY}, tags={"customer": CANARY}, key=CANARY)
    await Worker(api).run(ends)
    assert CANARY in await held(node)

    done = await erase(api, params={"to": CANARY})

    assert (done["erased"], done["live"]) == (1, [])
    assert CANARY not in await held(node)
    shown = (await api.get(f"/api/v1/executions/{id}")).json()
    assert shown["status"] == ends
    assert shown["completedAt"]
    assert shown["params"] == {"$erased": True}
    assert (await api.get(f"/api/v1/executions/{id}/logs")).json()["items"] == []
    assert (await api.get(f"/api/v1/executions/{id}/artifacts")).json()["items"] == []
    await node.artifact_sweeper.step()
    files = [path.read_text() for path in (tmp_path / "artifacts").rglob("*") if path.is_file()]
    assert CANARY not in "".join(files)
    assert (await erase(api, params={"to": CANARY}))["erased"] == 0


@pytest.mark.parametrize("where", [{"tag": "customer=a"}, {"key": "a"}, {"params": {"to": "a"}}])
async def test_only_what_is_meant_goes_also_from_a_parcel_of_many(api: Api, where: dict[str, Any]):
    items = [{"to": "a"}, {"to": "b"}, {"to": "c"}]
    lot = await api.post("/api/v1/executions", json={"job": "mail", "items": items})
    assert lot.status_code == 201
    mine = await submit(api, params={"to": "a"}, tags={"customer": "a"}, key="a")
    await Worker(api).run()
    await erase(api, **where)
    shown = {each["executionId"]: each for each in (await api.get("/api/v1/executions")).json()["items"]}
    assert shown[mine]["params"] == {"$erased": True}
    others = sorted(str(each.get("params")) for id, each in shown.items() if id != mine)
    gone = "{'$erased': True}" if "params" in where else "{'to': 'a'}"
    assert others == sorted([gone, "{'to': 'b'}", "{'to': 'c'}"])


async def test_what_has_not_ended_is_named_and_left(api: Api):
    id = await submit(api, params={"to": CANARY})
    assert await erase(api, params={"to": CANARY}) == {
        "lookedAt": 1,
        "erased": 0,
        "live": [id],
        "unread": [],
        "nextCursor": None,
    }
    assert (await api.get(f"/api/v1/executions/{id}")).json()["params"] == {"to": CANARY}


async def test_what_nobody_can_read_is_named_and_left(api: Api, node: Node):
    await api.post("/api/v1/jobs", json={"name": "pay", "command": ["true"], "sensitive": True})
    made = await api.post("/api/v1/executions", json={"job": "pay", "params": {"to": CANARY}})
    assert made.status_code == 201, made.text
    await Worker(api).run()
    node.sealer._keys.clear()
    node.sealer._refusal = MasterKeyMissing("gone", "give it")
    done = await erase(api, params={"to": CANARY})
    assert (done["erased"], done["unread"]) == (0, [made.json()["executionId"]])


async def test_the_receipt_is_in_the_audit_log_and_does_not_say_whose_it_was(api: Api):
    await submit(api, params={"to": CANARY})
    await Worker(api).run()
    await erase(api, params={"to": CANARY})
    rows = (await api.get("/api/v1/audit/log", params={"action": "erasures."})).json()["items"]
    assert [row["action"] for row in rows] == ["erasures.create", "erasures.receipt"]
    assert rows[1]["detail"]["erased"] == 1
    assert rows[1]["detail"]["where"].startswith("sha256:")
    assert CANARY not in str(rows)


@pytest.mark.parametrize("where", [{}, {"job": "mail"}])
async def test_what_would_erase_everything_is_refused(api: Api, where: dict[str, Any]):
    assert (await api.post("/api/v1/erasures", json={"where": where})).status_code == 400


async def test_only_administrators_erase(api: Api):
    key = (await api.post("/api/v1/keys", json={"name": "e", "role": "editor"})).json()["key"]
    body = {"where": {"tag": "a"}}
    refused = await api.post("/api/v1/erasures", json=body, headers={"authorization": f"Bearer {key}"})
    assert refused.status_code == 403
