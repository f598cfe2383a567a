"""Delivery goes on whoever dies; a notice has one taker, and comes with the same id however often it comes."""

import asyncio
from typing import Any

import pytest

from horae.engine.node import Node
from horae.env import SECOND
from horae.errors import StoreUnavailable
from horae.outbound.fetch import Answer
from horae.store.moves import alert_notices as notices
from tests.engine.alerts.stage import SETTINGS, rule
from tests.engine.explain_stage import Stage
from tests.store_contract.world import NAMESPACE

DAY = 86_400


class Receiver:
    """What a webhook's receiver hears, and answers."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.status = 200

    async def fetch(self, method: str, url: str, *, headers: dict[str, str], **_: Any) -> Answer:
        self.heard.append(headers["webhook-id"])
        return Answer(self.status, {}, b"", True, url)


@pytest.fixture
async def told(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Receiver:
    """An alert that a webhook is to be told."""
    receiver = Receiver()
    monkeypatch.setattr(stage.node.outbound, "fetch", receiver.fetch)
    hook = {"name": "ops", "kind": "webhook", "url": "https://example.com/"}
    await stage.node.alerts.channels.create(NAMESPACE, hook)
    await stage.job()
    await rule(stage, "queue-age", after="1m", channels=["ops"])
    await stage.submit()
    stage.world.clock.advance(61 * SECOND)
    await stage.node.alerts.watch.step()
    return receiver


async def test_what_is_not_taken_comes_again_later_with_the_same_id(stage: Stage, told: Receiver):
    told.status = 500
    delivery = stage.node.alerts.delivery
    for _ in range(3):
        await delivery.step()
        assert await delivery.step() > 0, "not at once"
        stage.world.clock.advance(30 * SECOND)
    told.status = 200
    await delivery.step()
    assert (len(told.heard), len(set(told.heard))) == (4, 1)
    (alert,) = (await stage.node.alerts.list(NAMESPACE)).items
    (delivered,) = alert.deliveries
    assert (delivered.state, delivered.attempts, delivered.last_error) == ("delivered", 4, None)
    assert stage.node.alerts.deliveries == {"delivered": 1, "pending": 3, "failed": 0}


async def test_it_is_given_up_after_a_day_or_when_the_receiver_is_gone(stage: Stage, told: Receiver):
    told.status = 500
    await stage.node.alerts.delivery.step()
    stage.world.clock.advance((DAY + 61) * SECOND)
    await stage.node.alerts.delivery.step()
    (alert,) = (await stage.node.alerts.list(NAMESPACE)).items
    assert [(one.state, one.last_error) for one in alert.deliveries] == [("failed", "the receiver answered 500")]
    told.status = 410
    await stage.world.do("UPDATE queued SET queued_at = $1", stage.world.now())
    await stage.node.alerts.watch.step()
    await stage.node.alerts.delivery.step()
    (alert,) = (await stage.node.alerts.list(NAMESPACE)).items
    assert [(one.kind, one.state) for one in alert.deliveries][-1] == ("recovered", "failed")


async def test_a_server_that_dies_after_it_told_leaves_the_notice_to_another(
    stage: Stage, told: Receiver, monkeypatch: pytest.MonkeyPatch
):
    def dies(*_: Any) -> Any:
        raise StoreUnavailable("gone")

    with monkeypatch.context() as broken:
        broken.setattr(notices, "settle", dies)
        with pytest.raises(StoreUnavailable):
            await stage.node.alerts.delivery.step()
    other = Node(stage.world.env, stage.world.store, SETTINGS)
    await other.prepare()
    monkeypatch.setattr(other.outbound, "fetch", told.fetch)
    await other.alerts.delivery.step()
    assert len(told.heard) == 1, "it is claimed"
    stage.world.clock.advance(60 * SECOND)
    await asyncio.gather(other.alerts.delivery.step(), stage.node.alerts.delivery.step())
    assert (len(told.heard), len(set(told.heard))) == (2, 1)
    (alert,) = (await other.alerts.list(NAMESPACE)).items
    assert [one.state for one in alert.deliveries] == ["delivered"]


async def test_two_servers_that_look_at_once_open_one_alert(stage: Stage, told: Receiver):
    other = Node(stage.world.env, stage.world.store, SETTINGS)
    await other.prepare()
    stage.world.clock.advance(31 * SECOND)  # the duty is over
    await other.alerts.watch.step()
    await stage.node.alerts.watch.step()
    assert len((await other.alerts.list(NAMESPACE)).items) == 1
    assert (stage.node.alerts.fired, other.alerts.fired) == (1, 0)
