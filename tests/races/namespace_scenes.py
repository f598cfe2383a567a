"""Scenes of namespaces: a deletion and an addition to a namespace do not miss each other."""

from typing import Any

from msgspec import structs

from horae.engine.definitions import job_changes
from horae.engine.definitions.job_changes import JobDraft
from horae.errors import Conflict
from horae.model.tenancy.namespace import NamespaceDefinition
from horae.store.tenancy import namespaces
from tests.races.scenes import cast, scene
from tests.races.stage import Move, Scene
from tests.store_contract.world import World


@scene("a namespace is deleted / a job is created in it")
async def _(world: World) -> Scene:
    c = await cast(world)
    id = await world.store.write(lambda: namespaces.create("other", NamespaceDefinition(), c.now))
    assert id is not None
    draft, job = JobDraft(spec=structs.replace(c.job.spec, name="late")), world.env.new_id()
    delete = Move("delete", lambda: namespaces.delete(id, c.now))
    create = Move("create", lambda: job_changes.create(job, id, draft, c.new_id, c.now), refusals=(Conflict,))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        ((state,),) = await world.rows("SELECT state FROM namespaces WHERE id = $1", id)
        jobs = await world.rows("SELECT id FROM jobs WHERE namespace = $1", id)
        assert (state, len(jobs)) in (("deleted", 0), ("active", 1)), "a job was created in a deleted namespace"

    return Scene(left=[delete], right=[create], check=check)
