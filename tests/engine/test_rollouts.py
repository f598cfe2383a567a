"""Rollouts: shares of executions from every source are counted, compared, promoted and aborted."""

import re
from typing import Any
from unittest.mock import AsyncMock
from uuid import UUID

import pytest
from msgspec import Raw

from horae.env import SECOND
from horae.errors import BadInput, Conflict, NotFound, Stale, StoreUnavailable
from horae.features.events.part import EventsPart
from horae.features.rollouts.model.view import RolloutVersionView, RolloutView
from horae.features.rollouts.part import RolloutsPart
from horae.model.base.ids import parcel_of
from horae.model.fleet.submit import Submit
from tests.engine.explain_stage import Stage
from tests.store_contract.world import NAMESPACE

WHO = {"by": "key:me"}


pytestmark = pytest.mark.parametrize("store_url", ["memory", "postgres"], indirect=True)


async def try_out(stage: Stage, share: object = "100%", change: Any = None, **more: Any) -> RolloutView:
    body = {"change": change or {"timeout": "5m"}, "share": share, **more}
    return await stage.node.part(RolloutsPart).rollouts.put(NAMESPACE, "job", body, **WHO)


async def version_of(stage: Stage, id: UUID) -> int:
    return (await stage.world.rows("SELECT version FROM parcels WHERE id = $1", parcel_of(id)))[0][0]


def arm(view: RolloutView, version: int) -> RolloutVersionView:
    return next(one for one in view.versions if one.version == version)


async def test_a_change_is_tried_on_a_share_and_promoted(stage: Stage):
    await stage.job(retries=0)
    begun = await try_out(stage)
    assert (begun.state, [(one.version, one.current, one.share) for one in begun.versions]) == (
        "on", [(2, False, 100.0), (1, True, 0.0)],
    )  # fmt: skip
    shown = await stage.node.definitions.jobs.get(NAMESPACE, "job")
    assert (shown.version, shown.timeout) == (1, None)
    tried = await stage.submit()

    done = await stage.node.part(RolloutsPart).rollouts.promote(NAMESPACE, "job", **WHO)
    after = await stage.node.definitions.jobs.get(NAMESPACE, "job")
    usual = await stage.submit()

    assert (done.state, done.changed_by, after.version, after.timeout) == ("promoted", "key:me", 2, "5m")
    assert [await version_of(stage, id) for id in (tried, usual)] == [2, 2]
    assert [(v.version, v.share) for v in await stage.node.definitions.jobs.versions(NAMESPACE, "job")] == [
        (2, None),
        (1, None),
    ]


async def test_versions_tell_their_shares_while_a_rollout_is_on(stage: Stage):
    await stage.job()
    await try_out(stage)
    assert [v.share for v in await stage.node.definitions.jobs.versions(NAMESPACE, "job")] == [100.0, 0.0]


async def test_an_aborted_version_stays_and_the_next_edit_has_another_number(stage: Stage):
    await stage.job()
    await try_out(stage)
    tried = await stage.submit()
    aborted = await stage.node.part(RolloutsPart).rollouts.abort(NAMESPACE, "job", reason="it is slow", **WHO)
    usual = await stage.submit()

    assert (aborted.state, aborted.cause) == ("aborted", "it is slow")
    assert [await version_of(stage, id) for id in (tried, usual)] == [2, 1]
    edited = await stage.node.definitions.jobs.edit(NAMESPACE, "job", {"timeout": "7m"})
    assert (edited.version, edited.timeout) == (3, "7m")
    back = await stage.node.definitions.jobs.rollback(NAMESPACE, "job", 2)
    assert (back.version, back.timeout) == (4, "5m")
    for unwanted in (stage.node.part(RolloutsPart).rollouts.promote, stage.node.part(RolloutsPart).rollouts.abort):
        with pytest.raises(NotFound):
            await unwanted(NAMESPACE, "job", **WHO)


async def test_an_old_version_is_tried_and_written_anew_when_it_is_promoted(stage: Stage):
    await stage.job(schedule="0 1 * * *")
    await stage.node.definitions.jobs.edit(NAMESPACE, "job", {"schedule": "0 2 * * *"})
    await stage.node.part(RolloutsPart).rollouts.put(NAMESPACE, "job", {"version": 1, "share": "50%"}, **WHO)
    assert (await stage.node.definitions.jobs.get(NAMESPACE, "job")).schedule == "0 2 * * *", (
        "the present version says when"
    )

    await stage.node.part(RolloutsPart).rollouts.promote(NAMESPACE, "job", **WHO)

    after = await stage.node.definitions.jobs.get(NAMESPACE, "job")
    assert (after.version, after.schedule) == (3, "0 1 * * *")
    assert await stage.world.rows("SELECT count(*) FROM triggers WHERE state <> 'ended'") == [(1,)]


async def test_every_source_of_executions_uses_the_rollout(stage: Stage):
    await stage.job("first")
    await stage.job(
        dependencies=["first"], triggers=[{"name": "hourly", "cron": "0 * * * *"}, {"name": "told", "event": "go"}]
    )
    await stage.job("after", dependencies=["first"])
    for name in ("job", "after"):
        body = {"change": {"timeout": "5m"}, "share": "100%"}
        await stage.node.part(RolloutsPart).rollouts.put(NAMESPACE, name, body, **WHO)
    worker = await stage.worker(5)

    await stage.submit()
    await stage.node.submitter.submit_bulk(NAMESPACE, Submit(job="job"), [b"{}", b'{"a":1}'], origin="submit")
    await stage.node.part(EventsPart).intake.send(NAMESPACE, [_event("go")])
    await stage.pass_time(3600)
    first = await stage.submit("first")
    assert await stage.starts(first)
    await worker.end()
    await stage.look()

    rows = await stage.world.rows("SELECT j.name, p.version, p.extras FROM parcels p JOIN jobs j ON j.id = p.job")
    origins = re.compile(rb'"origin":"(\w+)"')
    assert {(name, version, origins.findall(extras)[0]) for name, version, extras in rows} == {
        ("first", 1, b"submit"), ("job", 2, b"submit"), ("job", 2, b"event"), ("job", 2, b"fire"),
        ("after", 2, b"dependency"),
    }  # fmt: skip


def _event(name: str) -> Any:
    from horae.model.triggers.events.values import NewEvent

    return NewEvent(name=name, payload=b"{}")


async def test_keys_keep_to_one_version_while_its_share_grows(stage: Stage):
    await stage.job()
    await try_out(stage, "30%", by="${params.customer}")

    async def customers() -> set[int]:
        chosen = [await version_of(stage, await stage.submit(params=Raw(b'{"customer":%d}' % n))) for n in range(60)]
        return {n for n, version in enumerate(chosen) if version == 2}

    first, again = await customers(), await customers()
    assert first == again
    assert 5 < len(first) < 35

    await stage.node.part(RolloutsPart).rollouts.put(
        NAMESPACE, "job", {"version": 2, "share": "60%", "by": "${params.customer}"}, **WHO
    )
    more = await customers()
    assert first < more


async def test_versions_are_compared_by_failures_and_durations(stage: Stage):
    await stage.job(retries=1)
    await stage.node.part(RolloutsPart).rollouts.put(
        NAMESPACE, "job", {"change": {"timeout": "5m"}, "share": "50%", "by": "${params.v}"}, **WHO
    )
    worker = await stage.worker(1)
    seen: dict[int, list[UUID]] = {1: [], 2: []}
    n = 0
    while min(map(len, seen.values())) < 3:
        n += 1
        id = await stage.submit(params=Raw(b'{"v":%d}' % n))
        assert await stage.starts(id)
        version = await version_of(stage, id)
        stage.world.clock.advance(2_000_000 if version == 2 else 500_000)
        await worker.end()
        seen[version].append(id)
    await stage.pass_time(2)

    shown = await stage.node.part(RolloutsPart).rollouts.get(NAMESPACE, "job")
    old, new = arm(shown, 1), arm(shown, 2)
    assert (old.succeeded, new.succeeded) == (len(seen[1]), len(seen[2]))
    assert (old.failure_rate, new.failure_rate) == (0.0, 0.0)
    assert (old.p50, new.p50) == (old.p99, new.p99)
    assert {old.p50, new.p95} & {None} == set()
    assert await stage.world.rows("SELECT count(*) FROM rollout_counts WHERE outcome = 'failed'") == [(0,)]


async def test_too_many_failures_abort_it_by_themselves(stage: Stage):
    told: list[str] = []
    stage.node.base.hints.listen(lambda hint: told.extend(e.state for e in hint.events if e.kind == "rollout"))
    await stage.job(retries=3)
    await try_out(stage, "100%", abortAbove="20%", minimum=2)
    worker = await stage.worker(2)

    for _ in range(2):
        assert await stage.starts(await stage.submit())
    await worker.end("failed")
    await stage.pass_time(2)

    shown = await stage.node.part(RolloutsPart).rollouts.get(NAMESPACE, "job")
    assert (shown.state, shown.changed_by, told) == ("aborted", None, ["on", "aborted"])
    assert shown.cause == "2 of 2 attempts of version 2 failed (100 %), more than 20 %."
    assert arm(shown, 2).retried == 2
    assert await version_of(stage, await stage.submit()) == 1


@pytest.mark.parametrize("failed_first", [True, False])
async def test_a_version_is_judged_when_it_reaches_the_minimum(stage: Stage, failed_first: bool):
    await stage.job()
    await try_out(stage, "100%", abortAbove="20%", minimum=2)
    worker = await stage.worker(1)

    for failed in (failed_first, not failed_first):
        assert await stage.starts(await stage.submit())
        await worker.end("failed" if failed else "success")
        await stage.pass_time(2)

    assert (await stage.node.part(RolloutsPart).rollouts.get(NAMESPACE, "job")).state == "aborted"


async def test_rollouts_are_judged_after_an_outage_of_the_store(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    service = stage.node.part(RolloutsPart).rollouts
    worker = await stage.worker(2)
    for name in ("job", "other"):
        await stage.job(name)
        body = {"change": {"timeout": "5m"}, "share": "100%", "abortAbove": "20%", "minimum": 1}
        await service.put(NAMESPACE, name, body, **WHO)
        assert await stage.starts(await stage.submit(name))
    await worker.end("failed")
    with monkeypatch.context() as patched:
        patched.setattr(stage.node.store, "read", AsyncMock(side_effect=StoreUnavailable("The store is away.")))
        stage.world.clock.advance(2 * SECOND)
        with pytest.raises(StoreUnavailable):
            await service.step()

    await stage.pass_time(2)

    assert [(await service.get(NAMESPACE, name)).state for name in ("job", "other")] == ["aborted"] * 2


async def test_while_it_is_on_the_definition_stays_as_it_is(stage: Stage):
    await stage.job()
    await try_out(stage, "10%")
    for change in (
        stage.node.definitions.jobs.edit(NAMESPACE, "job", {"timeout": "7m"}),
        stage.node.definitions.jobs.rollback(NAMESPACE, "job", 2),
        try_out(stage, "10%", {"timeout": "9m"}),
    ):
        with pytest.raises(Conflict, match="rollout"):
            await change
    assert (await stage.node.definitions.jobs.pause(NAMESPACE, "job")).state == "paused"
    with pytest.raises(Stale):
        await stage.node.part(RolloutsPart).rollouts.abort(NAMESPACE, "job", if_match=7, **WHO)


async def test_steps_of_workflows_use_the_rollout(stage: Stage):
    await stage.job()
    await try_out(stage)
    await stage.node.definitions.jobs.create(
        NAMESPACE, {"name": "flow", "workflow": {"steps": [{"name": "a", "job": "job"}]}}
    )
    with pytest.raises(Conflict, match="workflow"):
        await stage.node.part(RolloutsPart).rollouts.put(
            NAMESPACE, "flow", {"change": {"priority": 7}, "share": "10%"}, **WHO
        )
    worker = await stage.worker(1)
    await stage.submit("flow")
    for _ in range(3):
        await stage.pass_time()
    await worker.ask()
    await worker.end()
    await stage.pass_time(2)

    rows = await stage.world.rows("SELECT p.version FROM parcels p JOIN jobs j ON j.id = p.job WHERE j.name = 'job'")
    assert rows == [(2,)]
    assert arm(await stage.node.part(RolloutsPart).rollouts.get(NAMESPACE, "job"), 2).succeeded == 1


async def test_no_version_of_a_rollout_is_a_workflow(stage: Stage):
    flow = {"command": None, "workflow": {"steps": [{"name": "a", "command": "true"}]}}
    await stage.node.definitions.jobs.create(NAMESPACE, {"name": "job", "workflow": flow["workflow"]})
    await stage.node.definitions.jobs.edit(NAMESPACE, "job", {"workflow": None, "command": "true"})
    for body in ({"change": flow, "share": "50%"}, {"version": 1, "share": "50%"}):
        with pytest.raises(Conflict, match="workflow"):
            await stage.node.part(RolloutsPart).rollouts.put(NAMESPACE, "job", body, **WHO)


async def test_invalid_rollouts_are_refused(stage: Stage):
    await stage.job()
    await stage.node.definitions.jobs.edit(NAMESPACE, "job", {"timeout": "7m"})
    with pytest.raises(NotFound, match="no version 9"):
        await stage.node.part(RolloutsPart).rollouts.put(NAMESPACE, "job", {"version": 9, "share": "10%"}, **WHO)
    with pytest.raises(BadInput, match="has no effect"):
        await try_out(stage, "10%", {"timeout": "7m"})
    with pytest.raises(BadInput, match="rename"):
        await try_out(stage, "10%", {"name": "other"})
    with pytest.raises(NotFound, match="never had"):
        await stage.node.part(RolloutsPart).rollouts.get(NAMESPACE, "job")
    await stage.node.part(RolloutsPart).rollouts.put(NAMESPACE, "job", {"versions": {"1": 1, "2": 1}}, **WHO)
    with pytest.raises(BadInput, match="does not try version 2"):
        await stage.node.part(RolloutsPart).rollouts.promote(NAMESPACE, "job", 2, **WHO)
