"""Rates of keys: a client that sends too many requests is told when to retry, and others are not affected."""

import pytest

from horae.engine.server_node import ServerNode
from horae.engine.settings import EngineSettings
from horae.env import SECOND, VirtualClock
from horae.model.admission.rate import Rate
from tests.security.people import Api, both, client

ME = "/api/v1/me"


async def key(api: Api, **more: object) -> dict[str, str]:
    made = await api.post("/api/v1/keys", json={"name": "k", "role": "admin", **more})
    assert made.status_code == 201, made.text
    told: dict[str, str] = made.json()
    return told


async def statuses(api: Api, count: int, path: str = ME) -> list[int]:
    return [(await api.get(path)).status_code for _ in range(count)]


@both
async def test_a_key_is_limited_by_its_rate(node: ServerNode, api: Api, clock: VirtualClock):
    made = await key(api, rate="3/1s")
    assert made["rate"] == "3/1s"
    async with client(node, made["key"]) as rated:
        assert await statuses(rated, 5) == [200, 200, 200, 429, 429]
        refused = await rated.get(ME)
        assert (refused.headers["retry-after"], refused.json()["type"]) == ("1", "urn:horae:too-often")
        assert refused.json()["remedy"]
        assert await statuses(rated, 1, "/api/v1/nowhere") == [429]
        assert await statuses(api, 5) == [200] * 5
        clock.advance(SECOND // 2)
        assert await statuses(rated, 2) == [200, 429]
        clock.advance(60 * SECOND)
        assert await statuses(rated, 4) == [200, 200, 200, 429]
    assert node.tenancy.request_rates.refused == 6
    shown = [one["rate"] for one in (await api.get("/api/v1/keys")).json()["items"] if one["name"] == "k"]
    assert shown == ["3/1s"]


async def test_a_refused_request_names_the_waiting_time(node: ServerNode, api: Api):
    async with client(node, (await key(api, rate="1/1h"))["key"]) as rated:
        assert await statuses(rated, 2) == [200, 429]
        assert (await rated.get(ME)).headers["retry-after"] == "3600"


async def test_browsers_and_successors_of_a_key_share_its_rate(node: ServerNode, api: Api):
    made = await key(api, rate="4/1h")
    async with client(node, made["key"]) as rated, client(node) as browser:
        code = (await rated.post("/api/v1/sign-in/codes")).json()["code"]
        assert (await browser.post("/api/v1/sign-in", json={"code": code})).status_code == 200
        assert await statuses(browser, 2) == [200, 200]
        assert await statuses(rated, 2) == [200, 429]
        assert await statuses(browser, 1) == [429]
    assert (await api.post(f"/api/v1/keys/{made['keyId']}/rotate", json={})).json()["rate"] == "4/1h"


async def test_exchanges_of_workers_are_not_counted(node: ServerNode, api: Api):
    text = (await key(api, role="worker", rate="1/1h"))["key"]
    async with client(node, text) as worker:
        presence = {"protocol": 1, "worker": "w", "concurrency": 1}
        session = (await worker.post("/api/v1/sessions", json=presence)).json()["sessionId"]
        for n in range(1, 4):
            answer = await worker.post(f"/api/v1/sessions/{session}/exchange", json={"channel": 0, "n": n, "free": 0})
            assert answer.status_code == 200


@pytest.mark.parametrize("text", ["", "often", "0/1s", "5", "5/0s"])
async def test_an_invalid_rate_is_refused(api: Api, text: str):
    refused = await api.post("/api/v1/keys", json={"name": "k", "role": "viewer", "rate": text})
    assert (refused.status_code, refused.json()["field"]) == (400, "rate")


class TestOfTheInstallation:
    @pytest.fixture
    def engine_settings(self) -> EngineSettings:
        return EngineSettings(request_rate=Rate(3, SECOND, 3))

    async def test_the_default_rate_applies_to_keys_without_one(self, node: ServerNode, api: Api):
        more = (await key(api, rate="100/1s"))["key"]
        assert await statuses(api, 3) == [200, 200, 429]
        async with client(node, more) as rated:
            assert await statuses(rated, 50) == [200] * 50
