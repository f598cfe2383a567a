"""Changes of limits while executions are queued and running."""

from collections.abc import Awaitable
from uuid import UUID

import pytest
from msgspec import Raw

from horae.engine.admission.limits import LimitReconciler
from horae.engine.topics import Topics
from horae.model.admission.keys import KEYED
from horae.model.base.ids import execution_id
from horae.store.admission import adoption, holder_sweep, holders
from tests.engine.explain_stage import Stage
from tests.engine.outage import fails
from tests.store_contract.world import NAMESPACE, TestJob

pytestmark = pytest.mark.parametrize("store_url", ["memory", "postgres"], indirect=True)


async def later(stage: Stage, made: Awaitable[UUID]) -> UUID:
    """Submit a moment after the previous submission, so that their order is defined."""
    stage.world.clock.advance(1)
    return await made


async def started(stage: Stage, id: UUID) -> bool:
    """Return whether an execution runs after a worker asked once more."""
    await stage.workers[0].ask()
    return await stage.runs(id)


async def test_a_new_limit_applies_to_an_existing_backlog(stage: Stage):
    await stage.job()
    worker = await stage.worker(slots=3)
    first, second, third = [await later(stage, stage.submit()) for _ in range(3)]
    await worker.ask(free=1)
    assert await stage.runs(first)

    await stage.node.definitions.jobs.edit(NAMESPACE, "job", {"concurrency": 1})
    await stage.look()
    worker.free = 2
    assert not await started(stage, second)
    assert list(await stage.blockers(third)) == ["limit"]

    await worker.end()
    assert await stage.starts(second)
    assert not await started(stage, third)


@pytest.mark.parametrize("crash", [False, True], ids=["a failure", "a crash"])
async def test_a_new_limit_outlasts_a_failure_and_a_crash(stage: Stage, monkeypatch, crash: bool):
    await stage.job()
    await stage.worker(slots=3)
    first, second = [await later(stage, stage.submit()) for _ in range(2)]
    await stage.look()
    limits = stage.node.admission.limit_reconciler
    await stage.node.definitions.jobs.edit(NAMESPACE, "job", {"concurrency": 1})
    await fails(monkeypatch, limits, adoption, "unmarked_sessions")

    if crash:
        limits._jobs.clear()
        store = stage.node.store
        limits = LimitReconciler(stage.world.env, store, stage.node.base.hints, Topics(store))
    await limits.step()
    await stage.pass_time(1)
    assert await started(stage, first)
    assert not await started(stage, second)


async def test_keys_are_freed_although_the_first_transaction_fails(stage: Stage, monkeypatch):
    await stage.job(concurrency=1)
    await stage.submit()
    limits = stage.node.admission.limit_reconciler
    parcels = {row[0] for row in await stage.world.rows("SELECT id FROM parcels")}
    limits.note_freed(parcels)
    await fails(monkeypatch, limits, holders, "free")
    asked = []
    monkeypatch.setattr(holders, "free", lambda freed, now: asked.append(freed) or holder_sweep.admit([], now))
    await limits.step()
    assert asked == [parcels]


async def test_concurrent_submissions_come_under_a_new_limit_a_moment_later(stage: Stage):
    job = await stage.job()
    stored = await stage.node.store.job(job, NAMESPACE)
    assert stored is not None
    await stage.worker(slots=3)
    await stage.node.definitions.jobs.edit(NAMESPACE, "job", {"concurrency": 1})
    await stage.look()
    before = TestJob(id=job, spec=stored.job.spec, queue=stored.queue, lane=stored.lane, version=2)
    late = [execution_id(await later(stage, stage.world.parcel(before)), 0) for _ in range(2)]

    await stage.pass_time(4)
    await stage.look()
    assert await stage.starts(late[0])
    assert not await started(stage, late[1])


@pytest.mark.parametrize(("first", "second"), [(0, 4), (4, 2)], ids=["second adoption", "sweep"])
async def test_room_that_an_adoption_did_not_see_is_found_without_an_alarm(stage: Stage, first: int, second: int):
    """A claim may move a part of a parcel while the rest gets the key of the limit. The end of this part does not free
    the key, since its slice does not show that the parcel has one.
    """
    job = await stage.job()
    stored = await stage.node.store.job(job, NAMESPACE)
    assert stored is not None
    await stage.world.parcel(TestJob(id=job, spec=stored.job.spec, queue=stored.queue, lane=stored.lane), 4)
    claiming, other = await stage.worker(slots=2), await stage.worker(slots=2)
    await stage.look()
    await claiming.ask()
    await other.ask()
    await stage.pass_time(first)
    await stage.node.definitions.jobs.edit(NAMESPACE, "job", {"concurrency": 3})
    await stage.look()
    await stage.world.do(f"UPDATE running SET flags = flags - {KEYED} WHERE session = $1", claiming.session)
    waiting = await stage.submit()
    assert list(await stage.blockers(waiting)) == ["limit"]

    await claiming.end()
    await stage.pass_time(second)

    assert "limit" not in await stage.blockers(waiting)
    assert stage.node.admission.limit_reconciler.repaired == 0


async def test_held_keys_of_a_job_are_listed_in_pages(stage: Stage):
    limits = [{"key": "${params.customer}", "concurrency": 2}]
    await stage.job(limits=limits, sequence="${params.account}", concurrency=10)
    worker = await stage.worker(slots=1)
    made = [
        await later(stage, stage.submit(params=Raw(b'{"customer": "%s", "account": "%s"}' % (customer, account))))
        for customer, account in ((b"a", b"x"), (b"a", b"x"), (b"b", b"y"), (b"b", b"z"), (b"b", b"w"))
    ]
    await worker.ask()

    keys = stage.node.admission.held_keys
    whole = await keys.page(NAMESPACE, "job")
    told = {(one.kind, one.value): (one.used, one.concurrency, one.has_waiters) for one in whole.items}
    assert told == {
        ("job", ""): (3, 10, False), ("key", "a"): (1, 2, False), ("key", "b"): (2, 2, True),
        ("sequence", "x"): (1, 1, True), ("sequence", "y"): (1, 1, False), ("sequence", "z"): (1, 1, False),
        ("sequence", "w"): (1, 1, False),
    }  # fmt: skip
    by = {(one.kind, one.value): one.holders for one in whole.items}
    assert by["key", "a"] == by["sequence", "x"] == made[:1]
    assert {one.key for one in whole.items if one.kind == "key"} == {"${params.customer}"}

    paged, cursor = [], None
    while not paged or cursor is not None:
        page = await keys.page(NAMESPACE, "job", limit=2, cursor=cursor)
        paged, cursor = paged + page.items, page.next_cursor
    assert paged == whole.items


async def test_only_the_jobs_own_keys_are_listed(stage: Stage):
    await stage.job(concurrency=1)
    await stage.job("other", concurrency=1)
    await stage.submit()
    assert (await stage.node.admission.held_keys.page(NAMESPACE, "other")).items == []


async def test_a_workflow_holds_its_keys_while_its_steps_run(stage: Stage):
    await stage.job("part")
    steps = [{"name": "one", "job": "part"}]
    await stage.node.definitions.jobs.create(
        NAMESPACE, {"name": "flow", "workflow": {"steps": steps}, "concurrency": 1}
    )
    await stage.look()
    first, second = [await later(stage, stage.submit("flow")) for _ in range(2)]
    await stage.look()

    [held] = (await stage.node.admission.held_keys.page(NAMESPACE, "flow")).items
    assert (held.used, held.holders, held.has_waiters) == (1, [first], True)
    assert (await stage.blockers(second))["limit"].details["holders"] == [str(first)]
