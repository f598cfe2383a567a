"""Targets: code that starts executions by itself reads its jobs as they are at that moment."""

from uuid import UUID

import pytest
from msgspec import structs

from horae.env import SECOND
from horae.model.admission.circuit import Circuit
from horae.model.admission.keys import keys_of
from horae.model.admission.limits import KeyLimit, key_name
from horae.model.admission.placement.placement import Affinity
from horae.model.admission.policy import PRIORITY, FairPolicy, PriorityPolicy, ShortestPolicy
from horae.model.admission.rank import RankLeads
from horae.model.definitions.job import Spec
from horae.model.definitions.tasks import CommandTask
from horae.model.executions.deduplication import Batch
from horae.model.executions.execution import Extra
from horae.model.executions.parcel import AT_MOST_ONCE, Envelope
from horae.store.triggers.targets import ExecutionFactory, Target, execution_of, targets
from tests.store_contract.world import NAMESPACE, World, lead


async def test_targets_are_read_with_all_that_executions_need(world: World):
    nightly, hourly = await world.job("nightly", priority=7, delivery="at-most-once"), await world.job("hourly")
    found = await world.store.read(lambda: targets([nightly.id, hourly.id]))

    assert {target.name for target in found.values()} == {"nightly", "hourly"}
    target = found[nightly.id]
    assert (target.key, target.state, target.version, target.spec) == ("default/nightly", "active", 1, nightly.spec)
    due = world.now() + SECOND
    made = execution_of(target, Extra(origin="event"), lead, due_at=due, item=b'{"a":1}')
    assert made.envelope == Envelope(
        namespace=NAMESPACE, job=nightly.id, version=1, queue=nightly.queue, lane=nightly.lane, priority=7,
        due_at=due, delivery=AT_MOST_ONCE,
    )  # fmt: skip
    assert (made.item, made.extra.origin, made.rank_lead) == (b'{"a":1}', "event", lead(nightly.queue, 7, nightly.id))


async def test_an_execution_may_have_a_higher_priority_than_its_job(world: World):
    job = await world.job(priority=2)
    target = (await world.store.read(lambda: targets([job.id])))[job.id]
    made = execution_of(target, Extra(), lead, priority=9)

    assert (made.envelope.priority, made.rank_lead, made.envelope.due_at) == (9, lead(job.queue, 9, job.id), 0)


@pytest.mark.parametrize("options", ["keyed", "keyed batch"])
@pytest.mark.parametrize(("item", "filled"), [(b'{"customer":"a"}', "a"), (b"{}", "")])
def test_keys_come_from_the_params_of_an_execution_and_are_empty_if_these_are_missing(
    options: str, item: bytes, filled: str
):
    key = "${params.customer}"
    batch = Batch(size=3, wait=SECOND) if options == "keyed batch" else None
    spec = Spec(
        name="one", task=CommandTask(argv=("true",)), circuit=Circuit(key=key), batch=batch,
        limits=(KeyLimit(key=key, concurrency=2),), affinity=Affinity(key=key, patience=SECOND),
    )  # fmt: skip
    target = Target(
        job=UUID(int=1), namespace=NAMESPACE, key="default/one", name="one", state="active", version=1, spec=spec,
        queue=1, lane=1,
    )  # fmt: skip
    leads = RankLeads(lambda queue: POLICIES["fair"])

    made = execution_of(target, Extra(), leads, item=item)

    keys = keys_of(made.envelope.keys)
    assert keys.limits == (key_name(target.job, key, filled),)
    assert (keys.circuit, keys.affinity or "", made.share) == (filled, filled, filled)
    assert made.item == (item if batch is None else b'{"items":[%b]}' % item)


async def test_no_statement_runs_without_jobs(world: World):
    assert await world.store.read(lambda: targets([])) == {}


DEFINED = {
    "plainly": {},
    "with a priority": {"priority": 9, "delivery": "at-most-once"},
    "with a limit by key": {"concurrency": 2},
    "with a sequence": {"sequence": "${params.customer}"},
    "with a circuit": {"circuit": Circuit(key="${params.customer}")},
    "with an affinity": {"affinity": Affinity(key="${params.customer}", patience=SECOND)},
    "with batches": {"batch": Batch(size=3, wait=SECOND)},
}
POLICIES = {
    "priority": PRIORITY,
    "shortest": ShortestPolicy(),
    "fair": FairPolicy(by="${params.customer}", within=PriorityPolicy()),
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("defined", DEFINED)
def test_copied_executions_equal_created_ones(defined: str, policy: str):
    spec = Spec(name="one", task=CommandTask(argv=("true",)), **DEFINED[defined])
    first = Target(
        job=UUID(int=1), namespace=NAMESPACE, key="default/one", name="one", state="active", version=1, spec=spec,
        queue=1, lane=1,
    )  # fmt: skip
    other = structs.replace(first, job=UUID(int=2), name="other")
    leads = RankLeads(lambda queue: POLICIES[policy], lambda job: job.int * SECOND)
    extra = Extra(origin="fire")
    modelled = ExecutionFactory(extra, leads)

    arm = structs.replace(other, version=2, chosen=SECOND)
    for target in (first, other, structs.replace(first, lane=2), structs.replace(other, version=2), arm):
        for at, item in ((SECOND, b'{"customer":"a"}'), (2 * SECOND, b'{"customer":"b"}')):
            for deadline in (None, at + SECOND):
                made = execution_of(target, extra, leads, due_at=at, item=item, deadline=deadline)
                assert modelled.of(target, at, item, deadline) == made
