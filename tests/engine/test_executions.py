"""Reads and cancellation of executions, on every store."""

from typing import Any
from uuid import UUID

import msgspec
import pytest

from horae.engine.executions.executions import Executions
from horae.env import SECOND
from horae.errors import BadInput, Conflict, Gone, NotFound
from horae.features.statistics.engine.job_statistics import JobStatistics
from horae.model.admission.limits import Limit
from horae.model.base.ids import execution_id, first_id_at
from horae.model.base.instant import format_instant
from horae.model.definitions.retry import RetryPolicy
from horae.model.definitions.tasks import PythonTask
from horae.model.executions import submission
from horae.model.executions.execution import Extra
from horae.model.fleet.protocol import Failure, Register
from horae.store.admission import coarse
from horae.store.executions.promote import LONG_AGO
from horae.store.executions.reads import child_lists, execution_lists
from tests.engine.objects import base_of, executions_of
from tests.store_contract.workflow_world import begin, step, workflow
from tests.store_contract.world import (
    NAMESPACE,
    World,
    began,
    cancelled,
    failed,
    progress,
    rank,
    released,
    success,
    suspended,
)

MINUTE = 60 * SECOND
DAY = 24 * 60 * MINUTE


@pytest.fixture
def executions(world: World) -> Executions:
    return executions_of(world.store)


async def ids(executions: Executions, **filters: Any) -> list[UUID]:
    return [e.execution_id for e in (await executions.list(NAMESPACE, **filters)).items]


async def test_an_execution_is_read_in_every_state(world, executions):
    job = await world.job("report", retry=RetryPolicy(retries=2, delay=10 * SECOND, jitter=0))
    (receipt,) = await world.submit(job, due_at=world.now() + MINUTE)
    id = receipt.execution_id

    delayed = await executions.get(NAMESPACE, id)
    assert (delayed.status, delayed.reason, delayed.job_name) == ("waiting", "delay", "report")
    assert delayed.next_attempt_at == delayed.scheduled_at == "2027-01-15T08:01:00Z"
    assert delayed.started_at is delayed.result is delayed.worker_id is None

    world.clock.advance(MINUTE)
    await world.store.promote_due(0, 10, rank)
    queued = await executions.get(NAMESPACE, str(id))
    assert (queued.status, queued.queued_at, queued.next_attempt_at) == ("queued", "2027-01-15T08:01:00Z", None)

    worker = await world.worker("w1")
    (slice,) = await worker.claim(1)
    world.clock.advance(SECOND)
    await worker.exchange(started=[began(slice, world.now())], progress=[progress(slice, 0, 50.0, message="half")])
    running = await executions.get(NAMESPACE, id)
    assert (running.status, running.worker_id, running.attempt) == ("running", "w1", 1)
    assert (running.progress, running.message) == (50.0, "half")
    assert running.started_at == "2027-01-15T08:01:01Z"
    assert running.last_heartbeat is not None

    error = Failure(type="ValueError", message="bad day", traceback="Traceback ...")
    await worker.report(failed(slice, error=error, exit_code=3), policies=job.policy)
    waiting = await executions.get(NAMESPACE, id)
    assert (waiting.status, waiting.reason, waiting.retry_count) == ("waiting", "retry", 1)
    assert waiting.next_attempt_at == "2027-01-15T08:01:11Z"
    assert (waiting.error_message, waiting.progress) == ("bad day", None)

    world.clock.advance(10 * SECOND)
    await world.store.promote_due(0, 10, rank)
    (slice,) = await worker.claim(1)
    # Progress of the first attempt does not apply to the second.
    assert (await executions.get(NAMESPACE, id)).progress is None
    await worker.report(success(slice, results=[b'{"rows":7}'], exit_code=0))
    done = await executions.get(NAMESPACE, id)
    assert (done.status, done.attempt, done.retry_count, done.exit_code) == ("success", 2, 1, 0)
    assert (msgspec.json.decode(done.result), done.progress, done.error) == ({"rows": 7}, 100.0, None)
    assert msgspec.json.decode(done.params) == {"i": 0}
    assert done.completed_at == "2027-01-15T08:01:11Z"

    tries = await executions.attempts(NAMESPACE, id)
    assert [(t.attempt, t.outcome, t.worker_id) for t in tries] == [(1, "failed", "w1"), (2, "success", "w1")]
    assert (tries[0].exit_code, tries[0].error.traceback) == (3, "Traceback ...")
    shown = msgspec.json.decode(msgspec.json.encode(done))
    assert shown["executionId"] == str(id)
    assert shown["lastHeartbeat"] is None


async def test_the_last_failure_is_shown_with_its_error(world, executions):
    job = await world.job(retry=RetryPolicy(retries=1, delay=0, jitter=0))
    (receipt,) = await world.submit(job)
    worker = await world.worker()
    for _ in range(2):
        await world.store.promote_due(0, 10, rank)
        (slice,) = await worker.claim(1)
        await worker.report(
            failed(slice, error=Failure(type="Oops", message="no", traceback="tb")), policies=job.policy
        )
    ended = await executions.get(NAMESPACE, receipt.execution_id)
    assert (ended.status, ended.reason, ended.retry_count) == ("failed", "retries", 1)
    assert (ended.error.type, ended.error.traceback, ended.error_message) == ("Oops", "tb", "no")
    assert [a.outcome for a in await executions.attempts(NAMESPACE, receipt.execution_id)] == ["failed", "failed"]


async def test_items_of_one_parcel_have_their_own_results_and_times(world, executions):
    parcel = await world.parcel(await world.job(), 4)
    worker = await world.worker()
    (slice,) = await worker.claim(4)
    now = world.now()
    world.clock.advance(10 * SECOND)
    at = [now + i * SECOND for i in range(4)]
    await worker.report(
        success(slice, 0, 3, results=[b"0", b"1", b"2"], started_at=at[:3], ended_at=[t + SECOND for t in at[:3]])
    )
    second = await executions.get(NAMESPACE, execution_id(parcel, 1))
    assert (msgspec.json.decode(second.result), second.started_at) == (1, "2027-01-15T08:00:01Z")
    assert second.completed_at == "2027-01-15T08:00:02Z"
    assert (await executions.get(NAMESPACE, execution_id(parcel, 3))).status == "running"
    listed = (await executions.list(NAMESPACE)).items
    assert [msgspec.json.decode(e.params) for e in listed] == [{"i": 3}, {"i": 2}, {"i": 1}, {"i": 0}]
    assert [e.result and msgspec.json.decode(e.result) for e in listed] == [None, 2, 1, 0]
    assert [e.started_at for e in listed[1:]] == [f"2027-01-15T08:00:0{i}Z" for i in (2, 1, 0)]


async def test_a_large_result_is_left_out_of_lists(world, executions):
    parcel = await world.parcel(await world.job(), 2)
    worker = await world.worker()
    (slice,) = await worker.claim(2)
    large = b'"' + b"x" * 100_000 + b'"'
    await worker.report(success(slice, results=[large, b'"' + b"y" * 5000 + b'"']))
    assert (await executions.get(NAMESPACE, execution_id(parcel, 0))).result == msgspec.Raw(large)
    assert [e.result for e in (await executions.list(NAMESPACE)).items] == [msgspec.UNSET, msgspec.UNSET]
    assert "result" not in msgspec.json.decode(msgspec.json.encode((await executions.list(NAMESPACE)).items[0]))


async def test_a_sleeper_reads_as_running(world, executions):
    job = await world.job()
    (receipt,) = await world.submit(job)
    worker = await world.worker()
    (slice,) = await worker.claim(1)
    await worker.report(suspended(slice, world.now() + MINUTE))
    assert (await executions.get(NAMESPACE, receipt.execution_id)).status == "running"
    assert await ids(executions, status="running") == [receipt.execution_id]
    assert await ids(executions, status="waiting") == []
    assert (await JobStatistics(world.env, world.store).counts(NAMESPACE)).running == 1


async def test_a_suspended_execution_keeps_its_first_start_time(world, executions):
    (receipt,) = await world.submit(await world.job())
    worker = await world.worker()
    (slice,) = await worker.claim(1)
    first = format_instant(world.now())

    async def shown() -> set[str | None]:
        (listed,) = (await executions.list(NAMESPACE)).items
        return {listed.started_at, (await executions.get(NAMESPACE, receipt.execution_id)).started_at}

    for _ in range(2):
        world.clock.advance(SECOND)
        await worker.report(suspended(slice, world.now() + MINUTE))
        assert await shown() == {first}
        world.clock.advance(MINUTE)
        await world.store.promote_due(LONG_AGO, 10, rank)
        (slice,) = await worker.claim(1)
        assert await shown() == {first}
    await worker.report(success(slice))
    assert await shown() == {first}


async def test_unknown_and_expired_executions_have_different_errors(world, executions):
    await world.submit(await world.job())
    with pytest.raises(NotFound, match="There is no execution"):
        await executions.get(NAMESPACE, UUID(int=first_id_at(world.now() + DAY).int | 7 << 76 | 2 << 62))
    with pytest.raises(NotFound, match="not an execution id"):
        await executions.get(NAMESPACE, "abc")
    old = UUID(int=first_id_at(world.now()).int | 7 << 76 | 2 << 62 | 5)
    with pytest.raises(NotFound):
        await executions.get(NAMESPACE, old)
    world.clock.advance(31 * DAY)
    with pytest.raises(Gone, match="expired"):
        await executions.get(NAMESPACE, old)


async def test_an_item_beyond_its_parcel_and_another_namespace_are_not_found(world, executions):
    parcel = await world.parcel(await world.job(), 2)
    with pytest.raises(NotFound):
        await executions.get(NAMESPACE, execution_id(parcel, 2))
    with pytest.raises(NotFound):
        await executions.get(2, execution_id(parcel, 0))
    assert (await executions.list(2)).items == []


async def test_lists_are_newest_first_across_all_shelves(world, executions):
    job = await world.job()
    worker = await world.worker()
    parcels = []
    for _ in range(4):
        parcels.append(await world.parcel(job, 5))
        world.clock.advance(SECOND)
    late = await world.parcel(job, 3, due_at=world.now() + MINUTE)
    (first, second) = await worker.claim(8)
    await worker.report(success(first, 1, 3))
    await worker.report(cancelled(second, 0, 1), released(second, 1, 2))
    expected = [execution_id(late, i) for i in (2, 1, 0)]
    expected += [execution_id(p, i) for p in reversed(parcels) for i in range(4, -1, -1)]
    for limit in (1, 2, 4, 7, 50):
        seen: list[UUID] = []
        cursor = None
        while True:
            page = await executions.list(NAMESPACE, limit=limit, cursor=cursor)
            seen += [e.execution_id for e in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert seen == expected


async def test_filters(world, executions):
    one, two = await world.job("one"), await world.job("two", queue="slow", retry=RetryPolicy(retries=0))
    w1, w2 = await world.worker("w1"), await world.worker("w2")
    a = await world.parcel(one, 2)
    (slice,) = await w1.claim(2)
    await w1.report(success(slice))
    world.clock.advance(SECOND)
    middle = world.now()
    b = await world.parcel(two, 2)
    (slice,) = await w2.claim(2)
    await w2.report(failed(slice, 0, 1), policies=two.policy)
    world.clock.advance(SECOND)
    c = await world.parcel(one, 1, parent=execution_id(b, 1))
    world.clock.advance(SECOND)
    d = await world.parcel(one, 1, due_at=world.now() + MINUTE)
    all_a, all_b = [execution_id(a, 1), execution_id(a, 0)], [execution_id(b, 1), execution_id(b, 0)]

    assert await ids(executions, job="two") == all_b
    assert await ids(executions, job=str(one.id)) == [d, c, *all_a]
    assert await ids(executions, status="success") == all_a
    assert await ids(executions, status="failed") == all_b[1:]
    assert await ids(executions, status="running") == all_b[:1]
    assert await ids(executions, status="queued") == [c]
    assert await ids(executions, status="waiting") == [d]
    assert await ids(executions, status="pending") == [d, c]
    assert await ids(executions, status="failed", job="one") == []
    assert await ids(executions, queue="slow") == all_b
    assert await ids(executions, worker="w1") == all_a
    assert await ids(executions, worker="w2") == all_b
    assert await ids(executions, parent=str(execution_id(b, 1))) == [c]
    assert await ids(executions, parent=str(execution_id(b, 1)), job="one") == [c]
    assert await ids(executions, parent=str(execution_id(b, 1)), job="two") == []
    assert await ids(executions, since=middle) == [d, c, *all_b]
    assert await ids(executions, until=middle) == all_a
    assert await ids(executions, since="2027-01-15T08:00:01Z", until="2027-01-15T08:00:02Z") == all_b
    with pytest.raises(NotFound):
        await executions.list(NAMESPACE, job="three")


async def test_tags_belong_to_items(world, executions):
    job = await world.job()
    (wanted,) = world.wanted(job)
    tagged = [
        msgspec.structs.replace(wanted, extra=Extra(tags=tags, key=key, origin="submit"))
        for tags, key in (({"team": "a"}, "k"), ({}, None), ({"team": "b"}, None))
    ]
    done = await world.store.submit([submission.Submission(executions=tagged)])
    first, _, third = [r.execution_id for r in done.answers[0]]
    assert await ids(executions, tag="team") == [third, first]
    assert await ids(executions, tag="team=a") == [first]
    shown = await executions.get(NAMESPACE, first)
    assert (shown.tags, shown.key, shown.origin) == ({"team": "a"}, "k", "submit")


def few_windows(monkeypatch) -> None:
    monkeypatch.setattr(execution_lists, "WINDOWS", (2, 3))
    monkeypatch.setattr(execution_lists, "MOST_WINDOWS", 2)


async def test_a_page_reads_a_limited_number_of_rows_for_a_rare_match(world, executions, monkeypatch):
    few_windows(monkeypatch)
    job = await world.job()
    elsewhere, worker = await world.worker("elsewhere"), await world.worker()
    rare = await world.parcel(job, 1)
    (slice,) = await elsewhere.claim(1)
    await elsewhere.report(success(slice))
    world.clock.advance(SECOND)
    for _ in range(9):
        await world.parcel(job, 1)
    for slice in await worker.claim(9):
        await worker.report(success(slice))
    pages, cursor = [], None
    while not pages or cursor is not None:
        page = await executions.list(NAMESPACE, worker="elsewhere", limit=1, cursor=cursor)
        pages.append([e.execution_id for e in page.items])
        cursor = page.next_cursor
    assert pages[0] == []
    assert [id for found in pages for id in found] == [rare]


async def test_old_cancelled_executions_are_found_by_one_page(world, executions, monkeypatch):
    few_windows(monkeypatch)
    job = await world.job()
    worker = await world.worker()
    rare = await world.parcel(job, 1)
    (slice,) = await worker.claim(1)
    await worker.report(cancelled(slice))
    world.clock.advance(SECOND)
    for _ in range(9):
        await world.parcel(job, 1)
    for slice in await worker.claim(9):
        await worker.report(success(slice))

    for filters in ({}, {"job": "job"}):
        page = await executions.list(NAMESPACE, status="cancelled", limit=1, **filters)
        assert [one.execution_id for one in page.items] == [rare]


async def test_a_running_workflow_is_found_by_one_page_among_many_waiting_executions(world, executions, monkeypatch):
    few_windows(monkeypatch)
    job = await world.job()
    runs = await world.parcel(job, 1, due_at=world.now() + 3600 * SECOND)
    ((was,),) = await world.rows("SELECT reason FROM waiting")
    await world.do("UPDATE waiting SET reason = 'children'")
    world.clock.advance(SECOND)
    for _ in range(9):
        await world.parcel(job, 1, due_at=world.now() + 3600 * SECOND)

    page = await executions.list(NAMESPACE, status="running", limit=1)
    assert [one.execution_id for one in page.items] == [runs]
    await world.do("UPDATE waiting SET reason = $1", was)


async def test_children_of_an_old_execution_are_found_by_one_page(world, executions, monkeypatch):
    for module in (execution_lists, child_lists):
        monkeypatch.setattr(module, "WINDOWS", (2, 3))
        monkeypatch.setattr(module, "MOST_WINDOWS", 2)
    job = await world.job()
    above = execution_id(await world.parcel(job, 1), 0)
    children = []
    for _ in range(2):
        world.clock.advance(SECOND)
        children.append(await world.parcel(job, 2, parent=above))
    for _ in range(9):
        world.clock.advance(SECOND)
        await world.parcel(job, 3)
    worker = await world.worker()
    await worker.claim(1)
    slice, *_ = await worker.claim(2)
    await worker.report(success(slice, slice.lo, slice.lo + 1))
    expected = [execution_id(parcel, item) for parcel in reversed(children) for item in (1, 0)]
    whole = await executions.list(NAMESPACE, parent=str(above))
    assert [e.execution_id for e in whole.items] == expected
    assert whole.next_cursor is None
    seen, cursor = [], None
    while not seen or cursor is not None:
        page = await executions.list(NAMESPACE, parent=str(above), limit=1, cursor=cursor)
        seen += [e.execution_id for e in page.items]
        cursor = page.next_cursor
    assert seen == expected
    (ended,) = (await executions.list(NAMESPACE, parent=str(above), status="success")).items
    assert ended.execution_id == execution_id(slice.parcel, slice.lo)


@pytest.mark.parametrize(
    ("filters", "field"),
    [
        ({"status": "done"}, "status"),
        ({"limit": 0}, "limit"),
        ({"limit": 1001}, "limit"),
        ({"cursor": "!"}, "cursor"),
        ({"cursor": "WzEsMl0"}, "cursor"),
        ({"since": "yesterday"}, "since"),
        ({"until": "2026-01-01"}, "until"),
        ({"tag": "=x"}, "tag"),
    ],
)
async def test_invalid_filters_are_refused(memory_executions, filters, field):
    with pytest.raises(BadInput) as refused:
        await memory_executions.list(NAMESPACE, **filters)
    assert refused.value.fields["field"] == field


@pytest.fixture
async def memory_executions(env):
    from horae.store.contract import Store
    from horae.store.open import open_store_driver

    driver = await open_store_driver("sqlite://", env)
    await driver.migrate()
    yield executions_of(Store(driver, env))
    await driver.close()


async def test_counts_by_state(world):
    one, two = await world.job("one"), await world.job("two")
    await world.submit(one, 3)
    await world.submit(one, 2, due_at=world.now() + MINUTE)
    await (await world.worker()).claim(1)
    await world.submit(two, 4)
    statistics = JobStatistics(world.env, world.store)
    counts = await statistics.counts(NAMESPACE)
    assert (counts.waiting, counts.queued, counts.running) == (2, 6, 1)
    assert (await statistics.counts(NAMESPACE, "two")).queued == 4


async def test_cancelling(world):
    asked: list[UUID] = []
    cancelled: list[tuple[UUID, int]] = []
    base = base_of(world.store)
    base.hints.listen(lambda hint: asked.extend(hint.sessions))
    base.topics.cancelled.subscribe("test", lambda of: cancelled.append(tuple(of)))
    executions = executions_of(world.store, base)
    job = await world.job()
    parcel = await world.parcel(job, 3)
    worker = await world.worker()
    (slice,) = await worker.claim(1)
    waits = await executions.cancel(NAMESPACE, execution_id(parcel, 2), "not needed")
    assert (waits.outcome, waits.execution.status, waits.execution.reason) == ("cancelled", "cancelled", "not needed")
    assert cancelled == [(job.id, 1)]
    again = await executions.cancel(NAMESPACE, execution_id(parcel, 2))
    assert again.execution.reason == "not needed"
    runs = await executions.cancel(NAMESPACE, execution_id(parcel, 0))
    assert (runs.outcome, runs.execution.status, asked) == ("requested", "running", [worker.session])
    await worker.report(success(slice))
    with pytest.raises(Conflict, match="has ended: success"):
        await executions.cancel(NAMESPACE, execution_id(parcel, 0))
    with pytest.raises(NotFound):
        await executions.cancel(2, execution_id(parcel, 1))
    assert await world.states(parcel) == ["success", "queued", "cancelled"]


async def test_a_workflow_that_ends_at_once_when_it_is_cancelled_is_counted_once(world):
    base = base_of(world.store)
    events: list[str] = []
    base.hints.listen(lambda hint: events.extend(event.state for event in hint.events if event.kind == "execution"))
    flow = await workflow(world, step("a", await world.job("one")), queue="flows")
    await world.store.write(lambda: coarse.put(Limit(concurrency=5), queue=flow.queue))  # it begins a moment later
    execution = await begin(world, flow)

    cancelled = await executions_of(world.store, base).cancel(NAMESPACE, execution)

    assert (cancelled.outcome, cancelled.execution.status) == ("cancelled", "cancelled")
    assert (base.counters.totals["cancelled"], events) == (1, ["cancelled"])


async def test_an_execution_without_a_fitting_worker_has_a_hint(world, executions):
    job = await world.job("digest")
    (receipt,) = await world.submit(job)

    async def hint(id: UUID) -> str | None:
        view = await executions.get(NAMESPACE, id)
        listed = {e.execution_id: e.hint for e in (await executions.list(NAMESPACE)).items}
        assert listed[id] == view.hint
        return view.hint

    assert "no live worker" in str(await hint(receipt.execution_id))
    await world.worker("w1")
    assert await hint(receipt.execution_id) is None

    stored = await world.store.ensure_lane(NAMESPACE, "default", ("function:pkg.digest",))
    await world.do("UPDATE parcels SET lane = $1", stored[1].id)
    assert "knows the function pkg.digest" in str(await hint(receipt.execution_id))
    knows = Register(protocol=1, worker="w2", functions=[{"name": "pkg.digest"}])
    presence = msgspec.convert(msgspec.to_builtins(knows), Register)
    await world.store.register(NAMESPACE, presence)
    assert await hint(receipt.execution_id) is None
    assert PythonTask(function="pkg.digest").function == "pkg.digest"
