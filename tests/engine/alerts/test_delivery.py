"""Delivery continues when a server dies; each notice is claimed by one server and has the same id in every try."""

import asyncio
from typing import Any

import pytest

from horae.engine.server_node import ServerNode
from horae.env import SECOND
from horae.errors import StoreUnavailable
from horae.features.alerts.engine import delivery
from horae.features.alerts.model.notification import read_content
from horae.features.alerts.part import AlertsPart
from horae.features.alerts.store import notices
from horae.outbound.fetch import OutboundAnswer
from tests.engine.alerts.stage import SETTINGS, rule
from tests.engine.explain_stage import Stage
from tests.store_contract.world import NAMESPACE
from tests.waiting import eventually

DAY = 86_400


class Receiver:
    """A receiver of webhooks, with its answers."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.types: list[str] = []
        self.status = 200
        self.hangs: set[str] = set()  # URLs
        self.open = asyncio.Event()

    async def fetch(
        self, method: str, url: str, *, headers: dict[str, str], content: bytes, **_: Any
    ) -> OutboundAnswer:
        self.heard.append(headers["webhook-id"])
        self.types.append(read_content(content).type)
        if url in self.hangs:
            await self.open.wait()
        return OutboundAnswer(self.status, {}, b"", True, url)


@pytest.fixture
async def told(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Receiver:
    """Open an alert of which a webhook is to be notified; return the receiver."""
    receiver = Receiver()
    monkeypatch.setattr(stage.node.base.outbound, "fetch", receiver.fetch)
    hook = {"name": "ops", "kind": "webhook", "url": "https://example.com/"}
    await stage.node.part(AlertsPart).channels.create(NAMESPACE, hook)
    await stage.job()
    await rule(stage, "queue-age", after="1m", channels=["ops"])
    await stage.submit()
    stage.world.clock.advance(61 * SECOND)
    await stage.node.part(AlertsPart).watch.step()
    return receiver


async def deliver(*nodes: ServerNode) -> float:
    """Step the delivery of each node once and wait for the tries it started; return the shortest wait."""
    waits = await asyncio.gather(*(node.part(AlertsPart).delivery.step() for node in nodes))
    for node in nodes:
        await node.part(AlertsPart).delivery.settled()
    return min(waits)


async def test_an_undelivered_notice_is_sent_again_later_with_the_same_id(stage: Stage, told: Receiver):
    told.status = 500
    for _ in range(3):
        await deliver(stage.node)
        assert await deliver(stage.node) > 0, "not at once"
        stage.world.clock.advance(30 * SECOND)
    told.status = 200
    await deliver(stage.node)
    assert (len(told.heard), len(set(told.heard))) == (4, 1)
    (alert,) = (await stage.node.part(AlertsPart).alerts.list(NAMESPACE)).items
    (delivered,) = alert.deliveries
    assert (delivered.state, delivered.attempts, delivered.last_error) == ("delivered", 4, None)
    assert stage.node.part(AlertsPart).delivery.deliveries == {"delivered": 1, "pending": 3, "failed": 0}


async def test_a_notice_is_given_up_after_a_day_or_when_the_receiver_is_gone(stage: Stage, told: Receiver):
    told.status = 500
    await deliver(stage.node)
    stage.world.clock.advance((DAY + 61) * SECOND)
    await deliver(stage.node)
    (alert,) = (await stage.node.part(AlertsPart).alerts.list(NAMESPACE)).items
    assert [(one.state, one.last_error) for one in alert.deliveries] == [("failed", "the receiver answered 500")]
    told.status = 410
    await stage.world.do("UPDATE queued SET queued_at = $1", stage.world.now())
    await stage.node.part(AlertsPart).watch.step()
    await deliver(stage.node)
    (alert,) = (await stage.node.part(AlertsPart).alerts.list(NAMESPACE)).items
    assert [(one.kind, one.state) for one in alert.deliveries][-1] == ("recovered", "failed")


async def test_a_notice_of_a_server_that_died_after_sending_is_sent_by_another(
    stage: Stage, told: Receiver, monkeypatch: pytest.MonkeyPatch
):
    def dies(*_: Any) -> Any:
        raise StoreUnavailable("gone")

    with monkeypatch.context() as broken:
        broken.setattr(notices, "settle", dies)
        await stage.node.part(AlertsPart).delivery.step()
        await eventually(lambda: told.heard)
    other = ServerNode(stage.world.env, stage.world.store, SETTINGS)
    await other.prepare()
    monkeypatch.setattr(other.base.outbound, "fetch", told.fetch)
    await deliver(other)
    assert len(told.heard) == 1, "it is claimed"
    for task in stage.node.part(AlertsPart).delivery._running:
        task.cancel()
    stage.world.clock.advance(60 * SECOND)
    await deliver(other, stage.node)
    assert (len(told.heard), len(set(told.heard))) == (2, 1)
    (alert,) = (await other.part(AlertsPart).alerts.list(NAMESPACE)).items
    assert [one.state for one in alert.deliveries] == ["delivered"]


async def test_two_servers_that_evaluate_at_once_open_one_alert(stage: Stage, told: Receiver):
    other = ServerNode(stage.world.env, stage.world.store, SETTINGS)
    await other.prepare()
    stage.world.clock.advance(31 * SECOND)  # the duty is over
    await other.part(AlertsPart).watch.step()
    await stage.node.part(AlertsPart).watch.step()
    assert len((await other.part(AlertsPart).alerts.list(NAMESPACE)).items) == 1
    assert (stage.node.part(AlertsPart).watch.fired, other.part(AlertsPart).watch.fired) == (1, 0)


async def test_the_end_of_an_alert_is_sent_after_its_beginning_however_long_that_takes(stage: Stage, told: Receiver):
    told.status = 500
    await deliver(stage.node)
    await stage.world.do("UPDATE queued SET queued_at = $1", stage.world.now())
    await stage.node.part(AlertsPart).watch.step()
    told.status = 200
    await deliver(stage.node)
    assert told.types == ["alert.firing"], "not before it"
    stage.world.clock.advance(10 * SECOND)
    await deliver(stage.node)
    await deliver(stage.node)
    assert told.types == ["alert.firing", "alert.firing", "alert.recovered"]


async def test_a_hanging_receiver_does_not_delay_the_notices_of_others(stage: Stage, told: Receiver):
    told.hangs.add("https://hangs.example.com/")
    hook = {"name": "hangs", "kind": "webhook", "url": "https://hangs.example.com/"}
    await stage.node.part(AlertsPart).channels.create(NAMESPACE, hook)
    await deliver(stage.node)
    told.heard.clear()
    for number in range(20):
        await stage.node.part(AlertsPart).rules.put(
            NAMESPACE, f"r{number}", {"kind": "queue-age", "after": "1m", "channels": ["hangs", "ops"]}
        )
    stage.world.clock.advance(31 * SECOND)
    await stage.node.part(AlertsPart).watch.step()

    async def all_others_are_delivered() -> bool:
        await stage.node.part(AlertsPart).delivery.step()
        return stage.node.part(AlertsPart).delivery.deliveries["delivered"] == 21

    await eventually(all_others_are_delivered)
    assert len(told.heard) == 20 + 4, "the hanging receiver got only a few"
    told.open.set()
    await stage.node.part(AlertsPart).delivery.settled()


async def test_a_channel_that_fails_repeatedly_is_paused(stage: Stage, told: Receiver):
    told.status = 500
    for number in range(8):
        await stage.node.part(AlertsPart).rules.put(
            NAMESPACE, f"r{number}", {"kind": "queue-age", "after": "1m", "channels": ["ops"]}
        )
    await stage.node.part(AlertsPart).watch.step()
    await deliver(stage.node)
    tried = len(told.heard)
    assert (tried, await deliver(stage.node), len(told.heard)) == (4, 5.0, 4)
    stage.world.clock.advance(11 * SECOND)
    await deliver(stage.node)
    assert len(told.heard) == 5, "one by one"
    told.status = 200
    stage.world.clock.advance(120 * SECOND)
    for _ in range(9):
        await deliver(stage.node)
    assert stage.node.part(AlertsPart).delivery.deliveries["delivered"] == 9


async def test_a_stopping_server_releases_its_notices_at_once(
    stage: Stage, told: Receiver, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(delivery, "STOP_WITHIN", 0.0)
    told.hangs.add("https://example.com/")
    await stage.node.part(AlertsPart).delivery.step()
    await eventually(lambda: told.heard)
    await stage.node.part(AlertsPart).delivery.stop()
    told.hangs.clear()
    await deliver(stage.node)
    assert (len(told.heard), len(set(told.heard))) == (2, 1)


async def test_every_channel_gets_its_turn_however_many_have_pending_notices(
    stage: Stage, told: Receiver, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(delivery, "MOST_CHANNELS", 2)
    told.status = 500
    for name in ("a", "b", "z"):
        hook = {"name": name, "kind": "webhook", "url": "https://example.com/"}
        await stage.node.part(AlertsPart).channels.create(NAMESPACE, hook)
    await stage.node.part(AlertsPart).rules.put(
        NAMESPACE, "all", {"kind": "queue-age", "after": "1m", "channels": ["a", "b", "z"]}
    )
    await stage.node.part(AlertsPart).watch.step()
    for _ in range(2):
        await deliver(stage.node)
    assert len(told.heard) == 4
    assert len(set(told.heard)) == 4


async def test_a_server_without_pending_notices_remembers_no_failing_channels(stage: Stage, told: Receiver):
    told.status = 500
    for _ in range(delivery.PATIENCE):
        await deliver(stage.node)
        stage.world.clock.advance(60 * SECOND)
    await stage.node.part(AlertsPart).rules.delete(NAMESPACE, "queue-age")
    await stage.node.part(AlertsPart).channels.delete(NAMESPACE, "ops")
    await deliver(stage.node)
    assert stage.node.part(AlertsPart).delivery._failures == {}
    assert stage.node.part(AlertsPart).delivery._paused_until == {}


async def test_the_pending_notices_of_a_deleted_channel_are_given_up(stage: Stage, told: Receiver):
    await stage.node.part(AlertsPart).rules.delete(NAMESPACE, "queue-age")
    await stage.node.part(AlertsPart).channels.delete(NAMESPACE, "ops")
    await deliver(stage.node)
    (alert,) = (await stage.node.part(AlertsPart).alerts.list(NAMESPACE)).items
    assert [(one.state, one.last_error) for one in alert.deliveries] == [("failed", "the channel was removed")]
    assert told.heard == []


async def test_a_delivery_is_recorded_when_the_store_is_back(
    stage: Stage, told: Receiver, monkeypatch: pytest.MonkeyPatch
):
    settle, away = notices.settle, [True]

    def sometimes(*given: Any) -> Any:
        if away:
            raise StoreUnavailable("away")
        return settle(*given)

    monkeypatch.setattr(notices, "settle", sometimes)
    await stage.node.part(AlertsPart).delivery.step()
    await eventually(lambda: told.heard)
    away.clear()

    async def is_recorded() -> bool:
        stage.world.clock.advance(SECOND)
        (alert,) = (await stage.node.part(AlertsPart).alerts.list(NAMESPACE)).items
        return [one.state for one in alert.deliveries] == ["delivered"]

    await eventually(is_recorded)
    assert len(told.heard) == 1
