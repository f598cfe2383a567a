"""Everything by which a claim passes something over belongs to a gate that explain knows.

The conditions are read from the source: whoever adds one says here which gate it is, and a new gate needs its probe.
"""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from horae.engine import directory
from horae.engine.probes.table import OF_EXECUTIONS
from horae.model import choice, deal
from horae.store.moves import circuit_gates, claim, claim_lane, coarse

MINE = "who asks"  # it decides what somebody else gets, or nothing at all
TASK = "how"  # it decides how many are looked at, not whether

REFUSALS: dict[Callable[..., Any], dict[str, str]] = {
    directory.Directory.may_take: {
        "session.id in self.demands.reserved": "reserved",
        "(queue := self.queues[family[0]]).namespace == session.namespace": MINE,
        "queue.name in session.queues": "no-worker",
        "queue.id not in self.held": "held",
        "fits(self.demands.terms[first], session.capabilities)": "no-worker",
        "known is None": TASK,
        "len(self._reaches) > MOST_REACHES": TASK,
    },
    deal._Room.for_: {
        "self.full": "busy",  # its answer takes no more: the next one does
        "self.cost": "room",
        "self.most is not None": "spread",
        "is_suspect(slice.losses)": "suspect",
        "self.cost or self.most is not None": TASK,
        "slots": "busy",
    },
    claim_lane._set_aside: {
        "s.job in paused": "paused",
        "paused": "paused",
        "s.job not in paused": "paused",
        "held": TASK,
        "not held": TASK,
        "s.flags & KEYED": TASK,
    },
    circuit_gates.shut_out: {
        "s.flags & CIRCUIT": "circuit",
        "not marked": TASK,
        "not shut": TASK,
        "s.job in jobs": "circuit",
        "state == 'half-open'": "circuit",
        "(s.job, keys[s.parcel]) in shut": "circuit",
        "not _probes(s, shut[s.job, keys[s.parcel]])": "circuit",
    },
    claim._claim_lanes: {
        "passed is not None": TASK,
        "goes_before(passed, view.low)": TASK,
        "capacity(left) <= 0": "busy",
        "capacity(left, view.jobs, view.cost) <= 0": "room",
        "passed is None": TASK,
        "not view.cost": TASK,
        "most <= 0": "queue-limit",
    },
    claim._Tally.room: {
        "view.limits": "queue-limit",
        "most <= 0": "queue-limit",
    },
    claim._Tally.add: {
        "view.limits": "queue-limit",
        "took.suspects": "suspect",
    },
    choice._next: {
        "len(lines) == 1 or taste is None": TASK,
        "taste.strict": "other-queues",
    },
}
PICKED = {
    "lane = $1": "ahead",
    "rank >= $2": "ahead",
    "NOT EXISTS (held)": "held",
    "($5 OR (NOT EXISTS (limit of the queue) AND NOT EXISTS (limit of the namespace)))": "namespace-limit",
}


def conditions(function: Callable[..., Any]) -> Iterator[str]:
    """What a function decides by, each condition by itself."""
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function)))):
        if isinstance(node, ast.If | ast.IfExp):
            yield from _parts(node.test)
        elif isinstance(node, ast.comprehension):
            for test in node.ifs:
                yield from _parts(test)


def _parts(test: ast.expr) -> Iterator[str]:
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for part in test.values:
            yield from _parts(part)
    else:
        yield ast.unparse(test)


@pytest.mark.parametrize("function", REFUSALS, ids=lambda function: function.__qualname__)
def test_every_condition_of_a_claim_belongs_to_a_gate(function: Callable[..., Any]):
    assert sorted({*conditions(function)}) == sorted(REFUSALS[function]), "say which gate each belongs to"


def test_every_condition_of_what_is_picked_belongs_to_a_gate():
    text = claim_lane.PICK.text.partition(" WHERE ")[2].partition(" ORDER BY ")[0]
    held = coarse.held("$1", "$4")
    assert held in text
    text = text.replace(held, "held")
    for name, table in (("queue", "queue = l.queue"), ("namespace", "namespace = l.namespace")):
        start = text.index(f"SELECT 1 FROM lanes l JOIN limits m ON m.{table}")
        text = text[:start] + f"limit of the {name}" + text[text.index(")", text.index("FOR KEY SHARE", start)) :]
    assert text == " AND ".join(PICKED)


def test_these_gates_have_probes():
    gates = {gate for table in (*REFUSALS.values(), PICKED) for gate in table.values()} - {MINE, TASK}
    assert gates <= {*OF_EXECUTIONS}
