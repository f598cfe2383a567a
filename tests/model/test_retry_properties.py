"""Retries: the waits, and the decision to stop."""

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from horae.env import SECOND
from horae.model.definitions.retry import Budgets, NoRetry, RetryAt, RetryPolicy, after_failure
from horae.model.fleet.protocol import Failure

policies = st.builds(
    RetryPolicy,
    retries=st.integers(0, 50),
    delay=st.integers(0, 3600 * SECOND),
    factor=st.floats(1, 10),
    max=st.integers(0, 86_400 * SECOND),
    jitter=st.floats(0, 1),
    delays=st.lists(st.integers(0, 3600 * SECOND), max_size=4).map(tuple),
)
NOW = 1_800_000_000 * SECOND
FAILED = Failure(type="OSError")


@given(policies, st.integers(1, 10_000), st.integers())
def test_a_wait_lies_within_its_jitter_and_is_never_negative(policy, failures, seed):
    still = RetryPolicy(**{f: getattr(policy, f) for f in policy.__struct_fields__} | {"jitter": 0.0})
    base = still.wait(failures, Random(0))
    wait = policy.wait(failures, Random(seed))

    assert wait >= 0
    assert base * (1 - policy.jitter) - 1 <= wait <= base * (1 + policy.jitter) + 1


@given(policies, st.integers(1, 60))
def test_waits_grow_up_to_the_maximum(policy, failures):
    still = RetryPolicy(delay=policy.delay, factor=policy.factor, max=policy.max, jitter=0.0)

    assert still.wait(failures, Random(0)) <= still.wait(failures + 1, Random(0)) <= max(policy.max, 0)


def test_a_list_of_delays_is_followed_and_its_last_repeats():
    policy = RetryPolicy(delays=(1, 5, 9), jitter=0)

    assert [policy.wait(n, Random(0)) for n in (1, 2, 3, 4, 99)] == [1, 5, 9, 9, 9]


@given(policies, st.integers(1, 100), st.integers())
def test_retries_bound_the_attempts(policy, failures, seed):
    decision = after_failure(failures, FAILED, policy, NOW, Random(seed))

    if failures > policy.retries:
        assert decision == NoRetry("retries")
    else:
        assert isinstance(decision, RetryAt)
        assert decision.at >= NOW


@given(policies)
def test_a_permanent_failure_is_not_retried(policy):
    permanent = Failure(type="OSError", permanent=True)
    named = RetryPolicy(retries=9, give_up_on=("OSError",))

    assert after_failure(1, permanent, policy, NOW, Random(0)) == NoRetry("permanent")
    assert after_failure(1, FAILED, named, NOW, Random(0)) == NoRetry("permanent")
    assert after_failure(1, Failure(type="Other"), named, NOW, Random(0)) != NoRetry("permanent")


def test_retry_after_replaces_the_delay_but_not_the_bound():
    wish = Failure(type="Retry", retry_after=7)

    assert after_failure(1, wish, RetryPolicy(retries=1), NOW, Random(0)) == RetryAt(NOW + 7)
    assert after_failure(2, wish, RetryPolicy(retries=1), NOW, Random(0)) == NoRetry("retries")


kinds = st.sampled_from(["error", "timeout", "platform"])
budgets = st.builds(Budgets, **dict.fromkeys(("error", "timeout", "platform"), st.none() | st.integers(0, 4)))


@given(st.integers(0, 4), budgets, st.lists(kinds, min_size=1, max_size=20))
def test_each_failure_is_charged_to_its_own_or_the_shared_budget(retries, of, course):
    """Follow an execution through its failures, with an independent count."""
    policy = RetryPolicy(retries=retries, budgets=of, jitter=0)
    spent: Counter[str] = Counter()
    for n, kind in enumerate(course, 1):
        decision = after_failure(n, Failure(type="X", kind=kind), policy, NOW, Random(0), spent=spent)
        spent[kind] += 1
        own = of.of(kind)
        shared = sum(count for other, count in spent.items() if of.of(other) is None)
        over = spent[kind] > own if own is not None else shared > retries
        assert isinstance(decision, NoRetry) == over
        if over:
            assert decision == NoRetry({"error": "retries", "timeout": "runTimeout", "platform": "platform"}[kind])
            return


def test_retry_on_restricts_the_retried_errors():
    policy = RetryPolicy(retries=3, retry_on=("http:5xx", "LookupError"), give_up_on=("http:501", "exit:2"))

    def outcome(exit_code=None, **failure):
        decision = after_failure(1, Failure(**failure), policy, NOW, Random(0), exit_code=exit_code)
        return decision.reason if isinstance(decision, NoRetry) else "again"

    assert outcome(type="HttpStatus", status=503) == "again"
    assert outcome(type="HttpStatus", status=501) == "permanent"
    assert outcome(type="HttpStatus", status=404) == "permanent"
    assert outcome(type="KeyError", names=("KeyError", "LookupError", "Exception")) == "again"
    assert outcome(type="ValueError", names=("ValueError", "Exception")) == "permanent"
    assert outcome(type="KeyError", names=("KeyError", "LookupError"), exit_code=2) == "permanent"
    assert outcome(type="RunTimeout", kind="timeout") == "again"
    assert outcome(type="CannotStart", kind="platform") == "again"


def test_a_retry_after_the_total_timeout_does_not_take_place():
    policy = RetryPolicy(retries=3, delay=10, jitter=0)

    assert after_failure(1, FAILED, policy, NOW, Random(0), ends_at=NOW + 11) == RetryAt(NOW + 10)
    assert after_failure(1, FAILED, policy, NOW, Random(0), ends_at=NOW + 10) == NoRetry("totalTimeout")


@given(policies, st.sampled_from(["QueueTimeout", "TotalTimeout"]))
def test_an_execution_past_its_own_timeout_is_not_retried(policy, type):
    decision = after_failure(1, Failure(type=type, kind="timeout"), policy, NOW, Random(0))
    assert decision == NoRetry(type[0].lower() + type[1:])
