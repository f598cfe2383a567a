"""Results that became files: expressions can use those that were copied, and give a reason for the others."""

import hashlib
from functools import partial
from uuid import UUID

import msgspec
import pytest

from horae.features.artifacts.store import artifacts
from horae.model.definitions.retry import RetryPolicy
from horae.model.executions.execution import Extra, Rerun
from horae.model.executions.output.artifact import RESULT, Artifact
from horae.model.executions.submission import Submission
from horae.model.fleet.protocol import MAX_RESULT
from horae.model.workflows.repeats import Foreach
from horae.store.executions.promote import LONG_AGO
from horae.store.workflows import results as workflow_results
from tests.store_contract.workflow_world import begin, open_all, params_of, result, state, step, steps, workflow
from tests.store_contract.world import World, failed, rank, success


def value(mark: str, size: int = 200_000) -> bytes:
    return msgspec.json.encode({"mark": mark, "rest": "x" * size})


async def brings(world: World, worker, slice, content: bytes) -> bytes:
    """Store a result as a file, as a worker does; return the outcome to report."""
    copy = content if len(content) <= MAX_RESULT else None
    file = Artifact(
        name=RESULT, attempt=slice.attempt, size=len(content), type="application/json",
        sha256=hashlib.sha256(content).hexdigest(), location=str(world.env.new_id()), at=world.now(),
    )  # fmt: skip
    for item in range(slice.lo, slice.hi):
        await world.store.write(lambda: artifacts.record_location(file.location, world.now()))
        keep = partial(artifacts.store_artifact, worker.session, slice.parcel, item, file, world.now(), copy)
        assert await world.store.write(keep) == "stored"
    return msgspec.json.encode({"$artifact": {"name": RESULT, "url": "/u", "size": file.size, "sha256": file.sha256}})


async def ends(world: World, worker, content: bytes) -> None:
    """End the running step with this result, stored as a file."""
    (slice,) = await worker.claim(10)
    told = await brings(world, worker, slice, content)
    await worker.report(success(slice, results=[told] * (slice.hi - slice.lo)))


async def test_expressions_can_use_a_result_that_is_a_file(world: World):
    job = await world.job()
    flow = await workflow(
        world,
        step("a", job),
        step("b", job, params={"mark": "${steps.a.result.mark}"}),
        step("c", job, params={"mark": "${steps.a.result.mark}"}, after=("b",)),
    )
    await begin(world, flow)
    worker = await world.worker()
    await ends(world, worker, value("hello"))
    for _ in "bc":
        (slice,) = await worker.claim(1)
        assert await params_of(world, slice) == {"mark": "hello"}
        await worker.report(success(slice))


async def test_the_result_of_the_last_attempt_counts(world: World):
    job = await world.job(retry=RetryPolicy(retries=1, delay=0))
    flow = await workflow(world, step("a", job), step("b", job, params={"mark": "${steps.a.result.mark}"}))
    await begin(world, flow)
    worker = await world.worker()
    (slice,) = await worker.claim(1)
    await brings(world, worker, slice, value("first"))
    await worker.report(failed(slice))
    await world.store.promote_due(LONG_AGO, 100, rank)
    await ends(world, worker, value("second"))
    (slice,) = await worker.claim(1)
    assert await params_of(world, slice) == {"mark": "second"}


async def test_a_plain_execution_has_no_copy(world: World):
    await world.parcel(await world.job(), 1)
    worker = await world.worker()
    await ends(world, worker, value("alone"))
    assert await world.rows("SELECT 1 FROM blobs") == []


async def test_results_too_large_for_expressions_are_passed_on_or_reported(world: World):
    job = await world.job()
    flow = await workflow(
        world,
        step("a", job),
        step("whole", job, params={"file": "${steps.a.result}"}),
        step("part", job, params={"mark": "${steps.a.result.mark}"}),
        step("size", job, params={"n": '${size(steps["a"].result)}'}),
        step("each", job, foreach=Foreach(items="${steps.a.result}")),
        on_error="ignore",
    )
    execution = await begin(world, flow)
    worker = await world.worker()
    await ends(world, worker, value("far", MAX_RESULT))
    (slice,) = await worker.claim(1)
    assert (await params_of(world, slice))["file"]["$artifact"]["name"] == RESULT
    found = await steps(world, execution)
    assert {found[name] for name in ("part", "size", "each")} == {"failed"}
    errors = await world.rows("SELECT error FROM flow_steps WHERE error IS NOT NULL")
    assert len(errors) == 3
    assert all("is stored in a file" in error and str(MAX_RESULT) in error for (error,) in errors)


async def test_a_foreach_collects_files_too_up_to_a_bound(world: World, monkeypatch: pytest.MonkeyPatch):
    job = await world.job()
    flow = await workflow(
        world,
        step("each", job, foreach=Foreach(items="${[1, 2]}")),
        step("b", job, params={"marks": "${steps.each.result.map(one, one.mark)}"}),
        step("c", job, params={"marks": "${steps.each.result.map(one, one.mark)}"}, after=("b",)),
    )
    execution = await begin(world, flow)
    worker = await world.worker()
    await ends(world, worker, value("m"))
    (slice,) = await worker.claim(1)
    assert await params_of(world, slice) == {"marks": ["m", "m"]}
    monkeypatch.setattr(workflow_results, "MOST_COLLECTED", 300_000)
    await worker.report(success(slice))
    assert (await steps(world, execution))["c"] == "failed"
    ((error,),) = await world.rows("SELECT error FROM flow_steps WHERE step = 'c'")
    assert "of all items together" in error


async def test_a_large_result_that_a_rerun_takes_over_is_available_to_all_its_steps(world: World):
    job = await world.job()
    flow = await workflow(
        world,
        step("a", job),
        step("b", job, after=("a",)),
        step("c", job, params={"mark": "${steps.a.result.mark}"}, after=("b",)),
    )
    first = await begin(world, flow)
    worker = await world.worker()
    await ends(world, worker, value("kept"))
    await worker.report(failed((await worker.claim(1))[0]))
    assert await state(world, first) == "failed"

    await rerun(world, flow, first)
    await worker.report(success((await worker.claim(1))[0]))
    (slice,) = await worker.claim(1)
    assert await params_of(world, slice) == {"mark": "kept"}


async def rerun(world: World, flow, of: UUID) -> None:
    (wanted,) = world.wanted(flow)
    wanted = msgspec.structs.replace(wanted, extra=Extra(rerun=Rerun(of=of, since="failed")))
    await world.store.submit([Submission(executions=[wanted])])
    await open_all(world)


async def test_a_default_output_that_is_too_large_is_left_out(world: World):
    job = await world.job()
    flow = await workflow(world, step("each", job, foreach=Foreach(items="${[1, 2]}")))
    execution = await begin(world, flow)
    worker = await world.worker()
    await ends(world, worker, value("m", 600_000))
    assert (await state(world, execution), await result(world, execution)) == ("success", None)
