"""Operations on jobs, on every store."""

import asyncio
from typing import Any
from uuid import UUID

import msgspec
import pytest

from horae.engine.definitions import job_changes, job_deletions, job_lists
from horae.engine.definitions.job_plans import JobPlans
from horae.engine.definitions.jobs import Jobs
from horae.engine.server_node import ServerNode
from horae.env import SECOND
from horae.errors import BadInput, Conflict, NotFound, Stale
from horae.model.base.ids import execution_id, parcel_of
from horae.model.tenancy.namespace import NamespaceDefinition
from horae.store.executions.leaving import cancel_job
from horae.store.tenancy import namespaces
from tests.engine.objects import deletions_of, executions_of, jobs_of
from tests.store_contract.workflow_world import begin, look
from tests.store_contract.world import (
    NAMESPACE,
    TestJob,
    World,
    began,
    failed,
    lead,
    progress,
    rank,
    released,
    success,
    suspended,
)

MINUTE = 60 * SECOND


@pytest.fixture
def told() -> list[tuple[UUID, int, str]]:
    return []


@pytest.fixture
def jobs(world: World, told: list[tuple[UUID, int, str]]) -> Jobs:
    return jobs_of(world.store, lambda hint: told.extend((e.id, e.namespace, e.state) for e in hint.events), rank=rank)


async def create(jobs: Jobs, name: str = "report", **fields: Any) -> Any:
    return await jobs.create(NAMESPACE, {"name": name, "command": "true", **fields})


async def submittable(world: World, job: UUID) -> TestJob:
    """Return the job as the test world submits it."""
    stored = await world.store.job(job, NAMESPACE)
    assert stored is not None
    return TestJob(
        id=job, spec=stored.job.spec, queue=stored.queue, lane=stored.lane, version=stored.job.version
    )  # fmt: skip


async def test_a_job_is_created_and_read_by_name_and_id(jobs, world, told):
    made = await create(jobs, schedule="0 0 * * *", retries=3, timeout=3600, tags=["nightly"])
    assert (made.status, made.state, made.version) == ("scheduled", "active", 1)
    assert made.schedule == "0 0 * * *"
    assert made.schedule_text == "at 00:00 every day, UTC time"
    assert made.next_fire_at is not None
    assert (made.timeout, made.retries, made.tags) == ("1h", 3, {"nightly": ""})
    assert await jobs.get(NAMESPACE, "report") == made == await jobs.get(NAMESPACE, str(made.job_id))
    assert told == [(made.job_id, NAMESPACE, "active")]
    shown = msgspec.json.decode(msgspec.json.encode(made))
    assert shown["jobId"] == str(made.job_id)
    assert shown["command"] == ["true"]
    assert "python" not in shown
    assert {"lastExecution", "startedAt", "progress", "executionId"} <= shown.keys()


async def test_a_name_is_given_once(jobs, world):
    made = await create(jobs)
    with pytest.raises(Conflict) as refused:
        await create(jobs, queue="elsewhere")
    assert refused.value.fields["jobId"] == str(made.job_id)
    assert await world.rows("SELECT name FROM queues WHERE name = 'elsewhere'") == []


async def test_a_wrong_name_suggests_the_right_one(jobs):
    await create(jobs, "email")
    with pytest.raises(NotFound, match=r'No job named "emial"\. Did you mean "email"\?'):
        await jobs.get(NAMESPACE, "emial")
    with pytest.raises(NotFound, match="horae jobs list"):
        await jobs.get(NAMESPACE, "xyz")
    with pytest.raises(NotFound, match="No job has the id"):
        await jobs.get(NAMESPACE, "0195c1d2-0000-7000-8000-000000000000")


async def test_another_namespace_sees_nothing(jobs):
    made = await create(jobs)
    for ref in ("report", str(made.job_id)):
        with pytest.raises(NotFound):
            await jobs.get(2, ref)
    assert (await jobs.list(2)).items == []


async def test_a_schedule_that_is_probably_not_meant_is_accepted_with_a_note(jobs):
    made = await create(jobs, schedule="*/90 * * * *", triggers=[{"cron": "* 9 * * *", "name": "mornings"}])
    schedule, mornings = made.notes
    assert schedule == 'The step of "*/90" in the minute field is longer than the field, so it means 0 only.'
    assert mornings.startswith("mornings: It fires every minute of each matching hour")
    assert (await jobs.get(NAMESPACE, "report")).notes == made.notes


async def test_missing_dependencies_are_named_all_and_change_nothing(jobs, world):
    with pytest.raises(BadInput) as refused:
        await create(jobs, dependencies=["extract", "load"])
    assert refused.value.fields == {"field": "dependencies", "missing": ["extract", "load"]}
    assert '"extract", "load"' in refused.value.detail
    assert "horae jobs create extract" in refused.value.remedy
    assert "POST /api/v1/jobs" in refused.value.remedy
    assert await world.rows("SELECT id FROM jobs") == []


async def test_dependencies_by_name_or_id_are_stored_and_shown_with_their_conditions(jobs, world):
    extract, load = await create(jobs, "extract"), await create(jobs, "load")
    after_load = {"job": str(load.job_id), "condition": "finished"}
    made = await create(jobs, dependencies=["extract", after_load, str(extract.job_id)])
    assert made.dependencies == ["extract", {"job": "load", "condition": "finished"}]
    assert made.notes == []
    rows = await world.rows("SELECT upstream, condition FROM dependencies WHERE job = $1", made.job_id)
    assert dict(rows) == {extract.job_id: "success", load.job_id: "finished"}
    edited = await jobs.edit(NAMESPACE, "report", {"dependencyTimeout": "2h", "timeout": "1m"})
    assert (edited.dependencies, edited.dependency_timeout) == (made.dependencies, "2h")


async def test_a_circle_of_dependencies_is_named_and_refused(jobs, world):
    await create(jobs, "a")
    await create(jobs, "b", dependencies=["a"])
    await create(jobs, "c", dependencies=["b"])
    with pytest.raises(BadInput) as refused:
        await jobs.edit(NAMESPACE, "a", {"dependencies": ["c"], "queue": "new"})
    assert refused.value.fields["path"] == ["a", "c", "b", "a"]
    assert "a -> c -> b -> a" in refused.value.detail
    assert (await jobs.get(NAMESPACE, "a")).version == 1
    assert await world.rows("SELECT name FROM queues WHERE name = 'new'") == []


async def test_an_edit_is_a_version(jobs, told):
    made = await create(jobs, timeout="5m", params={"a": 1})
    edited = await jobs.edit(NAMESPACE, "report", {"params": {"b": 2}, "queue": "slow"}, if_match=1)
    assert (edited.version, edited.params, edited.timeout, edited.queue) == (2, {"a": 1, "b": 2}, "5m", "slow")
    assert [v.version for v in await jobs.versions(NAMESPACE, "report")] == [2, 1]
    with pytest.raises(Stale) as stale:
        await jobs.edit(NAMESPACE, "report", {"timeout": "6m"}, if_match=1)
    assert stale.value.fields["version"] == 2
    same = await jobs.edit(NAMESPACE, str(made.job_id), {"timeout": 300})
    assert same.version == 2
    assert len(told) == 2


async def test_a_replacement_is_the_whole_definition(jobs):
    await create(jobs, timeout="5m", tags=["x"])
    edited = await jobs.edit(NAMESPACE, "report", {"python": "digest"}, replace=True)
    assert (edited.timeout, edited.tags, edited.python) == (None, {}, "digest")


async def test_a_rename_frees_the_old_name_and_respects_others(jobs):
    await create(jobs, "a")
    await create(jobs, "b")
    with pytest.raises(Conflict, match='"b" exists'):
        await jobs.edit(NAMESPACE, "a", {"name": "b"})
    assert (await jobs.edit(NAMESPACE, "a", {"name": "c"})).name == "c"
    assert (await create(jobs, "a")).version == 1


async def test_put_creates_changes_or_keeps_a_job(jobs, world):
    body = {"name": "report", "command": "true", "schedule": {"at": "2027-03-01T08:00:00Z"}}
    first, how = await jobs.put(NAMESPACE, body)
    assert how == "created"
    world.clock.advance(100 * 86_400 * SECOND)
    assert (await jobs.put(NAMESPACE, body))[1] == "unchanged"
    changed, how = await jobs.put(NAMESPACE, {**body, "timeout": "5m"})
    assert (how, changed.version, changed.job_id) == ("changed", 2, first.job_id)


async def test_put_into_a_namespace_that_is_being_deleted_says_so(jobs, world):
    id = await world.store.change(lambda now: namespaces.create("other", NamespaceDefinition(), now))
    await world.store.change(lambda now: namespaces.delete(id, now))
    for change in (jobs.put, jobs.create, JobPlans(world.store, jobs).create):
        with pytest.raises(Conflict, match="being deleted"):
            await change(id, {"name": "report", "command": "true"})


@pytest.mark.parametrize(
    ("name", "change", "refusal"),
    [
        ("a", {"dependencies": ["b"]}, "form a circle: a -> b -> a"),
        ("flow", {"workflow": [{"name": "x", "job": "flow"}]}, "endless loop: flow -> flow"),
        ("a", {"name": "b"}, 'named "b" exists'),
        (None, {"name": "b", "command": "true"}, 'named "b" exists'),
    ],
)
async def test_a_dry_run_refuses_what_the_change_refuses(jobs, world, name, change, refusal):
    await create(jobs, "a")
    await create(jobs, "b", dependencies=["a"])
    await create(jobs, "flow", command=None, workflow=[{"name": "x", "job": "a"}])
    plans, before = JobPlans(world.store, jobs), await world.rows("SELECT * FROM job_versions")
    for each in (plans, jobs):
        with pytest.raises((BadInput, Conflict), match=refusal):
            await (each.create(NAMESPACE, change) if name is None else each.edit(NAMESPACE, name, change))
    planned = await plans.edit(NAMESPACE, "b", {"dependencies": [], "name": "d"})
    assert (planned.name, planned.version) == ("d", 2)
    assert await world.rows("SELECT * FROM job_versions") == before


async def test_rollback_writes_an_old_version_anew(jobs):
    await create(jobs, timeout="5m")
    await jobs.edit(NAMESPACE, "report", {"timeout": "6m"})
    back = await jobs.rollback(NAMESPACE, "report", 1)
    assert (back.version, back.timeout) == (3, "5m")
    assert [v.current for v in await jobs.versions(NAMESPACE, "report")] == [True, False, False]
    with pytest.raises(NotFound, match="no version 9"):
        await jobs.rollback(NAMESPACE, "report", 9)


async def test_only_a_changed_schedule_changes_the_trigger(jobs, world):
    made = await create(jobs, schedule={"every": "1h"})
    (before,) = await world.rows("SELECT id, valid_to FROM triggers")
    await jobs.edit(NAMESPACE, "report", {"timeout": "5m"})
    assert await world.rows("SELECT id, valid_to FROM triggers") == [before]
    world.clock.advance(90 * MINUTE)
    edited = await jobs.edit(NAMESPACE, "report", {"schedule": {"every": "30m"}})
    assert edited.next_fire_at != made.next_fire_at
    rows = await world.rows("SELECT id, state, valid_to FROM triggers WHERE id = $1", before[0])
    assert rows == [(before[0], "ended", world.now())]
    # The fire at one hour was due and undecided: the ledger has its disposition.
    fires = await world.rows("SELECT disposition, cause FROM fires WHERE trigger_id = $1", before[0])
    assert fires == [("skipped-misfire", "the trigger was changed before this was decided")]
    gone = await jobs.edit(NAMESPACE, "report", {"schedule": None})
    assert (gone.status, gone.next_fire_at, gone.schedule) == ("idle", None, None)


async def test_an_instant_that_was_decided_does_not_fire_again(jobs, world):
    at = "2027-03-01T08:00:00Z"
    await create(jobs, schedule={"at": at})
    world.clock.advance(100 * 86_400 * SECOND)
    fired = await world.store.fire(10, lead)
    assert len(fired.parcels) == 1
    edited = await jobs.edit(NAMESPACE, "report", {"schedule": {"at": at, "misfire": "skip"}, "timeout": "1m"})
    assert edited.version == 2
    await jobs.delete(NAMESPACE, "report")
    restored = await jobs.restore(NAMESPACE, "report")
    assert restored.next_fire_at is None
    assert (await world.store.fire(10, lead)).parcels == []
    with pytest.raises(BadInput, match="has passed"):
        await jobs.edit(NAMESPACE, "report", {"schedule": {"at": "2027-03-02T08:00:00Z"}})


async def test_a_pause_stops_triggers_and_a_resumption_says_what_was_left_out(jobs, world, told):
    made = await create(jobs, schedule={"every": "1h"})
    paused = await jobs.pause(NAMESPACE, "report")
    assert (paused.status, paused.state, paused.next_fire_at) == ("paused", "paused", None)
    assert await jobs.pause(NAMESPACE, "report") == paused
    world.clock.advance(150 * MINUTE)
    assert (await world.store.fire(10, lead)).timers == 0
    resumed = await jobs.resume(NAMESPACE, "report")
    assert (resumed.status, resumed.version) == ("scheduled", 1)
    fires = await world.rows("SELECT disposition, last - first FROM fires")
    assert fires == [("skipped-paused", 60 * MINUTE)]
    assert [state for _, _, state in told] == ["active", "paused", "active"]
    assert made.job_id == resumed.job_id


async def test_a_schedule_changed_during_a_pause_waits_for_the_resumption(jobs, world):
    await create(jobs, schedule={"every": "1h"})
    await jobs.pause(NAMESPACE, "report")
    world.clock.advance(90 * MINUTE)
    edited = await jobs.edit(NAMESPACE, "report", {"schedule": {"every": "30m"}})
    assert (edited.status, edited.next_fire_at) == ("paused", None)
    assert await world.rows("SELECT disposition FROM fires") == [("skipped-paused",)]
    assert (await jobs.resume(NAMESPACE, "report")).status == "scheduled"


async def test_a_resumption_queues_waiting_executions(jobs, world):
    made = await create(jobs)
    parcel = await world.parcel(await submittable(world, made.job_id), 2)
    await jobs.pause(NAMESPACE, "report")
    worker = await world.worker()
    reply = await worker.exchange(free=5, paused=frozenset([made.job_id]))
    assert reply.granted == []
    assert [w.reason for w in await world.on("waiting")] == ["paused"]
    assert (await jobs.get(NAMESPACE, "report")).status == "queued"
    waits = await executions_of(world.store).get(NAMESPACE, execution_id(parcel, 0))
    assert (waits.reason, waits.hint) == ("paused", "The job is paused; resume it with `horae jobs resume report`.")
    await jobs.resume(NAMESPACE, "report")
    assert [(q.lo, q.hi) for q in await world.on("queued", parcel)] == [(0, 2)]


async def test_status_follows_the_table(jobs, world):
    made = await create(jobs, retries=1)
    job = await submittable(world, made.job_id)

    async def status() -> Any:
        return (await jobs.get(NAMESPACE, "report")).status

    assert await status() == "idle"
    await world.submit(job, due_at=world.now() + MINUTE)
    assert await status() == "idle"  # a delayed execution is not queued yet
    (receipt,) = await world.submit(job)
    assert await status() == "queued"
    worker = await world.worker()
    (slice,) = await worker.claim(1)
    running = await jobs.get(NAMESPACE, "report")
    assert (running.status, running.execution_id) == ("running", receipt.execution_id)
    assert running.started_at is not None
    assert running.last_execution.status == "running"
    world.clock.advance(SECOND)
    await worker.exchange(started=[began(slice, world.now())], progress=[progress(slice, 0, 50.0)])
    later = await jobs.get(NAMESPACE, "report")
    assert (later.progress, later.started_at) == (50.0, "2027-01-15T08:00:01Z")
    await worker.report(failed(slice), policies=job.policy)
    assert await status() == "queued"  # it waits for its retry
    world.clock.advance(10 * SECOND)
    await world.store.promote_due(0, 10, rank)
    (slice,) = await worker.claim(1)
    await worker.report(success(slice))
    done = await jobs.get(NAMESPACE, "report")
    assert (done.status, done.execution_id, done.progress) == ("idle", None, None)
    assert done.last_execution.execution_id == receipt.execution_id
    assert (done.last_execution.status, done.last_execution.completed_at) == ("success", "2027-01-15T08:00:11Z")


async def test_deleting_cancels_what_is_pending_and_frees_the_name(jobs, world, told):
    made = await create(jobs, schedule={"every": "1h"})
    job = await submittable(world, made.job_id)
    queued = await world.parcel(job, 3)
    waiting = await world.parcel(job, 2, due_at=world.now() + MINUTE)
    worker = await world.worker()
    (slice,) = await worker.claim(1)
    gone = await jobs.delete(NAMESPACE, "report")
    assert (gone.status, gone.state, gone.next_fire_at) == ("deleted", "deleted", None)
    assert await world.states(queued) == ["running", "cancelled", "cancelled"]
    assert await world.states(waiting) == ["cancelled", "cancelled"]
    await worker.report(success(slice))
    with pytest.raises(NotFound, match="horae jobs restore report"):
        await jobs.get(NAMESPACE, "report")
    assert (await jobs.delete(NAMESPACE, str(made.job_id))).status == "deleted"
    with pytest.raises(Conflict, match="deleted"):
        await jobs.edit(NAMESPACE, str(made.job_id), {"timeout": "1m"})
    assert (await jobs.get(NAMESPACE, str(made.job_id))).last_execution is not None
    assert (await create(jobs)).job_id != made.job_id
    with pytest.raises(Conflict, match='"report" exists'):
        await jobs.restore(NAMESPACE, str(made.job_id))
    assert told[1] == (made.job_id, NAMESPACE, "deleted")


async def test_many_pending_slices_are_cancelled_in_batches(jobs, world, monkeypatch):
    monkeypatch.setattr(job_changes, "FIRST_BATCH", 2)
    monkeypatch.setattr(job_deletions, "BATCH", 3)
    made = await create(jobs)
    other = await submittable(world, (await create(jobs, "other")).job_id)
    job = await submittable(world, made.job_id)
    for _ in range(9):
        await world.submit(job)
        await world.submit(other)
        await world.submit(job, due_at=world.now() + MINUTE)
    await jobs.delete(NAMESPACE, "report")
    assert {q.job for q in await world.on("queued")} == {other.id}
    assert await world.on("waiting") == []
    assert len(await world.history()) == 18


async def crashed_deletion(jobs: Jobs, world: World, monkeypatch: pytest.MonkeyPatch, **how: str) -> TestJob:
    """Make a job with a large backlog. Its deletion was interrupted after the first transaction."""
    monkeypatch.setattr(job_changes, "FIRST_BATCH", 1)
    job = await submittable(world, (await create(jobs)).job_id)
    for _ in range(3):
        await world.submit(job)
        await world.submit(job, due_at=world.now() + MINUTE)
    before = await world.store.job(job.id, NAMESPACE)
    ending = "all" if how.get("running") == "cancel" else "pending"
    assert await world.store.change(lambda now: job_changes.delete(before, world.env.new_id, now, ending))
    assert len(await world.on("queued")) == len(await world.on("waiting")) == 2
    return job


async def test_a_deletion_that_a_crash_cut_short_is_finished_by_the_sweep(jobs, world, monkeypatch):
    job = await crashed_deletion(jobs, world, monkeypatch)
    node = ServerNode(world.env, world.store)
    assert await node.definitions.deletions.unfinished() == [job.id]

    await node.work.sweeper.step()

    assert await world.on("queued") == await world.on("waiting") == await node.definitions.deletions.unfinished() == []
    assert [state for _, _, state, _ in await world.history()] == ["cancelled"] * 6


async def test_a_deletion_that_a_crash_cut_short_asks_what_runs_to_stop(jobs, world, monkeypatch):
    asked: list[UUID] = []
    other = await submittable(world, (await create(jobs, "other")).job_id)
    job = await crashed_deletion(jobs, world, monkeypatch, running="cancel")
    worker = await world.worker()
    await world.submit(other)
    held = await worker.claim(2)

    assert await deletions_of(world.store, asked).finish(job.id)

    assert asked == [worker.session]
    requests = {parcel for parcel, *_ in (await world.store.requests_of([worker.session]))[worker.session]}
    assert requests == {s.parcel for s in held if s.job == job.id} != set()


async def test_a_deletion_asked_for_again_goes_on_and_may_end_more(jobs, world, monkeypatch):
    job = await crashed_deletion(jobs, world, monkeypatch)
    worker = await world.worker()
    await worker.claim(1)

    await jobs.delete(NAMESPACE, str(job.id), queued="finish", running="cancel")

    assert await world.on("queued") == await world.on("waiting") == []
    assert len((await world.store.requests_of([worker.session]))[worker.session]) == 1


async def test_an_earlier_deletion_does_not_cancel_executions_of_a_restored_job(jobs, world, monkeypatch):
    job = await crashed_deletion(jobs, world, monkeypatch)

    await jobs.restore(NAMESPACE, str(job.id))

    late = cancel_job.cancel_more("queued", job.id, world.env.new_id, cancel_job.START, 100, "", world.now())
    assert await world.store.write(lambda: late) == cancel_job.CancelBatch(0, None)
    assert await deletions_of(world.store).finish(job.id)
    assert len(await world.on("queued")) == 2


async def test_deleting_may_let_the_queue_finish_and_ask_what_runs_to_stop(jobs, world):
    asked: list[UUID] = []
    jobs._deletions = deletions_of(world.store, asked)
    made = await create(jobs)
    job = await submittable(world, made.job_id)
    parcel = await world.parcel(job, 3)
    worker = await world.worker()
    slices = await worker.claim(2)
    await jobs.delete(NAMESPACE, "report", queued="finish", running="cancel")
    assert await world.states(parcel) == ["running", "running", "queued"]
    assert asked == [worker.session]
    requests = (await world.store.requests_of([worker.session]))[worker.session]
    assert [(item, kind) for _, item, _, kind in requests] == [(0, "cancel"), (1, "cancel")]
    await worker.report(*(failed(s) for s in slices))
    assert await world.states(parcel) == ["cancelled", "cancelled", "queued"]


@pytest.mark.parametrize("queued", ["finish", "cancel"])
async def test_deleting_stops_what_sleeps_without_a_worker_too(jobs, world, queued):
    job = await submittable(world, (await create(jobs, command=None, python="f", durable=True)).job_id)
    parcel = await world.parcel(job, 3)
    worker = await world.worker()
    [held] = await worker.claim(3)
    await worker.report(suspended(held, world.now() + MINUTE, 0, 2), failed(held, 2, 3))

    await jobs.delete(NAMESPACE, "report", queued=queued, running="finish")
    assert (await world.states(parcel))[:2] == ["running", "running"]
    await jobs.delete(NAMESPACE, str(job.id), queued=queued, running="cancel")

    assert (await world.states(parcel))[:2] == ["cancelled", "cancelled"]
    assert await deletions_of(world.store).unfinished() == []


@pytest.mark.parametrize("restored", [True, False])
async def test_a_deletion_cancels_workflows_unless_the_job_is_restored_meanwhile(jobs, world, monkeypatch, restored):
    await create(jobs, "load")
    flow = await create(jobs, "flow", command=None, workflow=[{"name": "a", "job": "load"}])
    execution = await begin(world, await submittable(world, flow.job_id))
    ask = jobs._deletions._ask_running

    async def restore_first(job: UUID) -> None:
        await ask(job)
        if restored:
            await jobs.restore(NAMESPACE, "flow")

    monkeypatch.setattr(jobs._deletions, "_ask_running", restore_first)
    await jobs.delete(NAMESPACE, "flow", running="cancel")

    await look(world)
    assert await world.states(parcel_of(execution)) == ["running" if restored else "cancelled"]


async def test_a_deletion_goes_on_while_something_was_handed_back_before_its_session_was_asked(jobs, world):
    job = await submittable(world, (await create(jobs)).job_id)
    parcel = await world.parcel(job)
    worker = await world.worker()
    [held] = await worker.claim(1)
    deletions = deletions_of(world.store)
    ask = deletions._ask_running

    async def hand_back_first(of: UUID) -> None:
        await worker.report(released(held))
        await ask(of)

    deletions._ask_running = jobs._deletions._ask_running = hand_back_first
    await jobs.delete(NAMESPACE, "report", running="cancel")
    assert await world.states(parcel) == ["queued"]
    assert await deletions.unfinished() == [job.id]

    assert await deletions_of(world.store).finish(job.id)
    assert await world.states(parcel) == ["cancelled"]


async def test_restore_brings_a_job_back_by_name_or_id(jobs, world):
    made = await create(jobs, schedule={"every": "1h"})
    await jobs.delete(NAMESPACE, "report")
    back = await jobs.restore(NAMESPACE, "report")
    assert (back.job_id, back.status) == (made.job_id, "scheduled")
    with pytest.raises(Conflict, match="not deleted"):
        await jobs.restore(NAMESPACE, "report")
    with pytest.raises(NotFound):
        await jobs.restore(NAMESPACE, "nothing")


async def test_a_job_that_was_paused_comes_back_paused(jobs, world, told):
    made = await create(jobs, schedule={"every": "1h"})
    await jobs.pause(NAMESPACE, "report")
    await jobs.delete(NAMESPACE, "report")
    world.clock.advance(2 * 60 * MINUTE)

    back = await jobs.restore(NAMESPACE, "report")

    assert (back.state, back.status, back.next_fire_at) == ("paused", "paused", None)
    assert told[-1] == (made.job_id, NAMESPACE, "paused")
    assert await world.store.paused_jobs() == {made.job_id}
    assert (await jobs.resume(NAMESPACE, "report")).status == "scheduled"


async def test_jobs_are_listed_by_name_in_pages(jobs):
    for name in ("delta", "alpha", "charlie", "bravo"):
        await create(jobs, name, tags={"team": "x" if name < "c" else "y"}, queue="q" if name == "delta" else "default")
    first = await jobs.list(NAMESPACE, limit=3)
    assert [job.name for job in first.items] == ["alpha", "bravo", "charlie"]
    rest = await jobs.list(NAMESPACE, limit=3, cursor=first.next_cursor)
    assert ([job.name for job in rest.items], rest.next_cursor) == (["delta"], None)

    async def names(**filters: Any) -> list[str]:
        return [job.name for job in (await jobs.list(NAMESPACE, **filters)).items]

    assert await names(tag="team=x") == ["alpha", "bravo"]
    assert await names(tag="team") == ["alpha", "bravo", "charlie", "delta"]
    assert await names(tag="tea") == []
    assert await names(queue="q") == ["delta"]
    assert await names(prefix="al") == ["alpha"]
    assert await names(search="RAV") == ["bravo"]
    assert await names(search="%") == []
    await jobs.edit(NAMESPACE, "delta", {"description": 'Sends the "weekly" digest'})
    assert await names(search='"Weekly"') == ["delta"]
    assert await names(search="argv") == []  # the stored text has it, the description does not
    await jobs.pause(NAMESPACE, "alpha")
    await jobs.delete(NAMESPACE, "bravo")
    assert await names(state="paused") == ["alpha"]
    assert await names(state="deleted") == ["bravo"]
    assert await names() == ["alpha", "charlie", "delta"]


@pytest.mark.parametrize(
    "filters", [{"cursor": "x"}, {"cursor": "e30"}, {"limit": 0}, {"limit": 9999}, {"state": "gone"}, {"tag": "=x"}]
)
async def test_a_bad_page_is_refused(memory_jobs, filters):
    with pytest.raises(BadInput) as refused:
        await memory_jobs.list(NAMESPACE, **filters)
    assert refused.value.fields["field"] == next(iter(filters))


@pytest.fixture
async def memory_jobs(env):
    from horae.store.contract import Store
    from horae.store.open import open_store_driver

    driver = await open_store_driver("sqlite://", env)
    await driver.migrate()
    yield jobs_of(Store(driver, env), rank=rank)
    await driver.close()


async def test_a_rare_tag_or_word_is_found_by_one_query(jobs, monkeypatch):
    monkeypatch.setattr(job_lists, "MOST_SCANNED", 1)
    for name in ("a", "b", "c"):
        await create(jobs, name, tags={"x": "1"} if name == "c" else {"y": "x=1"}, params={"x": "1"})
    await jobs.edit(NAMESPACE, "c", {"description": "Tells ÄRGER"})
    for found in ({"tag": "x=1"}, {"tag": "x"}, {"search": "ärger"}, {"search": "tells"}):
        page = await jobs.list(NAMESPACE, limit=1, **found)
        assert [job.name for job in page.items] == ["c"], found
    assert (await jobs.list(NAMESPACE, limit=1, search="%")).items == []


async def test_a_page_skips_a_limited_number_of_names_that_differ_in_case(memory_jobs, monkeypatch):
    monkeypatch.setattr(job_lists, "MOST_SCANNED", 1)
    for name in ("a", "b", "c"):
        await create(memory_jobs, name, tags={"x" if name == "c" else "X": "1"})
    page = await memory_jobs.list(NAMESPACE, tag="x=1", limit=1)
    assert page.items == []
    page = await memory_jobs.list(NAMESPACE, tag="x=1", limit=1, cursor=page.next_cursor)
    assert [job.name for job in page.items] == ["c"]


async def test_an_invalid_schema_is_refused(memory_jobs):
    for schema in ({"type": 5}, {"$ref": "#/nope"}, {"properties": {"a": {"pattern": "("}}}):
        with pytest.raises(BadInput) as refused:
            await create(memory_jobs, schema=schema)
        assert refused.value.fields["field"] == "schema"
    assert (await create(memory_jobs, schema={"type": "object"})).schema == {"type": "object"}


async def settled(*changes: Any) -> list[Any]:
    return await asyncio.gather(*changes, return_exceptions=True)


async def test_only_one_of_many_concurrent_creations_gets_a_name(jobs, world):
    answers = await settled(*(create(jobs) for _ in range(6)))
    assert sum(isinstance(answer, Conflict) for answer in answers) == 5
    assert len(await world.rows("SELECT id FROM jobs")) == 1


async def test_concurrent_edits_cannot_close_a_circle(jobs):
    await create(jobs, "a")
    await create(jobs, "b")
    answers = await settled(
        jobs.edit(NAMESPACE, "a", {"dependencies": ["b"]}), jobs.edit(NAMESPACE, "b", {"dependencies": ["a"]})
    )
    assert [type(answer) for answer in answers].count(BadInput) == 1


async def test_no_concurrent_edit_is_lost(jobs):
    await create(jobs)
    answers = await settled(*(jobs.edit(NAMESPACE, "report", {"params": {f"p{i}": i}}) for i in range(4)))
    assert not any(isinstance(answer, BaseException) for answer in answers), answers
    done = await jobs.get(NAMESPACE, "report")
    assert (done.version, done.params) == (5, {f"p{i}": i for i in range(4)})


async def test_one_of_two_edits_of_one_version_is_stale(jobs):
    await create(jobs)
    answers = await settled(*(jobs.edit(NAMESPACE, "report", {"timeout": i + 1}, if_match=1) for i in range(3)))
    assert sum(isinstance(answer, Stale) for answer in answers) == 2


async def test_a_rename_and_a_restoration_do_not_share_a_name(jobs, world):
    await create(jobs, "a")
    await jobs.delete(NAMESPACE, "a")
    await create(jobs, "b")
    answers = await settled(jobs.restore(NAMESPACE, "a"), jobs.edit(NAMESPACE, "b", {"name": "a"}), create(jobs, "a"))
    assert sum(isinstance(answer, Conflict) for answer in answers) == 2
    assert len(await world.rows("SELECT id FROM jobs WHERE name = 'a' AND state <> 'deleted'")) == 1


async def test_a_deletion_and_a_fire_leave_nothing_queued(jobs, world):
    for _ in range(5):
        made = await create(jobs, schedule={"every": "1s"})
        world.clock.advance(2 * SECOND)
        await settled(jobs.delete(NAMESPACE, "report"), world.store.fire(10, lead))
        assert [q for q in await world.on("queued") if q.job == made.job_id] == []
