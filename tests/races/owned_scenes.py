"""Scenes of jobs owned by workflows: copies follow their base, and no workflow runs a job that is deleted meanwhile."""

from typing import Any

from msgspec import structs

from horae.engine.definitions import job_changes
from horae.engine.definitions.owned_jobs import OwnedJobPlanner
from horae.errors import Busy, Conflict
from horae.model.definitions.job import Spec
from horae.model.workflows.reading.workflow import parse_workflow
from tests.engine.objects import jobs_of
from tests.races.scenes import scene
from tests.races.stage import Move, Scene
from tests.store_contract.world import NAMESPACE, World, rank

STEP = {"name": "a", "job": "load", "timeout": "5m"}


async def drafted(world: World, spec: Spec, name: str | None = None) -> tuple[Any, job_changes.JobDraft]:
    """Return the present job, if there is one, and its draft."""
    before = None if name is None else await world.store.job_named(NAMESPACE, name)
    resolved, keeping = await OwnedJobPlanner(world.store, world.env.new_id).plan(NAMESPACE, spec, before)
    return before, job_changes.JobDraft(spec=resolved, owned_jobs=keeping)


async def edit(world: World, name: str, **changes: Any) -> Move:
    stored = await world.store.job_named(NAMESPACE, name)
    assert stored is not None
    before, draft = await drafted(world, structs.replace(stored.job.spec, **changes), name)
    now = world.now()
    return Move("edit", lambda: job_changes.edit(before, draft, world.env.new_id, now))


@scene("edit of a job / edit of a workflow that runs it with changes")
async def _(world: World) -> Scene:
    jobs = jobs_of(world.store, rank=rank)
    await jobs.create(NAMESPACE, {"name": "load", "command": "true"})
    await jobs.create(NAMESPACE, {"name": "etl", "workflow": [STEP]})
    more = parse_workflow([STEP, {**STEP, "name": "b"}])

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        copies = (await jobs.list(NAMESPACE, owner="etl")).items
        load = await jobs.get(NAMESPACE, "load")
        assert {copy.description for copy in copies} == {load.description}, "a copy differs from its base"
        assert True in left + right

    return Scene(
        left=[await edit(world, "load", description="new")], right=[await edit(world, "etl", task=more)], check=check
    )


@scene("delete / create of a workflow that runs it")
async def _(world: World) -> Scene:
    jobs = jobs_of(world.store, rank=rank)
    await jobs.create(NAMESPACE, {"name": "load", "command": "true"})
    _, draft = await drafted(world, Spec(name="etl", task=parse_workflow([{"name": "a", "job": "load"}])))
    before = await world.store.job_named(NAMESPACE, "load")
    assert before is not None
    fresh, now = world.env.new_id(), world.now()
    create = Move(
        "create", lambda: job_changes.create(fresh, NAMESPACE, draft, world.env.new_id, now), refusals=(Busy,)
    )
    delete = Move("delete", lambda: job_changes.delete(before, world.env.new_id, now, "pending"), refusals=(Conflict,))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        there = await world.rows("SELECT name FROM jobs WHERE state <> 'deleted'")
        assert sorted(row[0] for row in there) in ([], ["etl", "load"]), "a workflow runs a deleted job"

    return Scene(left=[delete], right=[create], check=check)
