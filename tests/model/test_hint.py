"""Hints: why no worker takes a queued execution."""

import pytest

from horae.model.definitions.job import STEADY
from horae.model.executions.hint import Offer, why_queued


def offer(*capabilities: str, queues: tuple[str, ...] = ("default",)) -> Offer:
    return Offer(frozenset(queues), frozenset(capabilities))


@pytest.mark.parametrize(
    ("queue", "needs", "offers", "words"),
    [
        ("default", ["kind:command"], [], "There is no live worker; start one with `horae worker`."),
        (
            "slow",
            ["kind:http"],
            [offer("kind:http")],
            'serves the queue "slow"; start one with `horae worker --queue slow`',
        ),
        ("default", ["function:f"], [offer("function:g")], "knows the function f; start one with `horae worker --app"),
        ("default", ["kind:http"], [offer("kind:command")], "runs http jobs"),
        ("default", ["gpu=a100", "kind:command"], [offer("kind:command")], "carries the label gpu=a100"),
        ("default", ["kind:command", STEADY], [offer("kind:command")], "All live workers are spot workers"),
        ("default", ["a", "b"], [offer("a"), offer("b")], "No single live worker offers all of a, b"),
    ],
)
def test_a_hint_names_the_missing_capability_and_the_command(queue, needs, offers, words):
    assert words in str(why_queued(queue, needs, offers))


def test_no_hint_while_a_worker_can_take_it():
    assert why_queued("default", ["kind:command"], [offer(), offer("kind:command", "gpu")]) is None


@pytest.mark.parametrize(
    ("losses", "words"),
    [(1, "None"), (2, "2 times: a worker takes few such executions at once")],
)
def test_a_suspect_has_a_hint(losses, words):
    assert words in str(why_queued("default", [], [offer()], losses))
    assert "no live worker" in str(why_queued("default", [], [], losses))
