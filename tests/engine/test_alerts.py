"""Each kind of rule finds what it is about, and sees when that is over; delivery goes on whoever dies."""

import asyncio
from base64 import b64encode
from typing import Any

import pytest

from horae.engine.node import Node
from horae.engine.settings import EngineSettings
from horae.env import SECOND
from horae.errors import StoreUnavailable
from horae.model.ids import parcel_of
from horae.model.protocol import Exchange, Started
from horae.outbound.fetch import Answer
from horae.store.moves import alert_notices as notices
from tests.engine.explain_stage import Stage, Worker
from tests.store_contract.world import NAMESPACE, World

SETTINGS = EngineSettings(master_keys=b64encode(bytes(32)).decode())
DAY = 86_400


@pytest.fixture
def store_url() -> str:
    return "sqlite://"  # tests/store_contract has every statement on every store


@pytest.fixture
async def stage(world: World, monkeypatch: pytest.MonkeyPatch) -> Stage:
    async def server_time() -> int:
        return world.now()

    monkeypatch.setattr(world.driver, "server_time", server_time)
    node = Node(world.env, world.store, SETTINGS)
    await node.prepare()
    return Stage(world, node)


async def rule(stage: Stage, kind: str, **more: Any) -> None:
    await stage.node.alerts.rules.put(NAMESPACE, kind, {"kind": kind, **more})


async def firing(stage: Stage, seconds: float = 10) -> list[tuple[str, str]]:
    """What is open after a while: subjects and messages."""
    await stage.pass_time(seconds)
    await stage.node.statistics.step()
    await stage.node.alerts.watch.step()
    assert stage.node.alerts.watch.failed == 0
    page = await stage.node.alerts.list(NAMESPACE, state="firing")
    return [(alert.subject, alert.message) for alert in page.items]


async def began(stage: Stage, worker: Worker) -> None:
    """Say that all it holds has started."""
    worker.n += 1
    held = [Started(parcel=s.parcel, lo=s.lo, hi=s.hi, attempt=s.attempt, at=stage.world.now()) for s in worker.holds]
    up = Exchange(channel=0, n=worker.n, free=0, wait=0, started=held)
    await stage.node.gateway.exchange(NAMESPACE, worker.session, up)


async def run(stage: Stage, worker: Worker, *ends: str, seconds: float = 1, **more: Any) -> None:
    """Executions that end one after the other, each after a while."""
    for end in ends:
        assert await stage.starts(await stage.submit(**more))
        await began(stage, worker)
        stage.world.clock.advance(round(seconds * SECOND))
        await worker.end(end)


async def test_rates_and_failures_in_a_row(stage: Stage):
    await stage.job(retries=0)
    await stage.job("other", retries=0)
    await rule(stage, "success-rate", jobs=["j*"], below="90%", minimum=4)
    await rule(stage, "failures-in-a-row", jobs=["job"], count=2)
    worker = await stage.worker()
    await run(stage, worker, "failed", "failed", name="other")
    await run(stage, worker, "success", "success", "failed")
    assert await firing(stage) == []
    await run(stage, worker, "failed")
    assert sorted(await firing(stage)) == [
        ("job", "2 executions in a row failed"),
        ("job", "2 of 4 executions failed; 50% succeeded in the last 1h"),
    ]
    await run(stage, worker, "success")
    assert [message for _, message in await firing(stage)] == [
        "2 of 4 executions failed; 50% succeeded in the last 1h"
    ], "of what goes on the words are changed once a minute"
    assert await firing(stage, 2 * 3600) == [], "nothing of it is in the window any more"


async def test_retries(stage: Stage):
    await stage.job(retries=5, retry={"delay": "1s"})
    await rule(stage, "retry-rate", above="99%", minimum=1)
    worker = await stage.worker()
    id = await stage.submit()
    for end in ("failed", "failed", "success"):
        assert await stage.starts(id)
        await worker.end(end)
        await stage.pass_time(2)
    assert await firing(stage) == [("job", "2 retries of 1 executions (200%) in the last 1h")]


async def test_what_runs_too_long_and_what_will_be_late(stage: Stage):
    await stage.job()
    await rule(stage, "overlong", times=2, atLeast="10s")
    await rule(stage, "deadline-risk")
    worker = await stage.worker()
    await run(stage, worker, "success", "success", seconds=30)
    tight = await stage.submit(within=40 * SECOND)
    assert await firing(stage, 0) == []
    (risk,) = await firing(stage, 20)
    assert risk[0] == "job"
    assert "is going to miss its deadline" in risk[1]
    (alert,) = (await stage.node.alerts.list(NAMESPACE)).items
    assert alert.execution_id is not None
    assert parcel_of(alert.execution_id) == parcel_of(tight)
    (missed,) = await firing(stage, 100)
    assert "has missed its deadline" in missed[1]
    assert await stage.starts(tight)
    await began(stage, worker)
    (still,) = await firing(stage, 40)
    assert "deadline" in still[1], "it runs, and is late"
    assert sorted("where 95% take" in said for _, said in await firing(stage, 40)) == [False, True]
    await worker.end()
    assert await firing(stage) == []


async def test_fires_queues_and_successes_that_do_not_come(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    await stage.job(schedule={"every": "10m"})
    await stage.job("never", queue="slow")
    await rule(stage, "lag", after="1m")
    await rule(stage, "queue-age", after="5m")
    await rule(stage, "missing-success", since="2h", jobs=["never", "job"])
    assert await firing(stage) == []

    async def nothing() -> float:
        return 1.0

    await stage.submit("never")
    monkeypatch.setattr(stage.node.scheduler, "step", nothing)
    assert [subject for subject, _ in await firing(stage, 12 * 60)] == ["slow", "job"]
    monkeypatch.undo()
    monkeypatch.setattr(stage.world.driver, "server_time", _time(stage))
    late = dict(await firing(stage, 2 * 3600))
    assert late["never"] == late["job"] == "no execution has succeeded in the last 2h"
    worker = await stage.worker(queues=("default", "slow"))
    for _ in range(5):
        await worker.ask()
        await worker.end()
        await stage.pass_time(1)
    assert await firing(stage, 60) == []


def _time(stage: Stage) -> Any:
    async def server_time() -> int:
        return stage.world.now()

    return server_time


async def test_workers_and_circuits(stage: Stage):
    await stage.job(circuit={"failures": "50%"})
    await rule(stage, "late-worker", after="10s", workers=["w*"])
    await rule(stage, "worker-lost", within="1h")
    await rule(stage, "circuit-open")
    worker = await stage.worker()
    assert await firing(stage, 5) == []
    assert [subject for subject, _ in await firing(stage, 6)] == ["w0"]
    await worker.ask()
    assert await firing(stage, 5) == []
    await stage.node.circuit_breakers.open(NAMESPACE, "job", by="key:1", reason="the bank is down")
    assert await firing(stage, 1) == [("job", "the circuit is open: the bank is down")]
    await stage.node.circuit_breakers.reset(NAMESPACE, "job", by="key:1")
    await worker.ask()
    assert await firing(stage, 1) == []
    for _ in range(20):
        await stage.pass_time(2)
    assert ["was lost at" in said for _, said in await firing(stage)] == [True]
    assert await firing(stage, 3700) == [], "it is forgotten"


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
