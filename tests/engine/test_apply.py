"""Apply: calendars, templates and jobs of many documents, all in one transaction or none."""

import asyncio
from typing import Any

import pytest

from horae.engine.definitions.document_applier import MOST, Documents
from horae.env import SECOND
from horae.errors import BadInput, Busy, HoraeError
from tests.engine.explain_stage import Stage
from tests.store_contract.world import NAMESPACE
from tests.waiting import eventually

CALENDAR = {"name": "work", "hours": "MON-FRI 09:00-17:00"}
TEMPLATE = {"name": "backup", "parameters": {"region": {"type": "string"}}, "job": {"command": "b ${with.region}"}}
JOBS: list[dict[str, Any]] = [
    {"name": "extract", "command": "extract", "schedule": {"every": "1h", "calendars": ["work"]}},
    {"name": "report", "command": "report", "dependencies": ["extract"]},
    {"name": "eu", "template": "backup", "with": {"region": "eu"}},
    {"name": "daily", "workflow": {"steps": [{"name": "a", "job": "report"}, {"name": "b", "command": "x"}]}},
]
ALL = Documents(calendars=[CALENDAR], templates=[TEMPLATE], jobs=JOBS)

pytestmark = pytest.mark.parametrize("store_url", ["memory", "postgres"], indirect=True)


async def names(stage: Stage) -> list[str]:
    return [job.name for job in (await stage.node.definitions.jobs.list(NAMESPACE)).items]


async def test_everything_is_created_then_unchanged_then_changed(stage: Stage):
    apply = stage.node.definitions.document_applier.apply
    done = await apply(NAMESPACE, ALL)
    assert [(one.kind, one.name, one.outcome) for one in done.items] == [
        ("calendar", "work", "created"), ("template", "backup", "created"), ("job", "extract", "created"),
        ("job", "report", "created"), ("job", "eu", "created"), ("job", "daily", "created"),
    ]  # fmt: skip
    assert {one.outcome for one in (await apply(NAMESPACE, ALL)).items} == {"unchanged"}
    extract, eu = (
        await stage.node.definitions.jobs.get(NAMESPACE, "extract"),
        await stage.node.definitions.jobs.get(NAMESPACE, "eu"),
    )
    assert (extract.version, extract.next_fire_at is not None, eu.command) == (1, True, ["b", "eu"])

    other = {**TEMPLATE, "job": {"command": "save ${with.region}"}}
    changed = [{**JOBS[0], "command": "extract --all"}, *JOBS[1:]]
    done = await apply(NAMESPACE, Documents(templates=[other], jobs=changed))
    assert [(one.name, one.affected) for one in done.items if one.outcome == "changed" and one.kind == "template"] == [
        ("backup", ["eu"])
    ]
    assert {one.name: [each.path for each in one.changes] for one in done.items if one.changes} == {
        "extract": ["command"]
    }


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"name": "z", "command": "x", "schedule": "61 * * * *"}, "z: '61' in the minute field"),
        ({"name": "z", "command": "x", "env": {"A": "secret://nowhere"}}, "z: A referenced secret is missing"),
        ({"name": "z", "command": "x", "dependencies": ["nobody"]}, "z: This job depends on"),
        ({"name": "extract", "command": "x"}, "'extract' is defined twice"),
        ({"command": "x"}, r"jobs\[4\]: A job needs a name"),
    ],
)
async def test_one_refused_document_rolls_back_all_others(stage: Stage, wrong: dict[str, Any], said: str):
    documents = Documents(calendars=[CALENDAR], templates=[TEMPLATE], jobs=[*JOBS, wrong])
    with pytest.raises(BadInput, match=said) as refused:
        await stage.node.definitions.document_applier.apply(NAMESPACE, documents)
    assert refused.value.remedy.endswith("Nothing was applied.")
    assert refused.value.fields["field"].startswith("jobs[4]")
    assert await names(stage) == []
    for table in ("calendars", "templates", "triggers", "jobs", "lanes"):
        assert await stage.world.rows(f"SELECT count(*) FROM {table}") == [(0,)], table


async def test_one_refused_document_rolls_back_earlier_changes(stage: Stage):
    await stage.node.definitions.document_applier.apply(NAMESPACE, ALL)
    changed = [{**job, "priority": 7} for job in JOBS[:2]]
    with pytest.raises(BadInput):
        await stage.node.definitions.document_applier.apply(
            NAMESPACE, Documents(jobs=[*changed, {"name": "z", "command": ""}])
        )
    circle = {"name": "extract", "command": "x", "dependencies": ["report"]}
    daily = {**JOBS[3], "priority": 7}
    with pytest.raises(BadInput, match="extract: These dependencies form a"):
        await stage.node.definitions.document_applier.apply(NAMESPACE, Documents(jobs=[daily, circle]))
    assert [(await stage.node.definitions.jobs.get(NAMESPACE, one["name"])).version for one in (*changed, daily)] == [
        1,
        1,
        1,
    ]


async def test_the_order_of_documents_does_not_matter(stage: Stage):
    done = await stage.node.definitions.document_applier.apply(
        NAMESPACE, Documents(calendars=[CALENDAR], templates=[TEMPLATE], jobs=JOBS[::-1])
    )
    assert [one.name for one in done.items if one.kind == "job"] == [job["name"] for job in JOBS[::-1]]
    assert {one.outcome for one in done.items} == {"created"}


async def test_a_dry_run_reports_all_changes_and_writes_nothing(stage: Stage):
    told = await stage.node.definitions.document_applier.apply(NAMESPACE, ALL, dry_run=True)
    assert (told.dry_run, [one.outcome for one in told.items]) == (True, ["created"] * 6)
    assert await names(stage) == []


async def test_concurrent_applies_do_not_mix(stage: Stage):
    def documents(version: int) -> Documents:
        jobs = [{**job, "description": f"version {version}"} for job in JOBS]
        return Documents(calendars=[CALENDAR], templates=[TEMPLATE], jobs=jobs)

    done = await asyncio.gather(
        *(stage.node.definitions.document_applier.apply(NAMESPACE, documents(version)) for version in range(5)),
        return_exceptions=True,
    )
    assert all(not isinstance(one, BaseException) or isinstance(one, Busy) for one in done), done
    said = {(await stage.node.definitions.jobs.get(NAMESPACE, job["name"])).description for job in JOBS}
    assert len(said) == 1


async def test_a_concurrent_edit_runs_before_or_after_an_apply(stage: Stage):
    await stage.node.definitions.document_applier.apply(NAMESPACE, ALL)

    async def edit(name: str) -> object:
        return await stage.node.definitions.jobs.edit(NAMESPACE, name, {"priority": 7})

    changed = Documents(jobs=[{**job, "description": "new"} for job in JOBS])
    works = [stage.node.definitions.document_applier.apply(NAMESPACE, changed), *(edit(job["name"]) for job in JOBS)]
    done = await asyncio.gather(*works, return_exceptions=True)
    assert [one for one in done if isinstance(one, BaseException) and not isinstance(one, HoraeError)] == []
    assert {(await stage.node.definitions.jobs.get(NAMESPACE, job["name"])).description for job in JOBS} == {"new"}


async def test_fires_that_become_due_before_the_turn_of_an_apply_are_decided(stage: Stage):
    applier = stage.node.definitions.document_applier
    await stage.job("hourly", schedule={"every": "1h"})
    async with applier._turns[NAMESPACE]:
        applying = asyncio.create_task(
            applier.apply(NAMESPACE, Documents(jobs=[{"name": "hourly", "command": "true", "schedule": "0 5 * * *"}]))
        )
        await eventually(lambda: applier._turns[NAMESPACE]._waiters)
        stage.world.clock.advance(3600 * SECOND)
    await applying
    assert await stage.world.rows("SELECT disposition FROM fires") == [("fired",)]


async def test_the_number_of_documents_is_limited(stage: Stage):
    for count in (0, MOST + 1):
        with pytest.raises(BadInput, match="documents to apply"):
            await stage.node.definitions.document_applier.apply(
                NAMESPACE, Documents(jobs=[{"name": "a", "command": "x"}] * count)
            )
