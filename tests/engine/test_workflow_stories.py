"""Random nested workflows that fail, are cancelled and are run again, by a rerun or by their dead letter.

A step is a success only if everything that it runs has ended successfully. A workflow has at most one open dead letter,
and successful steps do not run again. Once nothing fails any more, the next run succeeds. `HORAE_SEED=n` plays a single
seed.
"""

from collections import defaultdict
from random import Random
from uuid import UUID

import msgspec
import pytest

from horae.engine.executions.reruns import RerunRequest, Reruns
from horae.env import SECOND
from horae.features.dead_letters.engine.dead_letters import DeadLetters
from horae.model.base.ids import execution_id, index_of, parcel_of
from horae.model.executions.execution import FINAL
from horae.model.executions.parcel import extras_of
from horae.model.workflows.decisions.values import Call
from horae.model.workflows.repeats import Foreach, Loop
from horae.model.workflows.waits import Approval, SignalWait, Sleep
from horae.store.executions.promote import LONG_AGO
from horae.store.triggers.dependencies.starts import Consequences
from horae.store.workflows import cancel as workflow_cancel
from horae.store.workflows.results import places_of
from tests.engine.objects import executions_of
from tests.engine.test_dead_letters import Submits, letters, submits
from tests.simulation.seeds import ONLY
from tests.store_contract.moves.test_workflow_waits import answer, send
from tests.store_contract.moves.test_workflow_waits import signal as go
from tests.store_contract.workflow_world import begin, look, open_all, state, step, workflow
from tests.store_contract.world import NAMESPACE, TestJob, World, cancelled, failed, rank, success

__all__ = ("letters", "submits")
SEEDS = [int(ONLY)] if ONLY else [0, 1, 3, 5, 7, 38]
ON_DISK = (5, 38)  # seeds that also run on other stores than the one in memory
KINDS = (
    "plain",
    "plain",
    "until",
    "while",
    "foreach",
    "foreach",
    "nested",
    "nested each",
    "signal",
    "sleep",
    "approval",
)
MOST_RUNS, MOST_TURNS, CALM_FROM = 5, 150, 60
Path = tuple[tuple[str, int | None], ...]  # steps and items, from the outermost workflow inwards


class Story:
    """A workflow, its runs, and the invariants that they must satisfy."""

    def __init__(self, world: World, rng: Random, job: TestJob) -> None:
        self.world, self.rng, self.job = world, rng, job
        self.kinds: dict[str, str] = {}
        self.tolerated: dict[str, int] = {}
        self.upstreams: dict[str, set[str]] = {}
        self.undoes = rng.random() < 0.3
        self.dangers = rng.choice((0.0, 0.05, 0.2))  # the probability of a cancellation
        self.log: dict[UUID, dict[Path, list[object]]] = defaultdict(dict)  # by run: the ends of each child

    async def make(self, prefix: str = "s", depth: int = 0):
        """Make a workflow of a few steps with unique names."""
        names: list[str] = []
        made = [await self._step(f"{prefix}{i}", names, depth) for i in range(self.rng.randint(2, 4 - depth))]
        more = {"last": (step(f"{prefix}last", self.job),)} if self.rng.random() < 0.2 else {}
        self.kinds[f"{prefix}last"] = "handler"
        on_error = self.rng.choice(("fail", "finish", "ignore"))
        return await workflow(self.world, *made, name=f"flow-{prefix}", on_error=on_error, **more)

    async def _step(self, name: str, names: list[str], depth: int):
        rng, kind = self.rng, self.rng.choice(KINDS)
        if depth == 2 and kind.startswith("nested"):
            kind = "plain"
        after = tuple(other for other in names if rng.random() < 0.35)
        more = {"after": after, "ignore_failure": rng.random() < 0.15}
        if after and rng.random() < 0.2:
            more["join"] = rng.choice(("allDone", "noneFailed", "always", "oneSuccess"))
        if self.undoes and kind in ("plain", "until", "foreach", "nested"):
            more["undo"] = Call(job=str(self.job.id), params={})
        self.kinds[name], self.upstreams[name] = kind, set(after)
        names.append(name)
        if kind.startswith("nested"):
            job = await self.make(name, depth + 1)
        else:
            job = None if kind in ("signal", "sleep", "approval") else self.job
        return step(name, job, **self._of_kind(name, kind), **more)

    def _of_kind(self, name: str, kind: str):
        if kind in ("foreach", "nested each"):
            self.tolerated[name] = self.rng.choice((0, 0, 1))
            items, at_once = [*range(self.rng.randint(1, 4))], self.rng.choice((None, 1, 2))
            return {"foreach": Foreach(items=items, concurrency=at_once, tolerate=self.tolerated[name])}
        made = {
            "until": {"loop": Loop(condition=f"${{steps.{name}.result == true}}", until=True)},
            "while": {"loop": Loop(condition=f"${{steps.{name}.result != true}}")},
            "signal": {"wait": SignalWait(name="go")},
            "sleep": {"wait": Sleep(span=5 * SECOND)},
            "approval": {"wait": Approval()},
        }
        return made.get(kind, {})

    async def told(self, worker, root: UUID, *, calm: bool) -> str:
        """Run until the workflow has ended completely; return its state."""
        for turn in range(MOST_TURNS):
            shelves = [slice for shelf in ("waiting", "queued", "running") for slice in await self.world.on(shelf)]
            if not shelves:
                break
            is_over = await state(self.world, root) in FINAL
            await self._turn(worker, root, calm=calm or is_over or turn > CALM_FROM)
        else:
            raise AssertionError("it never ends")
        return await state(self.world, root)

    async def _turn(self, worker, root: UUID, *, calm: bool) -> None:
        world, rng = self.world, self.rng
        await open_all(world)
        await look(world)
        await world.store.promote_due(LONG_AGO, 100, rank)
        await worker.claim(100 if calm else rng.randint(1, 4))
        held = [
            msgspec.structs.replace(slice, lo=i, hi=i + 1)
            for slice in await worker.holds()
            for i in range(slice.lo, slice.hi)
        ]
        rng.shuffle(held)
        for one in held if calm else held[: rng.randint(1, 3)]:
            await self._end(worker, one, calm=calm)
        if calm or rng.random() < 0.3:
            await self._answer_all(calm=calm)
            world.clock.advance(6 * SECOND)
        if not calm and rng.random() < self.dangers:
            await world.store.change(
                lambda now: workflow_cancel.cancel(root, "no", world.env.new_id, now, Consequences())
            )

    async def _end(self, worker, one, *, calm: bool) -> None:
        value, chance = calm or self.rng.random() < 0.5, 0.0 if calm else self.rng.random()
        outcome = success(one, results=[msgspec.json.encode(value)])
        if chance >= 0.75:
            outcome = failed(one) if chance < 0.93 else cancelled(one)
        root, path = await self._path(execution_id(one.parcel, one.lo))
        self.log[root].setdefault(path, []).append(value if chance < 0.75 else outcome.outcome)
        await worker.report(outcome)

    async def _answer_all(self, *, calm: bool) -> None:
        for (flow,) in await self.world.rows("SELECT execution FROM flows WHERE state <> 'ended'"):
            await send(self.world, flow, go(self.world, "go"))
            for name, *_ in await self.rows_of(flow, "AND state = 'waiting'"):
                await answer(self.world, flow, name, agreed=calm or self.rng.random() < 0.7)

    async def rows_of(self, flow: UUID, where: str = ""):
        sql = (
            f"SELECT step, state, reason, total, ok, bad, taken FROM flow_steps WHERE parcel = $1 AND item = $2 {where}"
        )
        return await self.world.rows(sql, parcel_of(flow), index_of(flow))

    async def _path(self, execution: UUID) -> tuple[UUID, Path]:
        """Return the outermost workflow of an execution, and its path in it."""
        path: list[tuple[str, int | None]] = []
        while True:
            parcel, item = parcel_of(execution), index_of(execution)
            ((parent, extras),) = await self.world.rows("SELECT parent, extras FROM parcels WHERE id = $1", parcel)
            if parent is None:
                return execution, tuple(reversed(path))
            extra = extras_of(extras, item, item + 1)[0]
            place = None if extra.index is None else places_of(extras, item, item + 1)[0]
            path.append((extra.step or "", place))
            execution = parent

    async def flows(self, root: UUID) -> dict[Path, UUID]:
        """Return the workflows that are part of a run."""
        rows = await self.world.rows("SELECT execution FROM flows")
        found = [(await self._path(id), id) for (id,) in rows]
        return {path: id for (of, path), id in found if of == root}

    async def check_steps(self, root: UUID) -> None:
        """Check that every successful step really succeeded."""
        for at, flow in (await self.flows(root)).items():
            for name, stands, reason, total, ok, bad, taken in await self.rows_of(flow):
                assert stands in ("success", "failed", "skipped", "cancelled")
                ends = {
                    path[-1][1]: ends[-1]
                    for path, ends in self.log[root].items()
                    if path[:-1] == at and path[-1][0] == name
                }
                if stands != "success" or reason.startswith("taken over"):
                    continue
                if self.kinds.get(name) == "plain":
                    assert isinstance(ends[None], bool), name
                elif self.kinds.get(name) in ("until", "while"):
                    assert ends[None] is True, name
                elif self.kinds.get(name) == "foreach":
                    well = sum(isinstance(end, bool) for end in ends.values()) + taken
                    assert (well, total - well) == (ok, bad), name
                    assert bad <= self.tolerated[name], name

    async def check_again(self, before: UUID, after: UUID) -> None:
        """Check that a step that succeeded after successful ones did not run again, unless a step was compensated."""
        if any(name.endswith(":undo") for path in self.log[before] for name, _ in path):
            return
        flows = await self.flows(before)
        for path in self.log[after]:
            ends = self.log[before].get(path)
            if not ends or not isinstance(ends[-1], bool) or self.kinds[path[-1][0]] != "plain":
                continue
            anew = any(self.kinds[name] == "handler" for name, _ in path)
            for depth, (name, _) in enumerate(path):
                well = {row[0] for row in await self.rows_of(flows[path[:depth]], "AND state = 'success'")}
                anew = anew or not self._before(name) <= well
            assert anew, f"{path} ran again"

    def _before(self, name: str) -> set[str]:
        found, names = set[str](), [name]
        while names:
            fresh = self.upstreams.get(names.pop(), set()) - found
            found |= fresh
            names += fresh
        return found


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_failed_workflow_has_one_letter_and_continues_from_the_failed_step(
    world: World, submits: Submits, letters: DeadLetters, store_url: str, seed: int
):
    if store_url != "sqlite://" and seed not in (*ON_DISK, *([int(ONLY)] if ONLY else [])):
        pytest.skip("told in memory alone")
    story = Story(world, Random(seed), await world.job())
    reruns = Reruns(world.store, executions_of(world.store), submits)
    worker, root = await world.worker(), await begin(world, await story.make())
    letter: UUID | None = None
    calm, before = False, root
    for run in range(MOST_RUNS):
        end = await story.told(worker, root, calm=calm)
        await story.check_steps(root)
        await story.check_again(before, root) if run else None
        letter = {"failed": root, "success": None}.get(end, letter)
        open_ = [one.execution.execution_id for one in (await letters.list(NAMESPACE)).items]
        assert open_ == ([] if letter is None else [letter])
        if end == "success":
            return
        assert not calm, "nothing failed, but the workflow did not succeed"
        calm = run == MOST_RUNS - 2 or story.rng.random() < 0.4
        before, root = await again(story, reruns, letters, root, letter)


async def again(
    story: Story, reruns: Reruns, letters: DeadLetters, root: UUID, letter: UUID | None
) -> tuple[UUID, UUID]:
    """Run a failed workflow again: by hand, by its letter, or by all letters. Return the old and the new run."""
    how = "rerun" if letter is None else story.rng.choice(("rerun", "retry", "all"))
    if letter is None or how == "rerun":
        return root, (await reruns.rerun(NAMESPACE, root, RerunRequest(since="failed"), "ann")).execution_id
    if how == "all":
        assert (await letters.retry_many(NAMESPACE)).done == 1
    made = (await letters.retry(NAMESPACE, letter)).retried_as  # a repeated retry has no further effect
    assert made is not None
    return letter, made
