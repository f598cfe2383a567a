"""Each kind of rule finds its problem, and recovers when the problem is over."""

from typing import Any

import pytest

from horae.env import SECOND
from horae.features.alerts.part import AlertsPart
from horae.model.base.ids import parcel_of
from tests.engine.alerts.stage import began, firing, rule, run
from tests.engine.explain_stage import Stage
from tests.store_contract.world import NAMESPACE


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
    ], "the message of a continuing alert is updated once a minute"
    assert await firing(stage, 2 * 3600) == [], "the window is empty"


async def test_a_scheduled_execution_that_will_be_late(stage: Stage):
    schedule = {"every": "1h", "within": "100s", "overlap": "allow"}
    await stage.job(schedule=schedule)
    await stage.job("other", schedule={"every": "1h", "overlap": "allow"})
    await rule(stage, "deadline-risk")
    worker = await stage.worker()
    await run(stage, worker, "success", "success", seconds=30)
    assert await firing(stage, 0) == []
    await stage.pass_time(3600 - 60)
    assert await firing(stage, 10) == []
    (risk,) = await firing(stage, 70)
    assert risk[0] == "job"
    assert "is going to miss its deadline" in risk[1]
    (missed,) = await firing(stage, 60)
    assert "has missed its deadline" in missed[1]


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


async def test_overlong_executions_and_missed_deadlines_are_found(stage: Stage):
    await stage.job()
    await rule(stage, "overlong", times=2, minDuration="10s")
    await rule(stage, "deadline-risk")
    worker = await stage.worker()
    await run(stage, worker, "success", "success", seconds=30)
    tight = await stage.submit(within=40 * SECOND)
    assert await firing(stage, 0) == []
    (risk,) = await firing(stage, 20)
    assert risk[0] == "job"
    assert "is going to miss its deadline" in risk[1]
    (alert,) = (await stage.node.part(AlertsPart).alerts.list(NAMESPACE)).items
    assert alert.execution_id is not None
    assert parcel_of(alert.execution_id) == parcel_of(tight)
    (missed,) = await firing(stage, 100)
    assert "has missed its deadline" in missed[1]
    assert await stage.starts(tight)
    await began(stage, worker)
    (still,) = await firing(stage, 40)
    assert "deadline" in still[1], "it runs, and is late"
    assert sorted("95% take" in said for _, said in await firing(stage, 40)) == [False, True]
    await worker.end()
    assert await firing(stage) == []


async def test_late_fires_full_queues_and_missing_successes_are_found(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    await stage.job(schedule={"every": "10m"})
    await stage.job("never", queue="slow")
    await rule(stage, "lag", after="1m")
    await rule(stage, "queue-age", after="5m")
    await rule(stage, "missing-success", since="2h", jobs=["never", "job"])
    assert await firing(stage) == []

    async def nothing() -> float:
        return 1.0

    await stage.submit("never")
    monkeypatch.setattr(stage.node.firing.scheduler, "step", nothing)
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
    await stage.node.admission.circuit_breakers.open(NAMESPACE, "job", by="key:1", reason="the bank is down")
    assert await firing(stage, 1) == [("job", "the circuit is open: the bank is down")]
    await stage.node.admission.circuit_breakers.reset(NAMESPACE, "job", by="key:1")
    await worker.ask()
    assert await firing(stage, 1) == []
    for _ in range(20):
        await stage.pass_time(2)
    await firing(stage, 60)
    assert ["was lost at" in said for _, said in await firing(stage)] == [True, True], "it was lost: not recovered"
    assert await firing(stage, 3700) == [], "it is forgotten"
    said = {
        alert.message
        for alert in (await stage.node.part(AlertsPart).alerts.list(NAMESPACE)).items
        if alert.subject == "w0"
    }
    assert sum("did not come back in 1h" in one for one in said) == 1
    await stage.worker()
    assert await firing(stage, 1) == []


async def test_a_late_worker_that_was_lost_and_comes_back_has_recovered(stage: Stage):
    await rule(stage, "late-worker", after="10s")
    await stage.worker()
    for _ in range(20):
        await stage.pass_time(2)
    assert [subject for subject, _ in await firing(stage)] == ["w0"]
    stage.workers.clear()
    await stage.worker()
    assert await firing(stage, 1) == []


@pytest.mark.parametrize("kind", [("worker-lost", {"within": "1d"}), ("late-worker", {})])
async def test_the_alert_of_a_lost_worker_does_not_recover_when_its_session_is_deleted(
    stage: Stage, kind: tuple[str, dict[str, str]]
):
    await rule(stage, kind[0], **kind[1])
    await stage.worker()
    for _ in range(20):
        await stage.pass_time(2)
    assert [subject for subject, _ in await firing(stage)] == ["w0"]
    if kind[0] == "worker-lost":
        stage.world.clock.advance(23 * 3600 * SECOND + 1800 * SECOND)
        assert [subject for subject, _ in await firing(stage)] == ["w0"], "a day is not over"
    await stage.world.do("DELETE FROM sessions WHERE state = 'lost'")
    assert await firing(stage) == []
    (alert,) = (await stage.node.part(AlertsPart).alerts.list(NAMESPACE)).items
    assert alert.message == "the worker was lost and did not come back"


async def test_an_execution_in_a_long_queue_risks_its_deadline(stage: Stage):
    await stage.job()
    await rule(stage, "deadline-risk")
    worker = await stage.worker()
    await run(stage, worker, "success", "success", seconds=30)
    await worker.ask(free=0)
    for _ in range(10):
        await stage.submit()
    await stage.submit(within=120 * SECOND)
    ((subject, said),) = await firing(stage, 1)
    assert subject == "job"
    assert "begins in " in said, "ten of them take five minutes on one slot"
    await stage.submit(within=3600 * SECOND)
    assert len(await firing(stage, 1)) == 1


async def test_a_trigger_that_cannot_fire_lags(stage: Stage):
    await stage.job(schedule={"every": "10m"})
    await rule(stage, "lag", after="1m")
    assert await firing(stage) == []
    await stage.world.do("UPDATE timers SET trouble = 'There is no calendar \"bank\".'")
    ((subject, said),) = await firing(stage, 1)
    assert (subject, said) == ("job", 'the trigger "schedule" cannot fire: There is no calendar "bank"')
    await stage.world.do("UPDATE timers SET trouble = NULL")
    assert await firing(stage, 1) == []
