"""Enrolment: a token gives one worker its own key, restricted to the token's queues."""

from pathlib import Path

import httpx2
import pytest

from horae.cli.fleet.worker import enrolled
from horae.config.server_settings import Secret
from horae.config.settings import Settings
from horae.engine.server_node import ServerNode
from horae.env import SECOND, VirtualClock, system_env
from horae.errors import HoraeError
from horae.server.run import serve
from horae.store.driver import one
from horae.store.script import Statement
from tests.security.people import Api, both

PRESENCE = {"protocol": 1, "worker": "w", "concurrency": 1}


async def token(api: Api, **asked: object) -> str:
    made = await api.post("/api/v1/enrolments", json=asked)
    assert made.status_code == 201, made.text
    text: str = made.json()["token"]
    return text


async def redeem(api: Api, text: str) -> httpx2.Response:
    """Redeem a token as a worker without a credential."""
    return await api.post("/api/v1/enrolments/redeem", json={"token": text, "name": "w"}, headers={"authorization": ""})


@both
async def test_a_token_is_exchanged_for_a_workers_key_once(api: Api):
    text = await token(api)

    first, second = await redeem(api, text), await redeem(api, text)

    assert first.status_code == 201
    assert first.json()["role"] == "worker"
    assert second.status_code == 401
    bearer = {"authorization": f"Bearer {first.json()['key']}"}
    assert (await api.get("/api/v1/me", headers=bearer)).json()["role"] == "worker"
    assert (await api.get("/api/v1/jobs", headers=bearer)).status_code == 403


async def test_a_token_expires(api: Api, clock: VirtualClock):
    text = await token(api, expiresIn="10m")
    clock.advance(600 * SECOND)
    assert (await redeem(api, text)).status_code == 401


async def test_a_guessed_token_is_refused(api: Api):
    assert (await redeem(api, "he_guess")).status_code == 401


async def test_a_workers_key_is_bound_to_the_queues_of_its_token(api: Api):
    made = (await redeem(api, await token(api, queues=["gpu"]))).json()
    assert made["queues"] == ["gpu"]


async def test_only_administrators_enrol(api: Api):
    key = (await api.post("/api/v1/keys", json={"name": "e", "role": "editor"})).json()["key"]
    refused = await api.post("/api/v1/enrolments", json={}, headers={"authorization": f"Bearer {key}"})
    assert refused.status_code == 403


async def test_the_store_contains_no_token(api: Api, node: ServerNode):
    text = await token(api)
    rows = await node.store.read(one(Statement("all", "SELECT * FROM enrolments")))
    assert text not in repr(rows)
    assert text[3:].encode() not in repr(rows).encode()


async def test_the_audit_log_records_enrolments(api: Api):
    made = (await redeem(api, await token(api))).json()
    rows = (await api.get("/api/v1/audit/log")).json()["items"]
    assert [row["action"] for row in rows] == ["enrolments.redeem", "enrolments.create"]
    assert rows[0]["target"] == f"keys/{made['keyId']}"
    assert made["key"] not in str(rows)


@pytest.mark.parametrize("span", ["0s", "31d", "x"])
async def test_an_invalid_lifetime_is_refused(api: Api, span: str):
    refused = await api.post("/api/v1/enrolments", json={"expiresIn": span})
    assert refused.status_code == 400
    assert refused.json()["field"] == "expiresIn"


async def test_a_worker_keeps_its_key_and_enrols_once(tmp_path: Path):
    node = await ServerNode.open(system_env(), "sqlite://")
    serving = await serve(node, "127.0.0.1", 0)
    made = await node.fleet.enrolments.create(
        (await node.tenancy.keys.check(str(await node.tenancy.keys.ensure_admin_key()))), (), SECOND * 60
    )
    settings = Settings(data=tmp_path / "state", enrol=Secret(made.text))
    try:
        key = await enrolled(settings, [serving.url])
        again = await enrolled(settings, [serving.url])  # like after a restart, with the same command line
        assert key == again
        assert settings.worker_key_file.read_text().strip() == key
        assert settings.worker_key_file.stat().st_mode & 0o077 == 0
        with pytest.raises(HoraeError, match="not valid"):
            await enrolled(Settings(data=tmp_path / "other", enrol=Secret(made.text)), [serving.url])
        assert not (tmp_path / "other" / "worker.key").exists()
    finally:
        await serving.stop()
