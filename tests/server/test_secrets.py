"""Secrets over HTTP: set, listed, used and deleted; values are never answered."""

from base64 import b64encode

import pytest

from horae.engine.server_node import ServerNode
from horae.engine.settings import EngineSettings
from horae.store.contract import Store
from horae.store.open import open_store_driver
from tests.server.conftest import Api, Connect, key_for

KEY, OTHER = (b64encode(bytes([n]) * 32).decode() for n in (1, 2))
VALUE = "correct horse battery"


@pytest.fixture
async def node(env):
    driver = await open_store_driver("sqlite://", env)
    await driver.migrate()
    node = ServerNode(env, Store(driver, env), EngineSettings(master_keys=KEY))
    await node.prepare()
    yield node
    await node.stop()


async def test_a_secret_is_set_changed_listed_and_removed(api: Api):
    made = await api.put("/api/v1/secrets/db", json={"value": VALUE})
    assert (made.status_code, made.headers["location"]) == (201, "/api/v1/secrets/db")
    changed = await api.put("/api/v1/secrets/db", json={"value": VALUE + "!"})
    await api.put("/api/v1/secrets/api-key", json={"value": "another one"})
    listed = await api.get("/api/v1/secrets")

    assert (changed.status_code, changed.json()["version"]) == (200, 2)
    assert [one["name"] for one in listed.json()["items"]] == ["api-key", "db"]
    for answer in (made, changed, listed, await api.get("/api/v1/secrets/db")):
        assert VALUE not in answer.text
        assert "value" not in answer.json()
    assert (await api.delete("/api/v1/secrets/db")).status_code == 204
    assert (await api.delete("/api/v1/secrets/db")).status_code == 404
    assert (await api.get("/api/v1/secrets/db")).status_code == 404


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("db", {"value": "abc"}),
        ("db", {"value": "a  \n"}),
        ("db", {"value": "v" * 32_769}),
        ("db", {"value": 7}),
        ("db", {"value": "nul\0nul"}),
        ("db", {"text": VALUE}),
        ("db", {}),
        ("-db", {"value": VALUE}),
        ("env", {"value": VALUE}),
        ("a b", {"value": VALUE}),
    ],
)
async def test_an_invalid_secret_is_refused_without_showing_it(api: Api, name, body):
    refused = await api.put(f"/api/v1/secrets/{name}", json=body)

    assert refused.status_code == 400
    assert refused.json()["remedy"]
    assert VALUE not in refused.text
    assert "nul" not in refused.json()["detail"]


async def test_a_job_refers_to_existing_secrets_and_is_named_when_one_would_be_deleted(api: Api):
    body = {"name": "report", "command": "run", "env": {"PASSWORD": "secret://db-pass"}}
    await api.put("/api/v1/secrets/db-password", json={"value": VALUE})
    refused = await api.post("/api/v1/jobs", json=body)
    assert (refused.status_code, refused.json()["field"]) == (400, "secrets")
    assert 'Did you mean "db-password"?' in refused.json()["remedy"]

    await api.put("/api/v1/secrets/db-pass", json={"value": VALUE})
    assert (await api.post("/api/v1/jobs", json=body)).status_code == 201
    flow = {"name": "flow", "workflow": {"steps": [{"name": "a", "command": "x", "env": {"T": "secret://nothing"}}]}}
    assert (await api.post("/api/v1/jobs", json=flow)).json()["field"] == "secrets"
    elsewhere = {"name": "b", "command": "x", "env": {"T": "secret://env/TOKEN secret://file/token"}}
    assert (await api.post("/api/v1/jobs", json=elsewhere)).status_code == 201

    assert (await api.get("/api/v1/secrets/db-pass")).json()["jobs"] == ["report"]
    kept = await api.delete("/api/v1/secrets/db-pass")
    assert (kept.status_code, kept.json()["jobs"]) == (409, ["report"])
    assert "--force" in kept.json()["remedy"]
    flow["workflow"]["steps"][0]["env"] = body["env"]
    assert (await api.post("/api/v1/jobs", json=flow)).status_code == 201
    assert (await api.delete("/api/v1/secrets/db-pass?force=true")).status_code == 204
    for name in ("report", "flow"):
        assert (await api.patch(f"/api/v1/jobs/{name}", json={"description": "still"})).status_code == 200


async def test_only_administrators_set_secrets_and_only_editors_list_them(connect: Connect, node: ServerNode, api: Api):
    await api.put("/api/v1/secrets/db", json={"value": VALUE})
    expected = {"worker": (403, 403, 403), "viewer": (403, 403, 403), "operator": (403, 403, 403)}
    expected |= {"editor": (200, 403, 403), "admin": (200, 200, 200)}
    for role, statuses in expected.items():
        who = connect(authorization=f"Bearer {await key_for(node, role)}")  # type: ignore[arg-type]
        got = (
            (await who.get("/api/v1/secrets")).status_code,
            (await who.put("/api/v1/secrets/db", json={"value": VALUE})).status_code,
            (await who.post("/api/v1/master-key/rotation")).status_code,
        )
        assert got == statuses, role
