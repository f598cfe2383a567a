"""Alerts over HTTP: rules and channels are written, tested and deleted; no secret is answered."""

import sys
import threading
from base64 import b64encode
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from horae.engine.server_node import ServerNode
from horae.engine.settings import EngineSettings
from horae.env import SECOND
from horae.features.alerts.model.channel import AnyChannel, Webhook, private_part
from horae.features.alerts.part import AlertsPart
from horae.store.contract import Store
from horae.store.open import open_store_driver
from tests.server.conftest import Api, Connect, key_for

KEY, OTHER = (b64encode(bytes([n]) * 32).decode() for n in (1, 2))
URL = "https://hooks.example.com/T000/the-token"
RULES, CHANNELS = "/api/v1/alert-rules", "/api/v1/alert-channels"
HOOK = {"name": "ops", "kind": "webhook", "url": URL}
RULE = {"name": "old", "kind": "queue-age", "after": "1m", "channels": ["ops"]}


@pytest.fixture
async def node(env):
    driver = await open_store_driver("sqlite://", env)
    await driver.migrate()
    node = ServerNode(env, Store(driver, env), EngineSettings(master_keys=KEY))
    await node.prepare()
    yield node
    await node.stop()


async def test_the_secrets_of_a_channel_are_not_answered(api: Api, node: ServerNode):
    made = await api.post(CHANNELS, json=HOOK)
    assert (made.status_code, made.headers["location"]) == (201, f"{CHANNELS}/ops")
    assert made.json()["to"] == {"url": "https://hooks.example.com/...", "headers": []}
    secret = made.json()["secret"]
    assert secret.startswith("whsec_")
    changed = await api.put(f"{CHANNELS}/ops", json={"kind": "webhook", "description": "on call"})
    assert (changed.status_code, changed.json()["version"], changed.json()["secret"]) == (200, 2, None)
    for answer in (changed, await api.get(CHANNELS), await api.get(f"{CHANNELS}/ops")):
        assert secret not in answer.text
        assert "the-token" not in answer.text
    assert await node.part(AlertsPart).channels.opened(1, "ops") == Webhook(
        description="on call", url=URL, secret=secret
    )
    log = (await api.get("/api/v1/audit/log?limit=100")).text
    assert "alert-channels.put" in log
    assert "the-token" not in log

    stale = await api.put(f"{CHANNELS}/ops", json=HOOK, headers={"if-match": '"1"'})
    assert (stale.status_code, (await api.post(CHANNELS, json=HOOK)).status_code) == (412, 409)
    await api.put("/api/v1/secrets/hook", json={"value": URL})
    await api.post(CHANNELS, json={"name": "by-name", "kind": "webhook", "url": "secret://hook"})
    used = await api.delete("/api/v1/secrets/hook")
    assert (used.status_code, '"by-name"' in used.json()["detail"]) == (409, True)
    assert (await api.delete("/api/v1/secrets/hook?force=true")).status_code == 204
    missing = {"name": "x", "kind": "webhook", "url": "secret://nothing"}
    assert (await api.post(CHANNELS, json=missing)).status_code == 400


async def test_a_rotation_seals_channels_too(api: Api, node: ServerNode, monkeypatch):
    await api.post(CHANNELS, json=HOOK)
    monkeypatch.setattr(node.base.sealer, "_text", f"{OTHER},{KEY}")
    await node.base.sealer.prepare()
    assert (await api.post("/api/v1/master-key/rotation")).json() == {"resealed": 1, "current": 0}
    assert private_part(await node.part(AlertsPart).channels.opened(1, "ops"))["url"] == URL


async def test_a_rule_is_written_paused_and_removed(api: Api, node: ServerNode):
    refused = await api.post(RULES, json=RULE)
    assert (refused.status_code, refused.json()["field"]) == (400, "channels")
    await api.post(CHANNELS, json=HOOK)
    made = await api.post(RULES, json=RULE)
    assert (made.status_code, made.headers["etag"].partition(".")[0]) == (201, 'W/"1')
    same = await api.put(f"{RULES}/old", json=made.json()["definition"])
    assert (same.status_code, same.json()["version"]) == (200, 1), "what is shown can be sent, and changes nothing"
    used = await api.delete(f"{CHANNELS}/ops")
    assert (used.status_code, used.json()["rules"]) == (409, ["old"])
    assert (await api.post(f"{RULES}/old/pause")).json()["state"] == "paused"
    assert (await api.post(f"{RULES}/old/resume")).json()["state"] == "active"
    assert [one["name"] for one in (await api.get(RULES)).json()["items"]] == ["old"]
    assert (await api.put(f"{RULES}/old", json=RULE, headers={"if-match": '"1"'})).status_code == 412
    assert (await api.delete(f"{RULES}/old")).status_code == 204
    assert (await api.delete(f"{CHANNELS}/ops")).status_code == 204
    none = await api.get(f"{RULES}/old")
    assert (none.status_code, (await api.get(f"{CHANNELS}/ops")).status_code) == (404, 404)
    long = {"name": "x", "kind": "missing-success", "since": "400d"}
    assert (await api.post(RULES, json=long)).json()["field"] == "since"


async def test_an_alert_is_listed_acknowledged_streamed_and_resolved(
    api: Api, node: ServerNode, clock, connect: Connect
):
    told: list[tuple[str, str]] = []
    node.base.hints.listen(lambda hint: told.extend((e.kind, e.state) for e in hint.events if e.kind == "alert"))
    await api.post("/api/v1/jobs", json={"name": "etl", "command": "true"})
    await api.post(RULES, json={**RULE, "channels": [], "repeatEvery": "1h"})
    execution = (await api.post("/api/v1/executions", json={"job": "etl"})).json()["executionId"]
    clock.advance(61 * SECOND)
    await node.part(AlertsPart).watch.step()

    (alert,) = (await api.get("/api/v1/alerts?state=firing&rule=old")).json()["items"]
    assert (alert["subject"], alert["kind"], alert["severity"], alert["deliveries"]) == (
        "default", "queue-age", "warning", [],
    )  # fmt: skip
    assert alert["message"] == "the next execution has been queued for 1m1s"
    assert (await api.get(f"{RULES}/old")).json()["firing"] == 1
    seen = connect(authorization=f"Bearer {await key_for(node, 'viewer')}")
    place = f"/api/v1/alerts/{alert['alertId']}"
    assert ((await seen.get(place)).status_code, (await seen.post(f"{place}/acknowledge")).status_code) == (200, 403)
    known = (await api.post(f"{place}/acknowledge")).json()
    assert known["acknowledgedBy"].startswith("key:")

    await api.post(f"/api/v1/executions/{execution}/cancel")
    await node.part(AlertsPart).watch.step()
    (over,) = (await api.get("/api/v1/alerts")).json()["items"]
    assert (over["state"], over["alertId"]) == ("recovered", alert["alertId"])
    assert (await api.get("/api/v1/alerts?state=firing")).json()["items"] == []
    assert (await api.post(f"{place}/acknowledge")).status_code == 200, "the first word stays"
    assert (await api.get(f"/api/v1/alerts/{UUID(int=1)}")).status_code == 404
    assert told == [("alert", "firing"), ("alert", "acknowledged"), ("alert", "recovered")], "and not again"
    assert (node.part(AlertsPart).watch.fired, node.part(AlertsPart).watch.recovered) == (1, 1)


async def storm(api: Api, node: ServerNode, clock, **more) -> None:
    """Let executions wait too long in five queues."""
    for number in range(5):
        await api.post("/api/v1/jobs", json={"name": f"etl-{number}", "command": "true", "queue": f"q{number}"})
        await api.post("/api/v1/executions", json={"job": f"etl-{number}"})
    await api.post(RULES, json={**RULE, "channels": [], **more})
    clock.advance(61 * SECOND)
    await node.part(AlertsPart).watch.step()


async def test_all_alerts_of_a_rule_are_acknowledged_at_once(api: Api, node: ServerNode, clock, connect: Connect):
    await storm(api, node, clock)
    (first, *_) = (await api.get("/api/v1/alerts")).json()["items"]
    await api.post(f"/api/v1/alerts/{first['alertId']}/acknowledge")
    seen = connect(authorization=f"Bearer {await key_for(node, 'viewer')}")
    assert (await seen.post(f"{RULES}/old/acknowledge")).status_code == 403
    for count in (4, 0):
        assert (await api.post(f"{RULES}/old/acknowledge")).json() == {"rule": "old", "acknowledged": count}
    assert all(one["acknowledgedBy"] for one in (await api.get("/api/v1/alerts")).json()["items"])
    assert (await api.post(f"{RULES}/other/acknowledge")).status_code == 404


async def test_a_rule_edited_while_it_fires_keeps_its_matching_alerts(api: Api, node: ServerNode, clock):
    await api.post(CHANNELS, json=HOOK)
    await storm(api, node, clock, channels=["ops"])
    await api.put(f"{RULES}/old", json={**RULE, "queues": ["q1", "q[2-3]*"], "after": "30s"})
    await node.part(AlertsPart).watch.step()
    states = {one["subject"]: one for one in (await api.get("/api/v1/alerts")).json()["items"]}
    assert [one for one in sorted(states) if states[one]["state"] == "firing"] == ["q1", "q2", "q3"]
    assert [one["kind"] for one in states["q0"]["deliveries"]] == ["firing"], "it did not recover"
    assert len(states) == 5


async def test_alerts_are_paged(api: Api, node: ServerNode, clock):
    await storm(api, node, clock)
    found, cursor = [], ""
    while cursor is not None:
        page = (await api.get(f"/api/v1/alerts?limit=2{cursor and f'&cursor={cursor}'}")).json()
        found += [one["subject"] for one in page["items"]]
        cursor = page["nextCursor"]
    assert sorted(found) == ["q0", "q1", "q2", "q3", "q4"]


async def test_addresses_are_checked_and_a_missing_apprise_is_refused_with_a_remedy(api: Api, monkeypatch):
    await api.post(CHANNELS, json={"name": "in", "kind": "webhook", "url": "http://127.0.0.1:9/token-of-mine"})
    (tried,) = (await api.post(f"{CHANNELS}/in/test")).json()["deliveries"]
    assert (tried["state"], tried["attempts"]) == ("failed", 1)
    assert "outbound_allow" in tried["lastError"]
    assert "token-of-mine" not in tried["lastError"]

    monkeypatch.setitem(sys.modules, "apprise", None)
    refused = await api.post(CHANNELS, json={"name": "chat", "kind": "apprise", "urls": ["slack://a/b/c"]})
    assert (refused.status_code, "horae[notify]" in refused.json()["remedy"]) == (409, True)


def library(told: list[Any], threads: set[threading.Thread]) -> SimpleNamespace:
    """Return a stand-in for the library apprise. It fails for URLs with "bad" and supports none with "odd"."""

    class Apprise:
        def __init__(self, asset: SimpleNamespace) -> None:
            told.append(asset.http_redirects)
            self.url = ""

        @staticmethod
        def instantiate(url: str, asset: SimpleNamespace) -> str | None:
            threads.add(threading.current_thread())
            return None if "odd" in url else url

        def add(self, url: str) -> None:
            told.append(url)
            self.url = url

        def notify(self, title: str, body: str) -> bool:
            threads.add(threading.current_thread())
            told.append(title)
            return "bad" not in self.url

    return SimpleNamespace(Apprise=Apprise, AppriseAsset=SimpleNamespace)


@pytest.mark.parametrize(
    ("paths", "state", "error"),
    [
        (["a", "b"], "delivered", None),
        (["bad", "b"], "delivered", "1 of 2 URLs did not get the notice: apprise failed for a URL"),
        (["bad", "odd", "c"], "delivered", "2 of 3 URLs did not get the notice: apprise failed for a URL"),
        (["bad", "odd"], "failed", "apprise failed for a URL"),
    ],
)
async def test_a_notice_is_delivered_if_one_of_several_urls_gets_it(
    api: Api, monkeypatch, paths: list[str], state: str, error: str | None
):
    monkeypatch.setitem(sys.modules, "apprise", library([], threads := set()))
    await api.post(CHANNELS, json={"name": "chat", "kind": "apprise", "urls": [f"slack://{one}/b/c" for one in paths]})
    (tried,) = (await api.post(f"{CHANNELS}/chat/test")).json()["deliveries"]
    assert (tried["state"], tried["lastError"]) == (state, error)
    assert threading.current_thread() not in threads, "the event loop waits for no receiver"


async def test_a_creation_of_a_channel_that_another_one_overtakes_is_refused(api: Api, node: ServerNode, monkeypatch):
    channels = node.part(AlertsPart).channels
    check = channels._check

    async def is_overtaken(namespace: int, channel: AnyChannel) -> None:
        monkeypatch.setattr(channels, "_check", check)
        assert (await api.post(CHANNELS, json=HOOK)).status_code == 201

    monkeypatch.setattr(channels, "_check", is_overtaken)
    assert (await api.post(CHANNELS, json=HOOK)).status_code == 409


async def test_apprise_is_given_a_title_and_a_text(api: Api, monkeypatch):
    told: list[Any] = []
    monkeypatch.setitem(sys.modules, "apprise", library(told, set()))
    await api.post(CHANNELS, json={"name": "chat", "kind": "apprise", "urls": ["slack://a/b/c"]})
    await api.post(CHANNELS, json={"name": "in", "kind": "apprise", "urls": ["json://127.0.0.1/"]})
    (tried,) = (await api.post(f"{CHANNELS}/chat/test")).json()["deliveries"]
    assert (tried["state"], told) == ("delivered", [False, "slack://a/b/c", "[TEST] test: test"])
    (refused,) = (await api.post(f"{CHANNELS}/in/test")).json()["deliveries"]
    assert (refused["state"], "outbound_allow" in refused["lastError"]) == ("failed", True)
    await api.put("/api/v1/secrets/chat", json={"value": "tgram://1:a/2?template=/etc/horae/master.key"})
    await api.post(CHANNELS, json={"name": "by-name", "kind": "apprise", "urls": ["secret://chat"]})
    (refused,) = (await api.post(f"{CHANNELS}/by-name/test")).json()["deliveries"]
    assert (refused["state"], "template=" in refused["lastError"]) == ("failed", True)
