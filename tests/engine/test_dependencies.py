"""Dependencies, from the definition of jobs to the views for users."""

import pytest
from msgspec import Raw

from horae.engine.server_node import ServerNode
from horae.env import SECOND
from horae.errors import BadInput, NotFound
from horae.features.dead_letters.part import DeadLettersPart
from horae.model.fleet.submit import Submit
from horae.store.executions.reads import housekeeping
from tests.store_contract.world import NAMESPACE, World, failed, success

HOUR = 3600 * SECOND
DAY = 24 * HOUR


@pytest.fixture
async def node(world: World) -> ServerNode:
    """Return a node with stopped services. Tests call their steps."""
    made = ServerNode(world.env, world.store)
    await made.prepare()
    return made


async def create(node: ServerNode, name: str, **fields):
    return await node.definitions.jobs.create(NAMESPACE, {"name": name, "command": "true", "queue": name, **fields})


async def submit(node: ServerNode, job: str, **more):
    (receipt,) = await node.submitter.submit(
        NAMESPACE, [Submit(job=job, params=Raw(b"{}"), **more)], origin="trigger", caller="me"
    )
    return receipt


async def claim(node: ServerNode, world: World, job: str):
    """Return a worker that holds all queued executions of a job."""
    stored = await world.store.job_named(NAMESPACE, job)
    worker = await world.worker()
    return worker, await worker.claim(100, lanes=frozenset({stored.lane}))


async def end(node: ServerNode, world: World, job: str, outcome=success):
    worker, held = await claim(node, world, job)
    await worker.report(*(outcome(slice) for slice in held))
    return len(held)


async def run(node: ServerNode, world: World, job: str, outcome=success, **more):
    receipt = await submit(node, job, **more)
    assert await end(node, world, job, outcome) == 1
    return receipt.execution_id


async def executions(node: ServerNode, job: str):
    return (await node.work.executions.list(NAMESPACE, job=job)).items


async def fire(node: ServerNode, world: World):
    world.clock.advance(HOUR)
    await node.firing.scheduler.step()


async def test_a_manual_run_starts_its_dependents_unless_disabled(node, world):
    await create(node, "extract")
    await create(node, "report", dependencies=["extract"])
    quiet = await run(node, world, "extract", propagate=False)
    assert await executions(node, "report") == []
    ran = await run(node, world, "extract")
    (made,) = await executions(node, "report")
    assert (made.status, made.origin, made.upstream, made.interval) == ("queued", "dependency", [ran], None)
    assert quiet != ran


async def test_a_manual_run_waits_for_dependencies_only_on_request(node, world):
    await create(node, "extract")
    await create(node, "report", dependencies=["extract"], dependencyTimeout="2h")
    assert (await submit(node, "report")).state == "queued"
    waiting = await submit(node, "report", wait_for_dependencies=True)
    assert waiting.state == "waiting"
    shown = await node.work.executions.get(NAMESPACE, waiting.execution_id)
    assert (shown.status, shown.reason, shown.next_attempt_at) == ("waiting", "dependency", None)
    assert shown.hint.startswith('It waits for the success of "extract", until ')
    await run(node, world, "extract")
    assert (await node.work.executions.get(NAMESPACE, waiting.execution_id)).status == "queued"


async def test_a_job_without_dependencies_does_not_wait(node, world):
    await create(node, "extract")
    assert (await submit(node, "extract", wait_for_dependencies=True)).state == "queued"


async def test_an_interval_is_given_inherited_and_shown(node, world):
    await create(node, "extract")
    await create(node, "report", dependencies=["extract"])
    await run(node, world, "extract", interval=(0, HOUR))
    (made,) = await executions(node, "report")
    assert (made.interval.start, made.interval.end) == ("1970-01-01T00:00:00Z", "1970-01-01T01:00:00Z")
    with pytest.raises(BadInput, match="not before its end"):
        await submit(node, "extract", interval=(HOUR, HOUR))


async def test_jobs_of_one_schedule_join_by_their_fires(node, world):
    for name in ("extract", "load"):
        await create(node, name, schedule={"every": "1h", "overlap": "allow"})
    await create(node, "report", dependencies=["extract", "load"])
    await fire(node, world)
    await end(node, world, "extract")
    await fire(node, world)
    await end(node, world, "extract")
    assert await executions(node, "report") == []
    await end(node, world, "load")
    newer, older = await executions(node, "report")
    intervals = {(made.interval.start, made.interval.end) for made in (newer, older)}
    assert intervals == {(made.interval.start, made.interval.end) for made in await executions(node, "extract")}


async def test_a_scheduled_dependent_waits_and_times_out_as_a_dead_letter(node, world):
    await create(node, "extract", schedule={"every": "1h"})
    await create(node, "report", dependencies=["extract"], schedule={"every": "1h"}, dependencyTimeout="30m")
    await fire(node, world)
    (made,) = await executions(node, "report")
    assert (made.status, made.reason, made.origin) == ("waiting", "dependency", "fire")
    assert 'the success of "extract" for ' in made.hint
    world.clock.advance(HOUR // 2)
    await node.firing.join_checker.step()
    (made,) = await executions(node, "report")
    assert (made.status, made.reason, made.error.type) == ("failed", "dependency", "DependencyTimeout")
    (letter,) = (await node.part(DeadLettersPart).dead_letters.list(NAMESPACE)).items
    assert letter.execution.execution_id == made.execution_id
    assert node.base.counters.totals["failed"] == 1


async def test_a_failed_upstream_skips_and_its_retry_starts_what_was_skipped(node, world):
    await create(node, "extract", schedule={"every": "1h"})
    await create(node, "report", dependencies=["extract"])
    await fire(node, world)
    await end(node, world, "extract", failed)
    await node.firing.join_checker.step()
    (skipped,) = await executions(node, "report")
    assert (skipped.status, skipped.error.type) == ("skipped", "DependencyFailed")
    assert '"extract" ended as failed' in skipped.error_message
    assert node.base.counters.totals["skipped"] == 1

    (letter,) = (await node.part(DeadLettersPart).dead_letters.list(NAMESPACE)).items
    world.clock.advance(SECOND)
    await node.part(DeadLettersPart).dead_letters.retry(NAMESPACE, letter.execution.execution_id)
    await end(node, world, "extract")
    newest, _ = await executions(node, "report")
    assert (newest.status, newest.interval) == ("queued", skipped.interval)


async def test_starts_and_skips_by_dependencies_are_listed_as_fires(node, world):
    await create(node, "extract", schedule={"every": "1h"})
    await create(node, "report", dependencies=["extract"])
    await create(node, "other")
    await create(node, "counted", dependencies=["other"])
    await fire(node, world)
    await end(node, world, "extract", failed)
    await node.firing.join_checker.step()
    world.clock.advance(SECOND)
    await fire(node, world)
    await end(node, world, "extract")
    for _ in range(3):
        await submit(node, "other")
    await end(node, world, "other")

    told = (await node.firing.fires.list(NAMESPACE, job="report", since="2020-01-01T00:00:00Z")).items
    assert [(one.trigger, one.disposition) for one in told] == [
        ("dependency", "skipped-dependency"), ("dependency", "fired"),
    ]  # fmt: skip
    assert {one.execution_id for one in told} == {one.execution_id for one in await executions(node, "report")}
    assert '"extract" ended as failed' in told[0].cause
    made = next(one for one in await executions(node, "report") if one.status == "queued")
    assert f"met for {made.interval.start}/{made.interval.end}" in told[1].cause

    counted = await node.firing.fires.list(NAMESPACE, trigger="dependency", disposition="fired", limit=2)
    rest = await node.firing.fires.list(
        NAMESPACE, trigger="dependency", disposition="fired", cursor=counted.next_cursor
    )
    assert [one.job for one in (*counted.items, *rest.items)].count("counted") == 3
    assert len({one.execution_id for one in (*counted.items, *rest.items)}) == 4


async def test_starts_by_dependencies_expire_with_the_ledger(node, world):
    await create(node, "other")
    await create(node, "counted", dependencies=["other"])
    await run(node, world, "other")
    await world.store.write(lambda: housekeeping.forget_records(world.now(), 0))
    assert len(await world.rows("SELECT 1 FROM dependency_fires")) == 1
    await world.store.write(lambda: housekeeping.forget_records(world.now() + 1, 0))
    assert await world.rows("SELECT 1 FROM dependency_fires") == []


async def test_dependencies_are_shown_with_their_joins(node, world):
    await create(node, "extract")
    await create(node, "load")
    await create(node, "report", dependencies=["extract", {"job": "load", "condition": "finished"}])
    ran = await run(node, world, "extract", interval=(0, HOUR))
    await run(node, world, "load")
    told = await node.definitions.dependencies.of(NAMESPACE, "report")
    assert [(d.job, d.condition, d.unused_executions) for d in told.dependencies] == [
        ("extract", "success", 0),
        ("load", "finished", 0),
    ]
    (join,) = told.joins
    assert (join.state, join.interval.start) == ("started", "1970-01-01T00:00:00Z")
    assert {(part.job, part.state) for part in join.upstream} == {("extract", "met"), ("load", "met")}
    assert ran in [part.execution_id for part in join.upstream]
    assert (await node.definitions.dependencies.of(NAMESPACE, "extract")).dependents == ["report"]
    with pytest.raises(NotFound):
        await node.definitions.dependencies.of(NAMESPACE, "nobody")


async def test_a_deleted_upstream_job_is_noted(node, world):
    await create(node, "extract")
    await create(node, "report", dependencies=["extract"])
    await submit(node, "extract")
    await node.definitions.jobs.delete(NAMESPACE, "extract")
    assert await executions(node, "report") == []
    (note,) = (await node.definitions.dependencies.of(NAMESPACE, "report")).notes
    assert '"extract" is deleted' in note


async def test_executions_cancelled_by_a_deletion_count_as_ends(node, world):
    await create(node, "extract")
    await create(node, "after", dependencies=[{"job": "extract", "condition": "finished"}])
    await submit(node, "extract")
    await node.definitions.jobs.delete(NAMESPACE, "extract")
    (made,) = await executions(node, "after")
    assert made.status == "queued"


async def test_a_deleted_dependent_starts_nothing_until_it_is_restored(node, world):
    await create(node, "extract")
    report = await create(node, "report", dependencies=["extract"])
    await node.definitions.jobs.delete(NAMESPACE, "report")
    await run(node, world, "extract")
    await node.definitions.jobs.restore(NAMESPACE, str(report.job_id))
    assert await executions(node, "report") == []
    await run(node, world, "extract")
    assert len(await executions(node, "report")) == 1


async def test_a_paused_dependent_is_started_and_waits_to_be_resumed(node, world):
    await create(node, "extract")
    report = await create(node, "report", dependencies=["extract"])
    await node.definitions.jobs.pause(NAMESPACE, "report")
    await run(node, world, "extract")
    stored = await world.store.job_named(NAMESPACE, "report")
    worker = await world.worker()
    lanes, paused = frozenset({stored.lane}), frozenset({report.job_id})
    assert (await worker.exchange(free=1, lanes=lanes, paused=paused)).granted == []
    (made,) = await executions(node, "report")
    assert (made.status, made.reason) == ("waiting", "paused")
    await node.definitions.jobs.resume(NAMESPACE, "report")
    assert len(await worker.claim(1, lanes=lanes)) == 1


async def test_an_edit_starts_the_joins_that_it_completes(node, world):
    await create(node, "extract")
    await create(node, "load")
    await create(node, "report", dependencies=["extract", "load"])
    await run(node, world, "extract", interval=(0, HOUR))
    await node.definitions.jobs.edit(NAMESPACE, "report", {"dependencies": ["extract"]})
    (made,) = await executions(node, "report")
    assert (made.status, made.job_version) == ("queued", 2)


async def test_starts_by_an_edit_a_deletion_or_a_purge_are_announced_at_once(node, world):
    for name in ("a", "b", "c", "alone"):
        await create(node, name)
    await create(node, "edited", dependencies=["a", "b"])
    await create(node, "after", dependencies=[{"job": "c", "condition": "finished"}])
    await create(node, "next", dependencies=[{"job": "alone", "condition": "finished"}])
    for name in ("c", "alone"):
        await submit(node, name)
    await run(node, world, "a")
    told = {}
    node.base.hints.listen(lambda hint: told.update(hint.lanes))

    await node.definitions.jobs.edit(NAMESPACE, "edited", {"dependencies": ["a"]})
    await node.definitions.jobs.delete(NAMESPACE, "c")
    await node.admission.queues.purge(NAMESPACE, "alone", "alone", "me")

    lanes = {name: (await world.store.job_named(NAMESPACE, name)).lane for name in ("edited", "after", "next")}
    assert {name for name, lane in lanes.items() if lane in told} == {"edited", "after", "next"}


async def test_a_trigger_that_is_added_makes_the_job_wait_for_its_own_fires(node, world):
    await create(node, "extract", schedule={"every": "1h"})
    await create(node, "report", dependencies=["extract"])
    await node.definitions.jobs.edit(NAMESPACE, "report", {"schedule": {"every": "1h"}})
    await fire(node, world)
    (waiting,) = await executions(node, "report")
    assert waiting.status == "waiting"
    await end(node, world, "extract")
    (made,) = await executions(node, "report")
    assert (made.execution_id, made.status) == (waiting.execution_id, "queued")


@pytest.mark.parametrize(
    ("job", "how", "note"),
    [
        ("report", {},
         'It runs at once, whatever becomes of "extract". Its end is reported to "alarm", which may start then.'),
        ("report", {"wait": True, "propagate": False},
         'It waits for "extract". Its end starts nothing: it is not reported to "alarm".'),
        ("extract", {}, 'Its end is reported to "report", which may start then.'),
        ("alarm", {"propagate": False}, 'It runs at once, whatever becomes of "report".'),
        ("alone", {}, None),
        ("alone", {"wait": True}, "It depends on nothing, so it runs at once."),
    ],
)  # fmt: skip
async def test_a_manual_run_is_described_with_its_dependencies(node, world, job, how, note):
    for name, upstream in (("extract", None), ("report", "extract"), ("alarm", "report"), ("alone", None)):
        await create(node, name, dependencies=[upstream] if upstream else [])
    about = await node.definitions.dependencies.of_run(NAMESPACE, job)
    assert about.note(**{"propagate": True, "wait": False, **how}) == note


async def test_cached_dependencies_follow_every_change(node, world):
    await create(node, "extract")
    assert (await node.definitions.dependencies.of_run(NAMESPACE, "extract")).dependents == []
    await create(node, "report", dependencies=["extract"])
    assert (await node.definitions.dependencies.of_run(NAMESPACE, "extract")).dependents == ["report"]
    world.driver.statements.clear()
    await node.definitions.dependencies.of_run(NAMESPACE, "extract")
    assert not world.driver.statements
    await node.definitions.jobs.delete(NAMESPACE, "report")
    assert (await node.definitions.dependencies.of_run(NAMESPACE, "extract")).dependents == []


async def test_schedules_without_common_instants_are_noted(node, world):
    await create(node, "extract", schedule="0 2 * * *")
    await create(node, "load", schedule="0 2 * * *")
    await create(node, "plain")
    assert (await create(node, "report", dependencies=["extract", "load", "plain"])).notes == []
    late = await create(node, "late", dependencies=["extract"], schedule="0 3 * * *")
    assert all(word in late.notes[0] for word in ('"extract"', '"late"', "have different schedules"))
    edited = await node.definitions.jobs.edit(NAMESPACE, "load", {"schedule": "0 4 * * *"})
    assert edited.notes == []
    assert "different schedules" in (await node.definitions.jobs.get(NAMESPACE, "report")).notes[0]
