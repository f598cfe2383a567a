"""Scenes of rollouts: after the end of a rollout nothing is chosen by it; edits and rollouts do not miss each other."""

from typing import Any

from msgspec import structs

from horae.engine.definitions import job_changes
from horae.errors import Conflict
from horae.features.rollouts import engine as rollout_changes
from horae.features.rollouts.model.read import RolloutRequest
from horae.features.rollouts.store import rollouts
from horae.model.definitions.rollout import Rollout, RolloutPlan
from horae.model.executions.parcel import mark_rollout
from horae.model.executions.submission import Submission
from horae.store.definitions import jobs
from horae.store.executions.entering import submit
from horae.store.script import Fetch, Script, Statement
from tests.races.scenes import Cast, cast, scene
from tests.races.stage import Move, Scene
from tests.races.trigger_scenes import due
from tests.store_contract.world import NAMESPACE, World

TRIED = Statement("test_tried", "SELECT coalesce(sum(n), 0) FROM parcels WHERE version = 2")
ALL = RolloutPlan(shares={1: 0, 2: 100})


def tried() -> Script[int]:
    rows = yield Fetch(TRIED)
    return int(rows[0][0])


async def on(c: Cast, plan: RolloutPlan = ALL) -> Rollout:
    """Start a rollout that sends everything to a second version."""
    job = c.job

    def script() -> Script[Rollout]:
        yield from jobs.put_version(job.id, 2, job.spec, job.queue, job.lane, c.now)
        return (yield from rollouts.begin(job.id, plan, "", c.now))

    return await c.world.store.write(script)


async def aborted(c: Cast) -> list[Move]:
    """Abort the job's rollout, and read the attempts after the acknowledgement."""
    stored = await c.world.store.job(c.job.id, NAMESPACE)
    assert stored is not None
    job = stored.job
    return [Move("abort", lambda: rollout_changes.abort(job, None, "", "", c.now)), Move("look", tried)]


async def nothing_more(world: World, left: list[Any], right: list[Any]) -> None:
    assert await world.store.read(tried) == left[-1], "a rollout chose a version after it had ended"


@scene("a rollout ends / submit of its choice")
async def _(world: World) -> Scene:
    c = await cast(world)
    rollout = await on(c)
    chosen = [
        structs.replace(
            one,
            envelope=mark_rollout(structs.replace(one.envelope, version=2), rollout.since),
            rollout=rollout.number,
        )
        for one in world.wanted(c.job)
    ]
    asked = Submission(executions=chosen)
    return Scene(
        left=await aborted(c),
        right=[Move("submit", lambda: submit.submit([asked], c.new_id, c.now), refusals=(submit.JobMoved,))],
        check=nothing_more,
    )


@scene("a rollout ends / fire")
async def _(world: World) -> Scene:
    c = await due(world)
    await on(c)
    return Scene(left=await aborted(c), right=[c.fire()], check=nothing_more)


@scene("a rollout begins / edit")
async def _(world: World) -> Scene:
    c = await cast(world)
    before = await world.store.job(c.job.id, NAMESPACE)
    assert before is not None
    draft = job_changes.JobDraft(spec=structs.replace(c.job.spec, description="changed"))
    tried = job_changes.JobDraft(spec=structs.replace(c.job.spec, description="tried"))
    begin = Move("begin", lambda: rollout_changes.start(before, RolloutRequest(change={}, share=10), tried, "", c.now))
    edit = Move("edit", lambda: job_changes.edit(before, draft, c.new_id, c.now), refusals=(Conflict,))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        rows = await world.rows("SELECT version, rollout FROM jobs WHERE id = $1", c.job.id)
        assert rows == [(1, 1)] if left[0] is not None else rows == [(2, None)], "an edit missed a rollout"
        assert [v for (v,) in await world.rows("SELECT version FROM job_versions ORDER BY version")] == [1, 2]

    return Scene(left=[begin], right=[edit], check=check)
