"""Scenes of templates: a change of a template and changes of its jobs do not miss each other."""

from typing import Any
from uuid import UUID

from msgspec import structs

from horae.engine.definitions import job_changes
from horae.engine.definitions.job_changes import JobDraft
from horae.errors import Busy
from horae.features.templates.engine import changes as template_changes
from horae.features.templates.model.values import Body, JobTemplate
from horae.features.templates.store import templates
from horae.model.definitions.template_use import TemplateUse
from horae.store.definitions import job_templates
from horae.store.definitions.jobs import StoredJob
from horae.store.triggers.dependencies.starts import Consequences
from tests.races.scenes import Cast, cast, scene
from tests.races.stage import Move, Scene
from tests.store_contract.world import NAMESPACE, World

FIRST, SECOND = Body(job={"command": "true"}), Body(job={"command": "false"})


class Set:
    """A template, and a job that was made from it."""

    def __init__(self, c: Cast, template: JobTemplate, job: StoredJob, made: TemplateUse) -> None:
        self.c, self.template, self.job, self.made = c, template, job, made

    def change(self, *, used: bool = True) -> Move:
        """Change the template without a change to the job."""
        seen = {(self.job.job.id, 1)} if used else set()
        return Move(
            "change",
            lambda: template_changes.change(self.template, SECOND, seen, [], self.c.new_id, self.c.now, Consequences()),
            refusals=(template_changes.JobsChanged,),
        )


async def made_from(world: World, *, used: bool = True) -> Set:
    c = await cast(world)
    id: UUID = world.env.new_id()
    await world.store.write(lambda: templates.add(id, NAMESPACE, "t", FIRST, c.now))
    template = await world.store.read(lambda: templates.named(NAMESPACE, "t"))
    assert template is not None
    origin = TemplateUse(template=id, name="t")
    if used:
        before = await world.store.job(c.job.id, NAMESPACE)
        assert before is not None
        await world.store.write(lambda: job_templates.use(c.job.id, None, origin))
    job = await world.store.job(c.job.id, NAMESPACE)
    assert job is not None
    return Set(c, template, job, origin)


@scene("a template changes / a job made from it is edited")
async def _(world: World) -> Scene:
    s = await made_from(world)
    spec = structs.replace(s.job.job.spec, description="edited", made=s.made)
    draft = JobDraft(spec=spec, derived=(s.template.id, 1))
    edit = Move("edit", lambda: job_changes.edit(s.job, draft, s.c.new_id, s.c.now))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        ((version,),) = await world.rows("SELECT version FROM templates")
        assert (version == 2) == (not right[0]), "an edit and a change of the template missed each other"
        assert len(await world.rows("SELECT version FROM job_versions")) == (2 if right[0] else 1)

    return Scene(left=[s.change()], right=[edit], check=check)


@scene("a template changes / a job is created from it")
async def _(world: World) -> Scene:
    s = await made_from(world, used=False)
    spec = structs.replace(s.job.job.spec, name="other", made=s.made)
    draft = JobDraft(spec=spec, derived=(s.template.id, 1))
    id = world.env.new_id()
    create = Move("create", lambda: job_changes.create(id, NAMESPACE, draft, s.c.new_id, s.c.now), refusals=(Busy,))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        ((version,),) = await world.rows("SELECT version FROM templates")
        made = await world.rows("SELECT job FROM template_jobs")
        assert (version, len(made)) in ((2, 0), (1, 1)), "a job differs from its template"

    return Scene(left=[s.change(used=False)], right=[create], check=check)
