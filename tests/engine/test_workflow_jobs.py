"""Workflows as jobs, on every store: jobs that their steps name, and jobs that they own."""

from typing import Any
from uuid import UUID

import pytest

from horae.engine.definitions import owned_jobs
from horae.engine.definitions.jobs import Jobs
from horae.errors import BadInput, Conflict
from tests.engine.objects import jobs_of
from tests.store_contract.workflow_world import open_all
from tests.store_contract.world import NAMESPACE, TestJob, World, rank

in_memory = pytest.mark.parametrize("store_url", ["memory"], indirect=True)


@pytest.fixture
def jobs(world: World) -> Jobs:
    return jobs_of(world.store, rank=rank)


async def workflow(jobs: Jobs, *steps: dict[str, Any], name: str = "etl", **fields: Any) -> Any:
    return await jobs.create(NAMESPACE, {"name": name, "workflow": {"steps": list(steps)}, **fields})


async def command(jobs: Jobs, name: str, **fields: Any) -> Any:
    return await jobs.create(NAMESPACE, {"name": name, "command": "true", **fields})


async def names(jobs: Jobs, **filters: Any) -> list[str]:
    return [job.name for job in (await jobs.list(NAMESPACE, **filters)).items]


@in_memory
async def test_a_workflow_names_jobs_and_is_shown_by_their_names(jobs):
    extract = await command(jobs, "extract")

    made = await workflow(jobs, {"name": "a", "job": "extract"}, {"name": "b", "job": "extract", "after": ["a"]})

    assert made.workflow["steps"][0] == {"name": "a", "job": "extract"}
    await jobs.edit(NAMESPACE, "extract", {"name": "fetch"})
    assert (await jobs.get(NAMESPACE, "etl")).workflow["steps"][0] == {"name": "a", "job": "fetch"}
    assert extract.job_id == (await jobs.get(NAMESPACE, "fetch")).job_id


@in_memory
async def test_a_step_with_own_options_has_an_owned_job(jobs):
    await command(jobs, "load", retries=1, schedule="@daily")

    await workflow(
        jobs,
        {"name": "inline", "command": "echo 1", "retries": 2},
        {"name": "other", "job": "load", "timeout": "5m", "undo": {"command": "echo undo"}},
        {"name": "part", "steps": [{"name": "inner", "command": "echo 2"}]},
        {"name": "plain", "job": "load"},
        queue="heavy",
    )

    kept = {job.name: job for job in (await jobs.list(NAMESPACE, owner="etl")).items}
    assert set(kept) == {"etl/inline", "etl/other", "etl/other:undo", "etl/part", "etl/part/inner"}
    assert (kept["etl/inline"].retries, kept["etl/inline"].queue) == (2, "heavy")
    assert (kept["etl/other"].retries, kept["etl/other"].timeout, kept["etl/other"].queue) == (1, "5m", "default")
    assert (kept["etl/other"].owner_workflow, kept["etl/other"].base_job, kept["etl/other"].schedule) == (
        "etl",
        "load",
        None,
    )
    assert await names(jobs) == ["etl", "load"]
    assert len(await names(jobs, owned=True)) == 7
    assert (await jobs.get(NAMESPACE, "etl/part/inner")).owner_workflow == "etl"


async def test_an_owned_job_is_versioned_and_deleted_with_its_step(jobs):
    first = await workflow(jobs, {"name": "a", "command": "echo 1"}, {"name": "b", "command": "echo 2"})
    before = {job.name: job for job in (await jobs.list(NAMESPACE, owner="etl")).items}

    same, change = await jobs.put(
        NAMESPACE, {"name": "etl", "workflow": [{"name": "a", "command": "echo 1"}, {"name": "b", "command": "echo 2"}]}
    )
    assert (change, same.version) == ("unchanged", first.version)

    steps = [{"name": "a", "command": "echo 3"}, {"name": "c", "command": "echo 4"}]
    await jobs.edit(NAMESPACE, "etl", {"name": "elt", "workflow": {"steps": steps}})
    after = {job.name: job for job in (await jobs.list(NAMESPACE, owner="elt")).items}
    assert {name: job.version for name, job in after.items()} == {"elt/a": 2, "elt/c": 1}
    assert after["elt/a"].job_id == before["etl/a"].job_id

    await jobs.rollback(NAMESPACE, "elt", 1)
    assert await names(jobs, owner="etl") == ["etl/a", "etl/b"]

    await jobs.delete(NAMESPACE, "etl")
    assert await names(jobs, owned=True) == []
    restored = await jobs.restore(NAMESPACE, str(first.job_id))
    assert await names(jobs, owner=str(restored.job_id)) == ["etl/a", "etl/b"]


async def test_owned_jobs_of_a_restored_workflow_follow_the_job_they_were_made_from(jobs):
    await command(jobs, "load", retries=1)
    await workflow(
        jobs,
        {"name": "a", "job": "load", "timeout": "5m"},
        {"name": "b", "steps": [{"name": "a", "job": "load", "timeout": "6m"}]},
        {"name": "c", "command": "echo 1"},
    )
    await jobs.delete(NAMESPACE, "etl")
    await jobs.edit(NAMESPACE, "load", {"retries": 4})

    restored = await jobs.restore(NAMESPACE, "etl")

    kept = {job.name: job for job in (await jobs.list(NAMESPACE, owner="etl")).items}
    assert {name: (job.version, job.retries, job.timeout) for name, job in kept.items()} == {
        "etl/a": (2, 4, "5m"), "etl/b": (1, 0, None), "etl/b/a": (2, 4, "6m"), "etl/c": (1, 0, None),
    }  # fmt: skip
    assert (restored.state, restored.version) == ("active", 1)
    await jobs.edit(NAMESPACE, "load", {"retries": 5})
    assert (await jobs.get(NAMESPACE, "etl/a")).retries == 5


@pytest.mark.parametrize(
    ("meanwhile", "told"),
    [
        (lambda jobs: jobs.edit(NAMESPACE, "load", {"sensitive": True}), '"load" is sensitive'),
        (lambda jobs: jobs.delete(NAMESPACE, "load"), 'It runs job "load", which is deleted'),
    ],
)
@in_memory
async def test_a_workflow_that_would_be_refused_is_not_restored(jobs, meanwhile, told):
    await command(jobs, "load")
    await workflow(jobs, {"name": "a", "job": "load"}, {"name": "b", "command": "echo 1"})
    await jobs.delete(NAMESPACE, "etl")
    await meanwhile(jobs)
    with pytest.raises(BadInput, match=told):
        await jobs.restore(NAMESPACE, "etl")
    assert await names(jobs, owned=True, state="deleted") == ["etl", "etl/b"] + ["load"] * ("deleted" in told)


@in_memory
async def test_owned_jobs_follow_the_job_they_were_made_from(jobs):
    await command(jobs, "load", retries=1)
    await workflow(jobs, {"name": "a", "job": "load", "timeout": "5m"}, {"name": "b", "job": "load"})

    await jobs.edit(NAMESPACE, "load", {"retries": 4, "timeout": "1h"})

    kept = await jobs.get(NAMESPACE, "etl/a")
    assert (kept.version, kept.retries, kept.timeout) == (2, 4, "5m")
    assert (await jobs.get(NAMESPACE, "etl")).version == 1
    with pytest.raises(BadInput, match='Workflow "etl" runs it with changes'):
        await jobs.edit(NAMESPACE, "load", {"timeouts": {"total": "1s"}, "timeout": None})


@in_memory
async def test_the_number_of_jobs_for_steps_is_limited_for_each_workflow(jobs, monkeypatch):
    monkeypatch.setattr(owned_jobs, "MOST_OWNED", 2)
    await command(jobs, "load")
    steps = [{"name": name, "job": "load", "timeout": "5m"} for name in "abc"]
    with pytest.raises(BadInput, match="More than 2 jobs"):
        await workflow(jobs, *steps)
    for name in ("etl", "elt"):
        await workflow(jobs, *steps[:2], name=name)
    await jobs.edit(NAMESPACE, "load", {"retries": 4})
    assert (await jobs.get(NAMESPACE, "elt/b")).retries == 4


async def test_a_copy_of_a_workflow_follows_its_owned_jobs(jobs):
    await workflow(jobs, {"name": "x", "command": "echo 1"}, name="inner")
    await workflow(jobs, {"name": "a", "job": "inner", "timeout": "5m"}, name="outer")
    assert await names(jobs, owner="outer") == ["outer/a", "outer/a/x"]

    await jobs.edit(NAMESPACE, "inner", {"workflow": [{"name": "y", "command": "echo 1"}]})

    assert await names(jobs, owner="outer") == ["outer/a", "outer/a/y"]
    assert (await jobs.get(NAMESPACE, "outer/a")).version == 2


@in_memory
async def test_a_part_of_a_workflow_cannot_be_changed_alone(jobs):
    await workflow(jobs, {"name": "a", "command": "echo 1"})
    for change in (
        lambda: jobs.edit(NAMESPACE, "etl/a", {"retries": 1}),
        lambda: jobs.delete(NAMESPACE, "etl/a"),
        lambda: jobs.rollback(NAMESPACE, "etl/a", 1),
    ):
        with pytest.raises(Conflict, match='is a part of workflow "etl"'):
            await change()
    assert (await jobs.pause(NAMESPACE, "etl/a")).state == "paused"


async def test_a_job_that_workflows_run_is_deleted_by_force_only(jobs):
    await command(jobs, "load")
    await workflow(jobs, {"name": "a", "job": "load"})
    await workflow(jobs, {"name": "p", "steps": [{"name": "a", "job": "load", "timeout": "1s"}]}, name="other")

    with pytest.raises(Conflict, match='is run by workflows: "etl", "other"') as refused:
        await jobs.delete(NAMESPACE, "load")
    assert refused.value.fields["workflows"] == ["etl", "other"]

    await jobs.delete(NAMESPACE, "other")
    with pytest.raises(Conflict, match='is run by workflows: "etl"'):
        await jobs.delete(NAMESPACE, "load")
    assert (await jobs.delete(NAMESPACE, "load", force=True)).state == "deleted"


async def test_workflows_do_not_run_each_other_in_a_circle(jobs):
    await command(jobs, "x")
    await workflow(jobs, {"name": "a", "job": "x"}, name="one")
    await workflow(jobs, {"name": "p", "steps": [{"name": "a", "job": "one"}]}, name="two")

    with pytest.raises(BadInput, match="run each other in an endless loop: one -> two -> one"):
        await jobs.edit(NAMESPACE, "one", {"workflow": [{"name": "b", "job": "two"}]})
    with pytest.raises(BadInput, match="endless loop: one -> one"):
        await jobs.edit(NAMESPACE, "one", {"workflow": [{"name": "b", "job": "one"}]})
    assert (await jobs.get(NAMESPACE, "one")).version == 1


SCHEMA = {
    "type": "object",
    "properties": {"day": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["day"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("step", "told", "field"),
    [
        ({"job": "laod"}, 'Step "a": It runs job "laod", which does not exist.', "workflow.steps[0].job"),
        ({"job": "load"}, 'Step "a": params lacks "day"', "workflow.steps[0].params"),
        ({"job": "load", "params": {"day": 3}}, 'params.day of job "load"', "workflow.steps[0].params.day"),
        ({"job": "load", "params": {"day": "x", "dy": 1}}, 'no parameter "dy"', "workflow.steps[0].params.dy"),
        ({"job": "load", "params": {"day": "x", "n": "${1}-"}}, "is always a text", "workflow.steps[0].params.n"),
        ({"job": "load", "params": {"day": "x", "n": "${execution.id}"}}, "gives a text, never a whole number",
         "workflow.steps[0].params.n"),
        ({"steps": [{"name": "q", "job": "load"}]}, 'Step "a/q": ', "workflow.steps[0].steps[0].params"),
        ({"command": "true", "undo": "laod"}, 'Step "a": It runs job "laod"', "workflow.steps[0].undo.job"),
    ],
)  # fmt: skip
@in_memory
async def test_params_of_a_step_are_checked(jobs, step, told, field):
    await command(jobs, "load", schema=SCHEMA)
    with pytest.raises(BadInput) as refused:
        await workflow(jobs, {"name": "a", **step})
    assert told in refused.value.detail
    assert refused.value.fields["field"] == field


@pytest.mark.parametrize("n", ["${params.n * 2.0}", "${params.many ? 10 : 1}", "${params.many ? 'x' : 1}"])
@in_memory
async def test_an_expression_that_may_fit_its_parameter_is_accepted(jobs, n):
    """A number such as 4.0 is an integer in JSON Schema, and a condition may choose either branch."""
    await command(jobs, "load", schema=SCHEMA)
    await workflow(jobs, {"name": "a", "job": "load", "params": {"day": "x", "n": n}})


A, X = {"a": {"type": "integer"}}, "${execution.id}"
UNLIKE = {"if": {"required": ["x"]}, "then": {"required": ["y"]}, "else": {"required": ["z"]}}


@pytest.mark.parametrize(
    ("fields", "params"),
    [
        ({"schema": {"patternProperties": {"^x": {}}, "additionalProperties": False}}, {"x1": X, "x2": 1}),
        ({"schema": {"properties": A, "anyOf": [{"required": ["x"]}, {"required": ["y"]}]}}, {"a": 1, "x": X}),
        ({"schema": {"properties": A, "minProperties": 2}}, {"a": 1, "x": X}),
        ({"schema": {"properties": A, "dependentRequired": {"a": ["x"]}}}, {"a": 1, "x": X}),
        ({"schema": {"properties": A, **UNLIKE}}, {"a": 1, "z": X}),
        ({"schema": {"$defs": {"w": {"required": ["x"]}}, "$ref": "#/$defs/w"}}, {"a": 1, "x": X}),
        ({"schema": {"properties": A, "minProperties": 2}, "params": {"y": 1}}, {"a": 1}),
        ({"schema": {"properties": {"items": {}}, "required": ["items"]}, "batch": {"size": 2}}, {"a": 1}),
    ],
)
@in_memory
async def test_params_of_a_step_that_may_fit_their_job_are_accepted(jobs, fields, params):
    await command(jobs, "load", **fields)
    await workflow(jobs, {"name": "a", "job": "load", "params": params})


@pytest.mark.parametrize("params", [{"a": "x", "b": X}, {"a": 1, "c": 5}, {"b": 1}])
@in_memory
async def test_params_of_a_step_that_cannot_fit_their_job_are_refused(jobs, params):
    schema = {
        "properties": {"a": {"$ref": "#/$defs/n"}, "c": {"type": "string"}}, "anyOf": [{"required": ["a"]}],
        "$defs": {"n": {"type": "integer"}},
    }  # fmt: skip
    await command(jobs, "load", schema=schema)
    with pytest.raises(BadInput, match='of job "load"'):
        await workflow(jobs, {"name": "a", "job": "load", "params": params})


@in_memory
async def test_steps_refer_to_jobs_by_id(jobs, world):
    load = await command(jobs, "load")
    made = await workflow(jobs, {"name": "a", "job": "load"}, {"name": "b", "command": "true"})
    stored = await world.store.job(made.job_id, NAMESPACE)
    first, second = stored.job.spec.task.steps
    assert (UUID(first.runs), first.version) == (load.job_id, 0)
    assert (UUID(second.runs), second.version) == ((await jobs.get(NAMESPACE, "etl/b")).job_id, 1)


@in_memory
async def test_a_workflow_runs_the_definition_of_its_submission(jobs, world):
    load = await command(jobs, "load")
    steps = [{"name": "a", "command": "echo 1"}, {"name": "b", "job": "load"}]
    made = await workflow(jobs, *steps)
    stored = await world.store.job(made.job_id, NAMESPACE)
    asked = TestJob(id=made.job_id, spec=stored.job.spec, queue=stored.queue, lane=stored.lane)
    await world.submit(asked)
    steps[0]["command"] = "echo 2"
    await jobs.edit(NAMESPACE, "etl", {"workflow": steps})
    await jobs.edit(NAMESPACE, "load", {"retries": 1})

    await open_all(world)

    kept = await jobs.get(NAMESPACE, "etl/a")
    pinned = dict(await world.rows("SELECT job, version FROM flow_steps"))
    assert (kept.version, pinned) == (2, {kept.job_id: 1, load.job_id: 2})
