"""Random workflows under crashes and a bad network: each step ends once and in its order, and its parents follow.

Servers and workers die between any two statements; workflows are cancelled, paused and resumed. `HORAE_SEED=n` replays.
"""

from random import Random
from typing import Any
from uuid import UUID

import pytest

from horae.env import SECOND
from horae.errors import Busy, HoraeError
from horae.model.base.ids import execution_id, index_of, parcel_of
from horae.model.definitions.job import Spec
from horae.model.definitions.retry import RetryPolicy
from horae.model.definitions.tasks import PythonTask
from horae.model.workflows.decisions.plan import plan_of
from horae.model.workflows.decisions.values import JOINS, Workflow, WorkflowStep
from horae.model.workflows.decisions.workflow import FINAL
from horae.model.workflows.repeats import Foreach, Loop
from horae.model.workflows.waits import Sleep
from horae.store.contract import Store
from horae.store.definitions import jobs
from horae.store.driver import run
from horae.store.triggers.dependencies.starts import Consequences
from horae.store.workflows import audit as workflow_audit
from horae.store.workflows import pause as workflow_pause
from tests.simulation.actors import Client, Observer, Worker
from tests.simulation.check import Checker, all_final, rows
from tests.simulation.seeds import each, seeds
from tests.simulation.test_simulation import _done, _restore, _trouble
from tests.simulation.world import Lost, World

SEEDS, MORE = 8, 400  # in `make test`, and in `make prove`
GROUP = 4
TROUBLED = 12.0
HEALING = 900.0
FLOWS = 3  # definitions; the last may have the others as steps


@pytest.mark.timeout(240)
@seeds(SEEDS, MORE, GROUP)
def test_workflows_advance_despite_faults(group: range):
    each(group, simulate)


async def simulate(seed: int) -> None:
    world = World(seed, servers=1 + seed % 3)
    await world.begin()
    observer = Observer()
    flows = await _define(world)
    checker = Flows(world, observer, flows)
    client = FlowClient(world, "client", [name for name, _ in flows.values()])
    workers = [Worker(world, observer, f"worker-{i}", 2 + world.rng.randrange(4)) for i in range(3)]
    for worker in workers:
        worker.start()
    living = client.spawn(client.live(TROUBLED))
    await _trouble(world, workers, observer, checker)
    world.faults.heal()
    await _restore(world, workers, observer)
    await world.run(HEALING / 6, until=_done(living))
    await client.resume_all()

    async def final() -> bool:
        return all_final(world.driver)

    ended = await world.run(HEALING, until=final)
    checker.check(workers)
    assert ended, f"liveness: not everything ended after the world had healed: {checker.left()}"
    checker.check_workflows(client)
    for actor in (*world.servers, *workers, client):
        await actor.kill()
    await world.driver.close()


async def _define(world: World) -> dict[UUID, tuple[str, Workflow]]:
    """Create a job whose params define its course, and workflows that run it."""
    store = Store(world.driver, world.env)
    work = Spec(
        name="work", task=PythonTask(function="work"), params={"i": 0, "ms": 1, "fail": 0},
        retry=RetryPolicy(retries=1, delay=SECOND),
    )  # fmt: skip
    job = await _add(world, store, work)
    made: dict[UUID, tuple[str, Workflow]] = {}
    for i in range(FLOWS):
        runs = [str(job)] * 6 + [str(id) for id in made]
        flow = _workflow(Random(world.rng.random()), runs if i == FLOWS - 1 else runs[:6])
        made[await _add(world, store, Spec(name=f"flow-{i}", task=flow))] = f"flow-{i}", flow
    for server in world.servers:
        await server.node.base.directory.load()
    return made


async def _add(world: World, store: Store, spec: Spec) -> UUID:
    queue, lane = await store.ensure_lane(1, "default", spec.capabilities)
    id = world.env.new_id()
    await store.change(lambda now: jobs.add(id, 1, spec, queue.id, lane.id, now))
    return id


def _workflow(rng: Random, runs: list[str]) -> Workflow:
    """Return a random graph."""
    steps: list[WorkflowStep] = []
    for i in range(rng.randrange(1, 12)):
        names = [step.name for step in steps]
        after = tuple(sorted(rng.sample(names, min(len(names), rng.choice([0, 1, 1, 2, 3])))))
        steps.append(_step(rng, f"s{i}", after, rng.choice(runs)))
    return Workflow(steps=tuple(steps), on_error=rng.choice(["fail", "finish", "ignore"]))


def _step(rng: Random, name: str, after: tuple[str, ...], job: str) -> WorkflowStep:
    join = rng.choice(JOINS) if after and rng.random() < 0.4 else "allSuccess"
    said: dict[str, Any] = {"name": name, "after": after, "join": join}
    chance = rng.random()
    if chance < 0.1:
        return WorkflowStep(**said, wait=Sleep(span=rng.choice([0, SECOND])))
    params = {"ms": rng.choice([0, 2, 50, 2000]), "fail": rng.choice([0, 0, 0, 1, 9]), "i": 1}
    if chance < 0.25:
        foreach = Foreach(
            items=list(range(rng.randrange(5))), concurrency=rng.choice([None, 1, 2]), tolerate=rng.choice([0, 9])
        )
        return WorkflowStep(**said, job=job, params=params, foreach=foreach)
    if chance < 0.35:
        loop = Loop(condition=f"${{index >= {rng.randrange(1, 4)}}}", until=True, every=rng.choice([0, SECOND]))
        return WorkflowStep(**said, job=job, params=params, loop=loop)
    when = "${false}" if rng.random() < 0.1 else ""
    return WorkflowStep(**said, job=job, params=params, when=when, ignore_failure=rng.random() < 0.1)


class FlowClient(Client):
    """A client that submits workflows one by one, cancels some, and pauses and resumes others."""

    def _params(self) -> dict[str, int]:
        return {}

    async def live(self, seconds: float) -> None:
        end = self.world.clock.monotonic() + seconds
        while self.world.clock.monotonic() < end:
            await self.submit(1)
            one = self.rng.choice(list(self.acknowledged))
            chance = self.rng.random()
            if chance < 0.2:
                await self.cancel(one)
            elif chance < 0.5:
                await self.change(one, workflow_pause.pause if chance < 0.35 else workflow_pause.resume)
            await self.world.clock.sleep(self.rng.uniform(0.1, 2))

    async def change(self, execution: UUID, move: Any) -> None:
        try:
            await self.world.call(
                lambda node: node.store.change(lambda now: move(execution, node.env.new_id, now, Consequences()))
            )
        except (Lost, Busy, HoraeError):
            return

    async def resume_all(self) -> None:
        for execution in self.acknowledged:
            await self.change(execution, workflow_pause.resume)


class Flows(Checker):
    """A checker that also checks workflows."""

    def __init__(self, world: World, observer: Observer, flows: dict[UUID, tuple[str, Workflow]]) -> None:
        super().__init__(world.driver, observer)
        self.flows = flows
        self.ended: dict[tuple[UUID, str], str] = {}

    def check(self, workers: list[Worker]) -> None:
        super().check(workers)
        if self.driver._turn.locked():
            return
        found = run(workflow_audit.audit_workflows(), self.driver._connection.execute)
        assert not found, f"workflow-mismatch: {found[0].detail}"
        joined = "flow_steps s JOIN flows f ON f.parcel = s.parcel AND f.item = s.item"
        sql = f"SELECT f.execution, s.step, s.state FROM {joined}"
        states = {(execution, step): state for execution, step, state in rows(self.driver, sql)}
        for key, state in self.ended.items():
            assert states[key] == state, f"{key} was {state} and is {states[key]}"
        self.ended |= {key: state for key, state in states.items() if state in FINAL}

    def left(self) -> Any:
        return [rows(self.driver, f"SELECT * FROM {shelf} LIMIT 2") for shelf in ("waiting", "queued", "running")]

    def check_workflows(self, client: FlowClient) -> None:
        """Check that every workflow has ended with its steps, and each step began after its upstreams had ended."""
        begun: dict[UUID, int] = {}
        for one in self.observer.begun:
            begun.setdefault(one.execution, one.at)
        ends = {
            execution_id(parcel, item): state
            for parcel, lo, hi, state in rows(self.driver, "SELECT parcel, lo, hi, state FROM history")
            for item in range(lo, hi)
        }
        flows = rows(self.driver, "SELECT execution, job, state, verdict FROM flows")
        for execution, job, state, verdict in flows:
            assert state == "ended"
            assert ends[execution] == verdict or verdict == "success", "a parent did not end as its steps did"
            self._check_steps(execution, self.flows[job][1], begun)
        known = {execution for execution, *_ in flows}
        missing = [id for id in client.acknowledged if id not in known and ends[id] != "cancelled"]
        assert not missing, f"{missing[0]} was never begun"

    def _check_steps(self, execution: UUID, workflow: Workflow, begun: dict[UUID, int]) -> None:
        sql = (
            "SELECT step, state, execution, began_at, ended_at, total, ok, bad FROM flow_steps WHERE"
            f" lower(hex(parcel)) = '{parcel_of(execution).hex}' AND item = {index_of(execution)}"
        )
        steps = {row[0]: row for row in rows(self.driver, sql)}
        plan = plan_of(workflow)
        assert steps.keys() == {step.name for step in workflow.steps}
        for name, (_, state, child, began_at, _, total, ok, bad) in steps.items():
            assert state in FINAL, f"{name} has not ended"
            assert ok + bad == total, f"{name} counted {ok} and {bad} of {total}"
            rule = plan.nodes[name].step.join
            if began_at is None or rule in ("oneSuccess", "oneFailed"):
                continue
            for upstream in plan.nodes[name].upstreams:
                ended_at = steps[upstream][4]
                assert ended_at is not None
                assert ended_at <= began_at, f"{name} began before {upstream} had ended"
                assert child not in begun or ended_at <= begun[child], f"{name} ran before {upstream} had ended"
