"""Alerts depend on committed data only: on no dead server, no earlier evaluation, and not on the age of the rule."""

import pytest

from horae.engine.server_node import ServerNode
from horae.env import SECOND
from horae.features.alerts.engine import failed_jobs, rotation
from horae.features.alerts.engine.deadlines import NearDeadlines
from horae.features.alerts.engine.watch import AlertWatch
from horae.features.alerts.model.findings import RuleFinding
from horae.features.alerts.part import AlertsPart
from horae.features.alerts.store import alerts, reads
from horae.features.statistics.part import StatisticsPart
from horae.model.base.ids import parcel_of
from tests.engine.alerts.stage import SETTINGS, rule, run
from tests.engine.explain_stage import Stage
from tests.store_contract.world import NAMESPACE

HOUR = 3600


async def crash(stage: Stage) -> Stage:
    """Replace the server by a new one; statistics that it had not written are lost."""
    node = ServerNode(stage.world.env, stage.world.store, SETTINGS)
    await node.prepare()
    await node.fleet.presence.step()
    stage.world.clock.advance(21 * SECOND)  # its duty is over
    return Stage(stage.world, node)


async def seen(stage: Stage) -> list[str]:
    await stage.node.part(AlertsPart).watch.step()
    assert stage.node.part(AlertsPart).watch.failed == 0
    page = await stage.node.part(AlertsPart).alerts.list(NAMESPACE, state="firing")
    return sorted(alert.subject for alert in page.items)


async def test_failures_are_found_although_a_server_died_with_its_statistics(stage: Stage):
    await rule(stage, "failures-in-a-row", count=1)
    worker = await stage.worker()
    for name in ("a", "b", "c"):
        await stage.job(name, retries=0)
    assert await seen(stage) == []
    for name in ("a", "b"):
        await run(stage, worker, "failed", name=name)
    await run(stage, worker, "success", name="c")
    other = await crash(stage)
    assert await seen(other) == ["a", "b"]
    assert await seen(other) == ["a", "b"]
    assert other.node.part(AlertsPart).watch.fired == 2, "each once"


async def test_all_jobs_are_checked_when_another_server_dies(
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(failed_jobs, "PAGE", 1)
    await rule(stage, "failures-in-a-row", count=1)
    looks = Stage(stage.world, ServerNode(stage.world.env, stage.world.store, SETTINGS))
    await looks.node.prepare()
    for name in "abcdef":
        await stage.job(name, retries=0)
    worker = await stage.worker()
    for one in (stage, looks):
        await one.node.fleet.presence.step()
    assert await seen(looks) == []
    assert await seen(looks) == []
    await run(stage, worker, "failed", name="f")
    stage.world.clock.advance(21 * SECOND)
    await looks.node.fleet.presence.step()
    assert await seen(looks) == ["f"], "at once, not when its page would be read"


async def test_history_is_checked_page_by_page_beside_the_statistics(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(failed_jobs, "PAGE", 1)
    await rule(stage, "failures-in-a-row", count=1)
    for name in "abc":
        await stage.job(name, retries=0)
    assert await seen(stage) == []
    worker = await stage.worker()
    await run(stage, worker, "failed", name="c")
    stage.node.part(StatisticsPart).statistics._jobs.clear()  # a write was lost
    for _ in range(4):
        found = await seen(stage)
    assert found == ["c"]


async def test_a_success_without_statistics_is_not_missing(stage: Stage):
    await stage.job("backup", retries=0)
    await rule(stage, "missing-success", since="2h")
    worker = await stage.worker()
    await stage.pass_time(HOUR)
    await worker.ask()
    await run(stage, worker, "success", name="backup")
    other = await crash(stage)
    other.world.clock.advance((HOUR + 60) * SECOND)
    assert await seen(other) == [], "it succeeded an hour ago"
    other.world.clock.advance(2 * HOUR * SECOND)  # recounted statistics are stored by the hour
    assert await seen(other) == ["backup"]


@pytest.mark.parametrize("kind", ["failures-in-a-row", "success-rate", "missing-success"])
async def test_problems_from_before_the_rule_are_found(stage: Stage, kind: str):
    await stage.job("etl", retries=0)
    worker = await stage.worker()
    await run(stage, worker, "failed", "failed", name="etl")
    await stage.node.part(StatisticsPart).statistics.step()
    stage.world.clock.advance(61 * 20 * SECOND)
    more = {"failures-in-a-row": {"count": 2}, "success-rate": {"minimum": 2}, "missing-success": {"since": "10m"}}
    await rule(stage, kind, **more[kind])
    assert await seen(stage) == ["etl"]


@pytest.mark.parametrize("crashes", [True, False])
async def test_failures_from_a_time_without_evaluations_are_found(stage: Stage, crashes: bool):
    await stage.job("etl", retries=0)
    await rule(stage, "success-rate", minimum=2)
    worker = await stage.worker()
    assert await seen(stage) == []
    await run(stage, worker, "failed", "failed", name="etl")
    await stage.node.part(StatisticsPart).statistics.step()
    stage.world.clock.advance(10 * 60 * SECOND)
    assert await seen(await crash(stage) if crashes else stage) == ["etl"]


async def test_a_rule_with_the_name_of_a_deleted_one_is_evaluated_in_full(stage: Stage):
    await stage.job("etl", retries=0)
    rules = stage.node.part(AlertsPart).rules
    await rules.put(NAMESPACE, "mine", {"kind": "success-rate", "jobs": ["other"]})
    await run(stage, await stage.worker(), "failed", "failed", name="etl")
    await stage.node.part(StatisticsPart).statistics.step()
    for _ in range(10):
        stage.world.clock.advance(60 * SECOND)
        assert await seen(stage) == []
    await rules.delete(NAMESPACE, "mine")
    await rules.put(NAMESPACE, "mine", {"kind": "success-rate", "minimum": 2})
    assert await seen(stage) == ["etl"]


async def test_old_alerts_are_deleted_although_no_rule_is_left(stage: Stage):
    await stage.job("etl", retries=0)
    await rule(stage, "failures-in-a-row", count=1)
    await run(stage, await stage.worker(), "failed", name="etl")
    assert await seen(stage) == ["etl"]
    await stage.node.part(AlertsPart).rules.delete(NAMESPACE, "failures-in-a-row")
    stage.world.clock.advance(31 * 24 * HOUR * SECOND)
    assert await seen(stage) == []
    assert (await stage.node.part(AlertsPart).alerts.list(NAMESPACE)).items == []


async def test_the_alert_of_a_deleted_job_is_forgotten(stage: Stage):
    await stage.job("etl", retries=0)
    await rule(stage, "failures-in-a-row", count=1)
    await run(stage, await stage.worker(), "failed", name="etl")
    assert await seen(stage) == ["etl"]
    await stage.node.definitions.jobs.delete(NAMESPACE, "etl")
    assert await seen(stage) == []
    (alert,) = (await stage.node.part(AlertsPart).alerts.list(NAMESPACE)).items
    assert alert.message == "the job was deleted"


async def test_very_many_open_alerts_are_checked_in_rotation_and_none_ends_unchecked(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(rotation, "MOST", 2)
    await rule(stage, "failures-in-a-row", count=1)
    worker = await stage.worker()
    names = ["a", "b", "c", "d", "e"]
    for name in names:
        await stage.job(name, retries=0)
        await run(stage, worker, "failed", name=name)
    assert await seen(stage) == names
    for name in names:
        await run(stage, worker, "success", name=name)
    left = [len(await seen(stage)) for _ in range(3)]
    assert left == [3, 1, 0]


async def test_an_expensive_search_for_deadlines_is_repeated_less_often(stage: Stage):
    class Slow:
        reads = 0

        async def read(self, _: object) -> list[object]:
            self.reads += 1
            stage.world.clock.advance(SECOND)
            return []

    slow = Slow()
    nearing = NearDeadlines(stage.world.env, slow)  # type: ignore[arg-type]
    for _ in range(3):
        await nearing.find()
    assert slow.reads == 1
    stage.world.clock.advance(20 * SECOND)
    await nearing.find()
    assert slow.reads == 2


async def test_an_execution_that_ended_since_the_search_has_not_missed_its_deadline(stage: Stage):
    await stage.job()
    await rule(stage, "deadline-risk")
    in_time = [await stage.submit(within=60 * SECOND) for _ in range(3)]
    late = await stage.submit(within=100 * SECOND)
    assert await seen(stage) == []
    stage.node.part(AlertsPart).watch._nearing._search_at = float("inf")  # no new search, as if it were expensive
    for id in in_time:
        await stage.world.store.cancel(parcel_of(id), 0, "")
    stage.world.clock.advance(61 * SECOND)
    assert await seen(stage) == []
    stage.world.clock.advance(40 * SECOND)
    assert await seen(stage) == ["job"]
    (alert,) = (await stage.node.part(AlertsPart).alerts.list(NAMESPACE)).items
    assert alert.execution_id == late
    await stage.world.store.cancel(parcel_of(late), 0, "")
    assert await seen(stage) == []


async def test_a_failed_first_evaluation_is_repeated_in_full(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    await stage.job("etl", retries=0)
    await run(stage, await stage.worker(), "failed", "failed", name="etl")
    await stage.node.part(StatisticsPart).statistics.step()
    stage.world.clock.advance(20 * 60 * SECOND)
    await rule(stage, "success-rate", minimum=2)
    with monkeypatch.context() as broken:
        broken.delattr(reads, "outcomes")
        await stage.node.part(AlertsPart).watch.step()
    assert stage.node.part(AlertsPart).watch.failed == 1
    stage.node.part(AlertsPart).watch.failed = 0
    assert await seen(stage) == ["etl"]


async def test_a_rule_with_changed_subjects_keeps_the_alerts_of_remaining_subjects(stage: Stage):
    await rule(stage, "late-worker")
    stored = await stage.node.part(AlertsPart).rules.stored(NAMESPACE, "late-worker")
    found = [RuleFinding(subject=worker, message="late") for worker in ("eu:1", "us:1")]
    await stage.world.store.change(lambda now: alerts.settle(stored, found, stage.world.env.new_id, now))
    await rule(stage, "late-worker", workers=["eu:*"])
    page = await stage.node.part(AlertsPart).alerts.list(NAMESPACE, state="firing")
    assert [alert.subject for alert in page.items] == ["eu:1"]


@pytest.mark.parametrize(("seconds", "own", "others"), [(15, 3, 0), (25, 1, 3)])
async def test_a_long_round_keeps_the_duty_and_stops_when_the_duty_is_lost(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, seconds: int, own: int, others: int
):
    for kind in ("lag", "overlong", "queue-age"):
        await rule(stage, kind)
    other = ServerNode(stage.world.env, stage.world.store, SETTINGS)
    await other.prepare()
    looks: list[AlertWatch] = []

    async def evaluate(watch: AlertWatch, *_: object, **__: object) -> None:
        looks.append(watch)
        if watch is stage.node.part(AlertsPart).watch:
            stage.world.clock.advance(seconds * SECOND)
            await other.part(AlertsPart).watch.step()

    monkeypatch.setattr(AlertWatch, "_evaluate", evaluate)
    await stage.node.part(AlertsPart).watch.step()
    assert [looks.count(watch) for watch in (stage.node.part(AlertsPart).watch, other.part(AlertsPart).watch)] == [
        own,
        others,
    ]
