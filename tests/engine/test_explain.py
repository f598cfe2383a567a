"""Explain: every closed gate is named, and following its remedy lets the execution start."""

import re
from typing import get_args

import pytest
from msgspec import Raw

from horae.engine.executions.probes.table import OF_EXECUTIONS, OF_JOBS
from horae.env import SECOND
from horae.model.base.instant import format_instant
from horae.model.executions.execution import WaitReason
from horae.model.executions.gates import GATES
from tests.engine.explain_scenes import SCENES
from tests.engine.explain_stage import Stage
from tests.marks import sources
from tests.store_contract.world import NAMESPACE

ASKING = ("dependency", "limit", "sequence", "overlap", "circuit", "queue-limit", "suspect", "busy", "ahead")
PLAYED = [
    *(("memory", gate) for gate in SCENES),
    *(("postgres", gate) for gate in ASKING),
]  # their probes read the store


@pytest.mark.parametrize(("store_url", "gate"), PLAYED, indirect=["store_url"])
async def test_removing_the_named_blocker_lets_the_execution_start(stage: Stage, gate: str):
    played = await SCENES[gate](stage)
    blockers = await stage.blockers(played.execution)
    assert gate in blockers, f"{gate} is closed, and explain says {list(blockers)}"
    for worker in stage.workers:
        await worker.ask()
    assert not await stage.runs(played.execution), f"{gate} is closed, and it runs"

    await played.open(blockers[gate])

    assert await stage.starts(played.execution)
    assert (await stage.explain(played.execution)).blockers == []


@pytest.mark.parametrize("store_url", ["memory"], indirect=True)
async def test_an_execution_waiting_for_a_limit_also_names_the_holder_of_its_sequence(stage: Stage):
    await stage.job(limits=[{"key": "all", "concurrency": 1}], sequence="${params.account}")
    accounts = [Raw(b'{"account":%d}' % account) for account in (1, 2, 2)]
    first, second, third = [await stage.submit(params=params) for params in accounts]
    assert next(iter(await stage.blockers(second))) == "limit"
    told = await stage.blockers(third)
    assert [told[gate].details["holders"] for gate in ("limit", "sequence")] == [[str(first)], [str(second)]]


@pytest.mark.parametrize("store_url", ["memory"], indirect=True)
@pytest.mark.parametrize(
    ("gate", "limits"), [("limit", {"limits": [{"key": "all", "concurrency": 1}]}), ("rate", {"rate": "1/1m"})]
)
async def test_an_execution_waiting_for_a_removed_limit_is_said_to_be_checked(stage: Stage, gate: str, limits: dict):
    await stage.job(**limits)
    worker = await stage.worker(2)
    await stage.submit()
    second = await stage.submit()
    await worker.ask()
    await stage.node.definitions.jobs.edit(NAMESPACE, "job", dict.fromkeys(limits))
    blocker = (await stage.blockers(second))[gate]
    assert blocker.message.startswith("Its limits are checked ")
    assert blocker.until is not None
    assert await stage.starts(second)


@pytest.mark.parametrize("store_url", ["memory"], indirect=True)
async def test_the_start_is_estimated_from_running_and_earlier_executions(stage: Stage):
    """Executions take ten seconds. One has run for four, two are ahead: the execution starts when these have ended."""
    await stage.job()
    worker = await stage.worker()
    unknown = await stage.submit()
    assert await stage.starts(unknown)
    await stage.pass_time(10)
    await worker.end()
    ids = []
    for _ in range(4):
        ids.append(await stage.submit())
        stage.world.clock.advance(1)
    assert await stage.starts(ids[0])
    await stage.pass_time(4)

    found = (await stage.explain(ids[-1])).estimate
    assert found is not None
    assert (found.executions_ahead, found.slots) == (2, 1)
    assert found.starts_at == format_instant(stage.world.now() + 26 * SECOND)


@pytest.mark.parametrize("store_url", ["memory"], indirect=True)
async def test_the_start_is_not_estimated_for_a_job_that_never_ran(stage: Stage):
    await stage.job()
    await stage.worker()
    assert await stage.starts(await stage.submit())
    found = (await stage.explain(await stage.submit())).estimate
    assert found is not None
    assert (found.starts_at, found.reason) == (None, "The usual duration of the executions before it is not known yet.")


@pytest.mark.parametrize("store_url", ["memory"], indirect=True)
async def test_the_start_of_a_workflow_needs_no_worker(stage: Stage):
    await stage.node.definitions.jobs.create(
        NAMESPACE, {"name": "flow", "workflow": {"steps": [{"name": "a", "sleep": "1s"}]}}
    )
    await stage.look()
    found = (await stage.explain(await stage.submit("flow", delay=60 * SECOND))).estimate
    assert found is not None
    assert found.starts_at == format_instant(stage.world.now() + 60 * SECOND)


@pytest.mark.parametrize("store_url", ["memory"], indirect=True)
async def test_a_started_workflow_has_no_estimated_start(stage: Stage):
    await stage.node.definitions.jobs.create(
        NAMESPACE, {"name": "flow", "workflow": {"steps": [{"name": "a", "sleep": "1h"}]}}
    )
    await stage.look()
    flow = await stage.submit("flow")
    assert (await stage.explain(flow)).estimate is not None
    await stage.starts(flow)
    found = await stage.explain(flow)
    assert ([one.gate for one in found.blockers], found.estimate) == (["sleep"], None)


def test_every_gate_has_a_probe_and_a_scene():
    of_executions = {gate.name for gate in GATES if "execution" in gate.about}
    of_jobs = {gate.name for gate in GATES if "job" in gate.about}
    assert set(OF_EXECUTIONS) == of_executions
    assert set(OF_JOBS) == of_jobs
    assert set(SCENES) == of_executions


def test_every_reason_to_wait_belongs_to_one_gate():
    """`WaitingSlice.reason` is a WaitReason: mypy refuses one that is not listed there."""
    known = [reason for gate in GATES for reason in gate.reasons]
    assert sorted(known) == sorted({*get_args(WaitReason)})
    written = {reason for text in sources().values() for reason in re.findall(r"reason = '(\w+)'", text)}
    assert written <= {*known}
