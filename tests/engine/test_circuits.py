"""Circuit breakers: failures open them, probes close them, and users override them."""

import pytest
from msgspec import Raw

from horae.errors import BadInput, Conflict
from horae.features.events.part import EventsPart
from horae.model.fleet.submit import Submit
from horae.model.triggers.events.values import NewEvent
from horae.store.admission import circuits
from tests.engine.explain_stage import Stage
from tests.engine.outage import fails
from tests.store_contract.world import NAMESPACE

CIRCUIT = {"failures": "50%", "minimum": 2, "openFor": "30s"}


pytestmark = pytest.mark.parametrize("store_url", ["memory", "postgres"], indirect=True)


async def state(stage: Stage, key: str | None = None) -> str:
    (one,) = (await stage.node.admission.circuit_breakers.show(NAMESPACE, "job", key)).circuits
    return one.state


async def test_failures_open_a_circuit_and_a_probe_closes_it(stage: Stage):
    told: list[str] = []
    stage.node.base.hints.listen(lambda hint: told.extend(e.state for e in hint.events if e.kind == "circuit"))
    await stage.job(circuit=CIRCUIT, retries=0)
    worker = await stage.worker(2)
    for _ in range(2):
        assert await stage.starts(await stage.submit())
    await worker.end("failed")
    await stage.look()
    assert (await state(stage), told) == ("open", ["open"])

    first = await stage.submit()
    await stage.pass_time()
    second = await stage.submit()
    await worker.ask()
    assert [not await stage.runs(id) for id in (first, second)] == [True, True]
    hint = (await stage.node.work.executions.get(NAMESPACE, first)).hint
    assert hint is not None
    assert f"`horae explain {first}` says more." in hint
    (shown,) = await stage.node.admission.circuit_breakers.list(NAMESPACE)
    assert (shown.job, shown.state, shown.waiting, shown.changed_by) == ("job", "open", 2, None)

    assert await stage.starts(first), "this is the probe"
    assert (await state(stage), await stage.runs(second)) == ("half-open", False)
    await worker.end()
    assert await stage.starts(second)
    assert (await state(stage), told) == ("closed", ["open", "half-open", "closed"])
    assert await stage.node.admission.circuit_breakers.list(NAMESPACE) == []


async def test_each_value_of_a_key_has_its_own_circuit(stage: Stage):
    await stage.job(circuit={**CIRCUIT, "key": "${params.host}"}, retries=0)
    worker = await stage.worker(2)
    for _ in range(2):
        assert await stage.starts(await stage.submit(params=Raw(b'{"host":"a"}')))
    await worker.end("failed")
    await stage.look()
    assert (await state(stage, "a"), await state(stage, "b")) == ("open", "closed")
    held, free = await stage.submit(params=Raw(b'{"host":"a"}')), await stage.submit(params=Raw(b'{"host":"b"}'))
    assert await stage.starts(free)
    assert not await stage.runs(held)
    with pytest.raises(BadInput, match="cannot be filled in"):
        await stage.submit(params=Raw(b"{}"))
    receipts, refused = await stage.node.submitter.submit_bulk(
        NAMESPACE, Submit(job="job"), [b'{"host":"b"}', b"{}"], origin="submit", partial=True
    )
    assert (len(receipts), list(refused)) == (1, [1])


async def test_a_manually_opened_circuit_stays_open_until_reset(stage: Stage):
    await stage.job(circuit=CIRCUIT)
    await stage.worker()
    opened = await stage.node.admission.circuit_breakers.open(NAMESPACE, "job", by="key:1", reason="deploy")
    assert (opened.state, opened.forced, opened.changed_by, opened.cause, opened.until) == (
        "open", True, "key:1", "deploy", None,
    )  # fmt: skip
    id = await stage.submit()
    for _ in range(3):
        await stage.pass_time(60)
        await stage.workers[0].ask()
    assert not await stage.runs(id)
    await stage.node.admission.circuit_breakers.reset(NAMESPACE, "job", by="key:2", reason="done")
    assert await stage.starts(id)
    changes = (await stage.node.admission.circuit_breakers.show(NAMESPACE, "job")).changes
    assert [(one.state, one.changed_by, one.cause) for one in changes] == [
        ("closed", "key:2", "done"), ("open", "key:1", "deploy"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "key", "after"),
    [
        (CIRCUIT, None, None),
        ({**CIRCUIT, "key": "${params.host}"}, "a", None),
        ({**CIRCUIT, "key": "${params.host}"}, "a", CIRCUIT),
    ],
    ids=["removed", "removed with its key", "without its key"],
)
async def test_a_circuit_that_its_job_no_longer_has_lets_executions_start(stage: Stage, before, key, after):
    await stage.job(circuit=before)
    worker = await stage.worker()
    await stage.node.admission.circuit_breakers.open(NAMESPACE, "job", by="key:1", key=key)
    waiting = await stage.submit(params=Raw(b'{"host":"a"}'))
    await worker.ask()
    assert "circuit" in await stage.blockers(waiting)
    await stage.node.definitions.jobs.edit(NAMESPACE, "job", {"circuit": after})
    assert await stage.starts(waiting)


async def test_attempts_are_counted_although_the_first_transaction_fails(stage: Stage, monkeypatch):
    await stage.job(circuit=CIRCUIT, retries=0)
    worker = await stage.worker(2)
    for _ in range(2):
        assert await stage.starts(await stage.submit())
    await worker.end("failed")
    await fails(monkeypatch, stage.node.admission.circuit_monitor, circuits, "count_attempts")
    await stage.pass_time(1)
    assert await state(stage) == "open"


async def test_fires_are_delayed_and_the_ledger_says_so(stage: Stage):
    await stage.job(circuit=CIRCUIT, schedule={"every": "10s"})
    await stage.worker()
    await stage.node.admission.circuit_breakers.open(NAMESPACE, "job", by="key:1")
    await stage.pass_time(10)
    await stage.pass_time(10)
    fires = (await stage.node.firing.fires.list(NAMESPACE, job="job")).items
    assert [(one.disposition, one.cause) for one in fires[:2]] == [
        ("fired", "delayed: its circuit is open"),
        ("skipped-overlap", "the previous execution had not ended; delayed: its circuit is open"),
    ]


async def test_fires_and_events_of_a_key_whose_circuit_is_open_are_delayed_and_the_ledger_says_so(stage: Stage):
    triggers = [{"name": "often", "every": "10s", "params": {"host": "down"}}]
    triggers += [{"name": "told", "event": "upload", "params": {"host": "${event.payload.host}"}, "overlap": "allow"}]
    await stage.job(circuit={**CIRCUIT, "key": "${params.host}"}, triggers=triggers)
    await stage.node.admission.circuit_breakers.open(NAMESPACE, "job", by="key:1", key="down")
    await stage.pass_time(10)
    fire = (await stage.node.firing.fires.list(NAMESPACE, job="job")).items[0]
    assert (fire.disposition, fire.cause) == ("fired", "delayed: its circuit is open")

    sent = [NewEvent(name="upload", payload=b'{"host": "%b"}' % host) for host in (b"down", b"up")]
    down, up = await stage.node.part(EventsPart).intake.send(NAMESPACE, sent)
    assert [one.fired[0].cause for one in (down, up)] == ["delayed: its circuit is open", "the event came"]


async def test_an_event_that_fills_in_no_key_starts_an_execution_with_the_circuit_of_the_empty_key(stage: Stage):
    told = {"name": "told", "event": "upload"}
    await stage.job(circuit={**CIRCUIT, "key": "${params.host}"}, triggers=[told])
    await stage.node.admission.circuit_breakers.open(NAMESPACE, "job", by="key:1", key="")

    (sent,) = await stage.node.part(EventsPart).intake.send(NAMESPACE, [NewEvent(name="upload", payload=b"{}")])

    (fired,) = sent.fired
    assert fired.cause == "delayed: its circuit is open"
    blocker = (await stage.blockers(fired.execution_id))["circuit"]
    assert blocker.opens_when.endswith("`horae circuits reset job --key ''`.")


async def test_a_job_without_a_circuit_has_none_to_override(stage: Stage):
    await stage.job()
    with pytest.raises(Conflict, match="has no circuit"):
        await stage.node.admission.circuit_breakers.open(NAMESPACE, "job", by="key:1")
    await stage.job("keyed", circuit={"key": "${params.host}"})
    with pytest.raises(BadInput, match="for each value"):
        await stage.node.admission.circuit_breakers.open(NAMESPACE, "keyed", by="key:1")
    await stage.job("whole", circuit=True)
    with pytest.raises(BadInput, match="one circuit"):
        await stage.node.admission.circuit_breakers.open(NAMESPACE, "whole", by="key:1", key="a")


async def test_attempts_of_jobs_without_a_circuit_are_not_counted(stage: Stage):
    await stage.job()
    worker = await stage.worker()
    assert await stage.starts(await stage.submit())
    await worker.end("failed")
    assert stage.node.admission.circuit_monitor._attempted == []
