"""Every refusal of a claim belongs to a gate that explain knows: each refusal is provoked.

In the functions by which a claim refuses executions, the line of every condition names its gate: `# gate: held`. A
condition that refuses nothing by itself has the mark `# gate: none`. These tests play every scene of a gate. Each
condition of this gate must then have another value than in a scene without closed gates.

The tests detect: a condition without a mark in a function with marks; a mark with the wrong gate; a condition that no
scene provokes; a gate that keeps executions in the queue although no condition names it; an additional column or table
in the statement that picks executions. They cannot detect a function without marks that begins to refuse. The last test
covers such functions: it plays random situations, and every execution that stays in the queue must be explained.
"""

import ast
import re
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from horae.engine.executions.probes.table import OF_EXECUTIONS
from horae.model.base.ids import parcel_of
from tests.engine.decisions import Noted, noted, of_function
from tests.engine.explain_scenes import SCENES, Scene, busy_with_others, queue_of_nobody
from tests.engine.explain_stage import Stage
from tests.marks import Mark, last_line, marks
from tests.races.mutating.sql import outer_conditions
from tests.statements import the_statement
from tests.store_contract.world import NAMESPACE

NONE = "none"
IN_TURN = {"ahead", "share"}  # gates of order, which no condition decides
MORE: Mapping[str, tuple[Scene, ...]] = {"no-worker": (queue_of_nobody,), "busy": (busy_with_others,)}
MARKED = {(mark.module, mark.function) for mark in marks("gate")}
PICKED = {"lane", "rank", "holds", "limits"}
"""The conditions of the statement that picks executions: the lane and its lowest rank, holds and limits."""

on_memory = pytest.mark.parametrize("store_url", ["memory"], indirect=True)


def gates_of(mark: Mark) -> list[str]:
    return mark.text.split(", ")


BY_GATE = {gate: [mark for mark in marks("gate") if gate in gates_of(mark)] for gate in OF_EXECUTIONS}


async def play(stage: Stage, scene: Scene) -> tuple[Noted, bool]:
    """Return the values of conditions in a scene, and whether its execution stayed in the queue."""
    with noted(MARKED) as went:
        played = await scene(stage)
        for worker in stage.workers:
            await worker.ask()
    rows = await stage.world.rows("SELECT 1 FROM queued WHERE parcel = $1", parcel_of(played.execution))
    return went, bool(rows)


async def play_open(stage: Stage) -> Noted:
    """Return the values of conditions when no gate is closed."""
    with noted(MARKED) as went:
        await stage.job("open")
        await stage.worker()
        assert await stage.starts(await stage.submit("open"))
    await stage.workers.pop().end()
    return went


@on_memory
@pytest.mark.parametrize("gate", SCENES)
async def test_every_condition_marked_with_a_gate_refuses_in_its_scene(stage: Stage, gate: str):
    usual = await play_open(stage) if BY_GATE[gate] else {}
    provoked, stays = set[Mark](), False
    for scene in (*MORE.get(gate, ()), SCENES[gate]):
        went, stays = await play(stage, scene)
        provoked |= {mark for mark in BY_GATE[gate] if went.get(mark.at, set()) - usual.get(mark.at, set())}
    assert provoked == {*BY_GATE[gate]}, "no scene provokes the rest; does it belong to this gate?"
    if stays and gate not in IN_TURN:
        assert provoked, f"an execution stays in the queue, and nothing in a claim is marked `# gate: {gate}`"


@pytest.mark.parametrize(("module", "function"), sorted(MARKED))
def test_every_refusing_condition_has_a_gate_mark(module: str, function: str):
    marked = {mark.line for mark in marks("gate") if mark.module == module}
    bare = [test for test in of_function(module, function) if last_line(test) not in marked]
    assert [f"line {last_line(test)}: {ast.unparse(test)}" for test in bare] == [], "mark them with `# gate: ...`"


def test_gate_marks_name_gates_and_are_on_conditions():
    for mark in marks("gate"):
        assert {*gates_of(mark)} <= {*OF_EXECUTIONS, NONE}, mark.place
        assert mark.function, mark.place
        lines = {last_line(test) for test in of_function(mark.module, mark.function)}
        assert mark.line in lines, f"{mark.place}: nothing is decided there"


@pytest.mark.parametrize("name", ["pick_queued", "pick_queued_each"])
def test_the_claim_statement_refuses_only_for_known_gates(name: str):
    asked = set[str]()
    for condition in outer_conditions(the_statement(name).text):
        tables = {*re.findall(r"\b(?:FROM|JOIN) (\w+)", condition)} - {"lanes"}
        asked |= tables or {*re.findall(r"^\W*(?:\w+\.)?(\w+)", condition)}
    assert asked == PICKED, "Which gate does it check? Add a probe and a scene, and name it in PICKED."


KINDS: list[dict[str, Any]] = [
    {}, {"slots": 2}, {"needs": ["zone=eu"]}, {"queue": "other"}, {"spread": True}, {"rate": "1/1m"},
    {"limits": [{"key": "all", "concurrency": 1}]}, {"prefers": [{"label": "zone=eu", "patience": "5s"}]},
]  # fmt: skip


async def play_any(stage: Stage, rng: Random) -> list[str]:
    """Make random jobs, workers and obstacles; return the names of the jobs."""
    jobs = {f"job{n}": kind for n, kind in enumerate(rng.sample(KINDS, 4))}
    for name, kind in jobs.items():
        await stage.job(name, **kind)
    if rng.random() < 0.5:
        await stage.node.admission.queues.put(NAMESPACE, rng.choice(["default", "other"]), {"concurrency": 2})
    if rng.random() < 0.5:
        await stage.node.definitions.jobs.pause(NAMESPACE, rng.choice(list(jobs)))
    for _ in range(rng.randint(1, 3)):
        queues, labels = rng.choice([("default",), ("default", "other")]), rng.choice([{}, {"zone": "eu"}])
        await stage.worker(slots=rng.randint(1, 3), queues=queues, labels=labels)
    await stage.look()
    return list(jobs)


@on_memory
@pytest.mark.parametrize("seed", range(12))
async def test_every_execution_that_a_claim_leaves_is_explained(stage: Stage, seed: int):
    rng = Random(seed)
    jobs = await play_any(stage, rng)
    ids = []
    for _ in range(10):
        ids.append(await stage.submit(rng.choice(jobs)))
        stage.world.clock.advance(1)
    for worker in stage.workers * 3:
        await stage.look()
        while await worker.ask():
            pass
    left = [{*await stage.blockers(id)} for id in ids if not await stage.runs(id)]
    assert all(left), "a claim left an execution that explain cannot explain"
    assert not left or left[0] - IN_TURN, "a claim left the first execution of the queue for no known reason"
