"""Templates: jobs are made from them and change with them, all or none."""

import asyncio
from typing import Any

import pytest

from horae.errors import BadInput, Busy, Conflict, NotFound, Stale
from horae.features.rollouts.part import RolloutsPart
from horae.features.templates.part import TemplatesPart
from tests.engine.explain_stage import Stage
from tests.store_contract.world import NAMESPACE

PARAMETERS = {"region": {"type": "string"}, "hour": {"type": "integer", "default": 3}}
JOB = {"command": ["backup", "${with.region}", "${params.day}"], "schedule": "0 ${with.hour} * * *", "retries": 1}


pytestmark = pytest.mark.parametrize("store_url", ["memory", "postgres"], indirect=True)


async def put(stage: Stage, job: Any = None, **more: Any) -> Any:
    body = {"parameters": PARAMETERS, "job": job or JOB}
    return (await stage.node.part(TemplatesPart).templates.put(NAMESPACE, "backup", body, **more))[0]


async def make(stage: Stage, name: str, region: str = "eu", **own: Any) -> Any:
    body = {"name": name, "template": "backup", "with": {"region": region}, **own}
    return await stage.node.definitions.jobs.create(NAMESPACE, body)


async def test_jobs_change_with_their_template(stage: Stage):
    await put(stage)
    eu, us = await make(stage, "backup-eu"), await make(stage, "backup-us", "us", retries=5)
    assert (eu.command, eu.schedule, eu.template, eu.with_) == (
        ["backup", "eu", "${params.day}"], "0 3 * * *", "backup", {"region": "eu"},
    )  # fmt: skip
    assert (us.retries, us.overrides) == (5, {"retries": 5})

    changed = {**JOB, "retries": 2, "schedule": "0 4 * * *"}
    told = await put(stage, changed, dry_run=True)
    assert {one.job: [c.path for c in one.changes] for one in told.affected} == {
        "backup-eu": ["schedule", "retries"], "backup-us": ["schedule"],
    }  # fmt: skip
    assert (await stage.node.definitions.jobs.get(NAMESPACE, "backup-eu")).version == 1

    done = await put(stage, changed)
    assert (done.version, done.jobs, len(done.affected)) == (2, ["backup-eu", "backup-us"], 2)
    after = [await stage.node.definitions.jobs.get(NAMESPACE, name) for name in ("backup-eu", "backup-us")]
    assert [(job.version, job.retries, job.schedule) for job in after] == [(2, 2, "0 4 * * *"), (2, 5, "0 4 * * *")]
    assert await stage.world.rows("SELECT count(*) FROM triggers WHERE state <> 'ended'") == [(2,)]
    for dry_run in (False, True):
        again = await put(stage, changed, dry_run=dry_run)
        assert (again.version, again.affected, again.dry_run) == (2, [], dry_run)


async def test_an_edit_changes_what_the_job_says_itself(stage: Stage):
    await put(stage)
    await make(stage, "backup-eu", timeout="5m")

    moved = await stage.node.definitions.jobs.edit(NAMESPACE, "backup-eu", {"with": {"region": "us"}, "timeout": None})
    assert (moved.command[1], moved.timeout, moved.overrides) == ("us", None, {})
    back = await stage.node.definitions.jobs.rollback(NAMESPACE, "backup-eu", 1)
    assert (back.with_, back.timeout) == ({"region": "eu"}, "5m")
    _, outcome = await stage.node.definitions.jobs.put(
        NAMESPACE, {"name": "backup-eu", "template": "backup", "with": {"region": "eu"}, "timeout": "5m"}
    )
    assert outcome == "unchanged"

    alone = await stage.node.definitions.jobs.edit(NAMESPACE, "backup-eu", {"template": None})
    assert (alone.template, alone.command[1], alone.timeout) == (None, "eu", "5m")
    assert (await put(stage, {**JOB, "retries": 9})).affected == []


async def test_a_change_that_makes_an_invalid_job_is_refused(stage: Stage):
    await put(stage)
    await make(stage, "backup-eu")
    await make(stage, "backup-odd", "o d d")
    odd = {**JOB, "queue": "${with.region}"}

    told = await put(stage, odd, dry_run=True)
    assert [(one.job, one.error is None) for one in told.affected] == [("backup-eu", True), ("backup-odd", False)]
    with pytest.raises(Conflict, match="backup-odd") as refused:
        await put(stage, odd)
    assert refused.value.fields["jobs"] == ["backup-odd"]
    assert (await stage.node.part(TemplatesPart).templates.get(NAMESPACE, "backup")).version == 1
    assert (await stage.node.definitions.jobs.get(NAMESPACE, "backup-eu")).version == 1


async def test_a_rollout_of_one_of_its_jobs_refuses_the_change(stage: Stage):
    await put(stage)
    await make(stage, "backup-eu")
    await make(stage, "backup-us", "us")
    await stage.node.part(RolloutsPart).rollouts.put(
        NAMESPACE, "backup-us", {"change": {"retries": 3}, "share": "10%"}, by=""
    )
    with pytest.raises(Conflict, match="rollout"):
        await put(stage, {**JOB, "retries": 2})
    assert (await stage.node.definitions.jobs.get(NAMESPACE, "backup-eu")).version == 1


async def test_a_template_in_use_is_not_deleted(stage: Stage):
    await put(stage)
    await make(stage, "backup-eu")
    with pytest.raises(Conflict, match="backup-eu") as refused:
        await stage.node.part(TemplatesPart).templates.delete(NAMESPACE, "backup")
    assert refused.value.fields["jobs"] == ["backup-eu"]
    with pytest.raises(Stale):
        await stage.node.part(TemplatesPart).templates.delete(NAMESPACE, "backup", if_match=7)

    await stage.node.definitions.jobs.delete(NAMESPACE, "backup-eu")
    await stage.node.part(TemplatesPart).templates.delete(NAMESPACE, "backup")
    with pytest.raises(NotFound):
        await stage.node.part(TemplatesPart).templates.get(NAMESPACE, "backup")
    with pytest.raises(BadInput, match="no template"):
        await make(stage, "backup-eu")
    assert (await put(stage)).version == 1


async def test_a_job_is_restored_as_its_template_says_now(stage: Stage):
    await put(stage)
    await make(stage, "backup-eu", timeout="5m")
    jobs = stage.node.definitions.jobs
    await jobs.pause(NAMESPACE, "backup-eu")
    await jobs.delete(NAMESPACE, "backup-eu")
    await put(stage, {**JOB, "retries": 2, "schedule": "0 4 * * *"})

    back = await jobs.restore(NAMESPACE, "backup-eu")

    assert (back.state, back.version, back.retries, back.schedule) == ("paused", 2, 2, "0 4 * * *")
    assert (back.template, back.overrides) == ("backup", {"timeout": "5m"})
    assert (await put(stage, {**JOB, "retries": 3})).jobs == ["backup-eu"]
    assert (await jobs.get(NAMESPACE, "backup-eu")).retries == 3


@pytest.mark.parametrize("how", ["restore", "rollback"])
async def test_a_job_stands_alone_if_it_cannot_be_made_from_its_template_any_more(stage: Stage, how: str):
    await put(stage)
    await make(stage, "backup-eu", timeout="5m")
    jobs = stage.node.definitions.jobs
    if how == "restore":
        await jobs.delete(NAMESPACE, "backup-eu")
        await stage.node.part(TemplatesPart).templates.delete(NAMESPACE, "backup")
        back = await jobs.restore(NAMESPACE, "backup-eu")
    else:
        await jobs.edit(NAMESPACE, "backup-eu", {"template": None})
        zone = {"parameters": {"zone": {"type": "string"}}, "job": {"command": ["backup", "${with.zone}"]}}
        await stage.node.part(TemplatesPart).templates.put(NAMESPACE, "backup", zone)
        back = await jobs.rollback(NAMESPACE, "backup-eu", 1)

    assert (back.template, back.command[1], back.timeout, back.schedule) == (None, "eu", "5m", "0 3 * * *")
    assert (await jobs.edit(NAMESPACE, "backup-eu", {"retries": 7})).retries == 7


async def test_a_rollback_takes_back_what_the_job_says_itself_and_not_its_template(stage: Stage):
    await put(stage)
    await make(stage, "backup-eu", timeout="5m")
    jobs = stage.node.definitions.jobs
    await jobs.edit(NAMESPACE, "backup-eu", {"with": {"region": "us"}, "timeout": "6m"})
    await put(stage, {**JOB, "retries": 2})

    back = await jobs.rollback(NAMESPACE, "backup-eu", 1)

    assert (back.with_, back.timeout, back.retries) == ({"region": "eu"}, "5m", 2)
    assert (await put(stage, {**JOB, "retries": 2})).jobs == ["backup-eu"]


async def test_workflows_are_made_from_templates_with_the_jobs_of_their_steps(stage: Stage):
    await stage.job("load")
    steps = [{"name": "get", "command": ["get", "${with.region}"]}, {"name": "load", "job": "load", "after": ["get"]}]
    await put(stage, {"workflow": {"steps": steps}})
    made = await make(stage, "etl-eu")
    assert made.workflow["steps"][0]["command"] == ["get", "eu"]

    steps[0] = {"name": "get", "command": ["fetch", "${with.region}"]}
    done = await put(stage, {"workflow": {"steps": steps}})
    assert [(one.job, one.error) for one in done.affected] == [("etl-eu", None)]
    step = await stage.node.definitions.jobs.get(NAMESPACE, "etl-eu/get")
    assert (step.command, step.version) == (["fetch", "eu"], 2)


async def test_a_workflow_and_a_job_that_it_runs_change_together(stage: Stage):
    base = {"command": "true", "retries": 1}
    await stage.node.part(TemplatesPart).templates.put(NAMESPACE, "both", {"job": base})
    await stage.node.definitions.jobs.create(NAMESPACE, {"name": "work", "template": "both"})
    flow = {"name": "flow", "template": "both", "workflow": {"steps": [{"name": "a", "job": "work"}]}, "retries": None}
    await stage.node.definitions.jobs.create(NAMESPACE, flow)

    view, _ = await stage.node.part(TemplatesPart).templates.put(
        NAMESPACE, "both", {"job": {**base, "description": "what it is for"}}
    )

    assert [one.job for one in view.affected] == ["flow", "work"]
    assert (await stage.node.definitions.jobs.get(NAMESPACE, "flow")).description == "what it is for"


async def test_a_job_and_its_copies_in_workflows_change_together(stage: Stage):
    def template(retries: int, team: str, *more: str) -> dict[str, Any]:
        steps = [{"name": name, "job": "work", "retries": retries} for name in ("a", *more)]
        return {"job": {"workflow": {"steps": steps}, "tags": {"team": team}}}

    await stage.job("work")
    await stage.node.part(TemplatesPart).templates.put(NAMESPACE, "both", template(1, "x"))
    work = {"name": "work", "template": "both", "workflow": None, "command": "true"}
    await stage.node.definitions.jobs.put(NAMESPACE, work)
    await stage.node.definitions.jobs.create(NAMESPACE, {"name": "flow", "template": "both"})
    alone = {"name": "other", "workflow": {"steps": [{"name": "a", "job": "work", "retries": 7}]}}
    await stage.node.definitions.jobs.create(NAMESPACE, alone)

    view, _ = await stage.node.part(TemplatesPart).templates.put(NAMESPACE, "both", template(2, "y", "b"))

    assert [one.job for one in view.affected] == ["flow", "work"]
    shown = {
        name: await stage.node.definitions.jobs.get(NAMESPACE, name) for name in ("work", "flow/a", "flow/b", "other/a")
    }
    assert {name: (one.retries, one.tags) for name, one in shown.items()} == {
        "work": (0, {"team": "y"}),
        "flow/a": (2, {"team": "y"}),
        "flow/b": (2, {"team": "y"}),
        "other/a": (7, {"team": "y"}),
    }


async def test_a_template_that_makes_no_valid_job_is_refused(stage: Stage):
    with pytest.raises(BadInput) as refused:
        await stage.node.part(TemplatesPart).templates.create(
            NAMESPACE, {"name": "wrong", "job": {"command": "true", "retries": -1}}
        )
    assert refused.value.fields["field"] == "retries"
    await stage.node.part(TemplatesPart).templates.create(NAMESPACE, {"name": "right", "job": {"command": "true"}})
    with pytest.raises(Conflict):
        await stage.node.part(TemplatesPart).templates.create(NAMESPACE, {"name": "right", "job": {"command": "true"}})
    with pytest.raises(BadInput, match="need a template"):
        await stage.node.definitions.jobs.create(NAMESPACE, {"name": "a", "command": "true", "with": {"n": 1}})
    assert [one.name for one in (await stage.node.part(TemplatesPart).templates.list(NAMESPACE)).items] == ["right"]


async def test_the_second_of_two_concurrent_requests_changes_the_new_template(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    change = stage.node.store.change

    async def change_late(make: Any) -> Any:
        monkeypatch.setattr(stage.node.store, "change", change)
        await put(stage)
        return await change(make)

    monkeypatch.setattr(stage.node.store, "change", change_late)

    assert (await put(stage, {**JOB, "retries": 2})).version == 2


async def test_a_job_that_is_made_while_its_template_changes_is_as_the_template_says(stage: Stage):
    await put(stage)

    async def patiently(name: str) -> None:
        while True:
            try:
                await make(stage, name)
            except Busy:
                continue
            return

    await asyncio.gather(
        *(patiently(f"backup-{n}") for n in range(3)), put(stage, {**JOB, "retries": 2}), return_exceptions=False
    )
    found = await stage.node.definitions.jobs.list(NAMESPACE)
    assert {job.retries for job in found.items} == {2}
