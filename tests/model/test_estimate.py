"""When something probably starts: told from gates with a time and from work before it, or not at all with a reason."""

from horae.env import SECOND
from horae.model.executions.estimate import estimate, work_before
from horae.model.executions.gates import closed

NOW = 1_000 * SECOND
DELAY = closed("delay", "It is due later.", until=NOW + 60 * SECOND)
PAUSED = closed("paused", "The job is paused.")
AHEAD = closed("ahead", "Ten executions stand before it.")


def test_what_nothing_holds_starts_now():
    found = estimate(NOW, [], 0, 4, 0)
    assert (found.starts_at, found.reason) == (NOW, "Nothing holds it.")


def test_the_last_gate_that_has_a_time_decides():
    found = estimate(NOW, [DELAY, AHEAD], 10, 1, 10 * SECOND)
    assert found.starts_at == NOW + 60 * SECOND


def test_work_before_it_is_shared_by_the_slots():
    found = estimate(NOW, [AHEAD], 10, 4, 600 * SECOND)
    assert (found.starts_at, found.ahead, found.slots) == (NOW + 150 * SECOND, 10, 4)


def test_what_no_time_opens_cannot_be_told():
    found = estimate(NOW, [DELAY, PAUSED], 0, 4, 0)
    assert (found.starts_at, found.reason) == (None, "It cannot be told: The job is paused.")


def test_without_a_worker_or_a_known_length_nothing_is_told():
    assert estimate(NOW, [], 0, 0, 0).reason == "No live worker can take it."
    assert estimate(NOW, [AHEAD], 1, 1, None).starts_at is None


def test_work_is_what_is_queued_and_the_rest_of_what_runs():
    lengths = {"a": 10 * SECOND, "b": SECOND}
    assert work_before({"a": 3}, [("b", 2, NOW - SECOND)], lengths, NOW) == 31 * SECOND
    assert work_before({}, [("b", 1, NOW - 60 * SECOND)], lengths, NOW) == 0
    assert work_before({"c": 1}, [], lengths, NOW) is None
    assert work_before({}, [("c", 1, NOW)], lengths, NOW) is None
