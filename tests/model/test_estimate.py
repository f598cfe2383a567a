"""The estimated start: from gates with a time and from earlier work, or a reason why there is none."""

from horae.env import SECOND
from horae.model.executions.estimate import estimate, work_before
from horae.model.executions.gates import closed

NOW = 1_000 * SECOND
DELAY = closed("delay", "It is due later.", until=NOW + 60 * SECOND)
PAUSED = closed("paused", "The job is paused.")
AHEAD = closed("ahead", "Ten executions stand before it.")


def test_an_execution_without_blockers_starts_now():
    found = estimate(NOW, [], 0, 4, 0)
    assert (found.starts_at, found.reason) == (NOW, "Nothing holds it.")


def test_the_last_gate_with_a_time_decides():
    found = estimate(NOW, [DELAY, AHEAD], 10, 1, 10 * SECOND)
    assert found.starts_at == NOW + 60 * SECOND


def test_earlier_work_is_divided_by_the_slots():
    found = estimate(NOW, [AHEAD], 10, 4, 600 * SECOND)
    assert (found.starts_at, found.executions_ahead, found.slots) == (NOW + 150 * SECOND, 10, 4)


def test_a_gate_without_a_time_prevents_an_estimate():
    found = estimate(NOW, [DELAY, PAUSED], 0, 4, 0)
    assert (found.starts_at, found.reason, found.gate) == (None, "The job is paused.", "paused")


def test_there_is_no_estimate_without_a_worker_or_a_known_duration():
    assert estimate(NOW, [], 0, 0, 0).reason == "No live worker can take it."
    assert estimate(NOW, [AHEAD], 1, 1, None).starts_at is None


def test_earlier_work_is_queued_work_and_the_rest_of_running_work():
    lengths = {"a": 10 * SECOND, "b": SECOND}
    assert work_before({"a": 3}, [("b", 2, NOW - SECOND)], lengths, NOW) == 31 * SECOND
    assert work_before({}, [("b", 1, NOW - 60 * SECOND)], lengths, NOW) == 0
    assert work_before({"c": 1}, [], lengths, NOW) is None
    assert work_before({}, [("c", 1, NOW)], lengths, NOW) is None
