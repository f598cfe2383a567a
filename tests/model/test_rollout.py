"""Rollouts: the choice of an execution's version, the counts, and the decision to abort."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.env import SECOND
from horae.errors import BadInput
from horae.features.rollouts.model.read import percent, plan_of, read_request
from horae.features.rollouts.model.values import Tally, bucket_of, buckets_of, duration_of, judge
from horae.model.definitions.job import Spec
from horae.model.definitions.rollout import Rollout, RolloutAttempts, RolloutPlan, VersionChoice, point_of
from horae.model.definitions.tasks import CommandTask

JOB = UUID(int=7)
SPEC = Spec(name="report", task=CommandTask(argv=("true",)), params={"customer": "nobody"})
SHARES = st.dictionaries(st.integers(1, 9), st.floats(0, 100), min_size=1).filter(lambda s: sum(s.values()) > 1)


def choice(plan: RolloutPlan, current: int = 6) -> VersionChoice[int]:
    rollout = Rollout(job=JOB, number=1, state="on", plan=plan, since=1, changed_at=1)
    return VersionChoice(rollout=rollout, current=current, arms={version: version for version in plan.shares})


def ids():
    count = iter(range(1, 1_000_000))
    return lambda: UUID(int=next(count))


@given(SHARES, st.floats(0, 1, exclude_max=True))
def test_every_point_selects_a_version_with_a_share(shares: dict[int, float], point: float):
    assert shares[RolloutPlan(shares=shares).version_at(point)] > 0


@given(st.floats(0, 1, exclude_max=True), st.floats(0, 100), st.floats(0, 100))
def test_a_growing_share_keeps_its_keys(point: float, share: float, more: float):
    less, more = sorted((share, more))
    for current, tried in ((6, 7), (6, 3)):
        before = RolloutPlan(shares={current: 100 - less, tried: less}).version_at(point)
        after = RolloutPlan(shares={current: 100 - more, tried: more}).version_at(point)
        assert before == current or after == tried


def test_shares_are_met_roughly_by_chance_and_by_key():
    by_chance, by_key = RolloutPlan(shares={6: 90, 7: 10}), RolloutPlan(shares={6: 90, 7: 10}, by="${params.customer}")
    new_id = ids()
    drawn = [choice(by_chance).of(SPEC, b"{}", {}, new_id) for _ in range(5000)]
    keyed = [choice(by_key).of(SPEC, b'{"customer":"c%d"}' % i, {}, new_id) for i in range(5000)]

    assert 400 < drawn.count(7) < 600
    assert 400 < keyed.count(7) < 600


@given(st.text(max_size=20))
def test_equal_keys_select_one_version(key: str):
    assert point_of(JOB, key) == point_of(JOB, key)
    assert 0 <= point_of(JOB, key) < 1


def test_a_key_that_cannot_be_rendered_runs_the_current_version():
    missing = RolloutPlan(shares={6: 0, 7: 100}, by="${params.nothing}")
    assert choice(missing).of(SPEC, b"{}", {}, ids()) == 6
    assert choice(RolloutPlan(shares={7: 50, 8: 50}, by="${params.nothing}")).of(SPEC, b"{}", {}, ids()) is None


@given(st.integers(1, 10**12))
def test_a_bucket_represents_its_durations(span: int):
    assert abs(duration_of(bucket_of(span)) - span) <= max(1, 0.1 * span)


def tally(success: int, failed: int = 0, retried: int = 0) -> Tally:
    made = Tally(outcomes={}, durations={})
    for outcome, count in (("success", success), ("failed", failed), ("retried", retried)):
        made.add(outcome, bucket_of(SECOND), count)
    return made


def test_percentiles_count_successes_only():
    counted = Tally(outcomes={}, durations={})
    for n in range(1, 101):
        for bucket, count in buckets_of(RolloutAttempts(JOB, JOB, "success", 1, (n * SECOND,))):
            counted.add("success", bucket, count)
    counted.add("failed", bucket_of(10_000 * SECOND), 50)
    assert counted.percentile(50) == pytest.approx(50 * SECOND, rel=0.1)
    assert counted.percentile(99) == pytest.approx(99 * SECOND, rel=0.1)
    assert Tally(outcomes={}, durations={}).percentile(50) is None
    assert list(buckets_of(RolloutAttempts(JOB, JOB, "success", 3, (SECOND,)))) == [(bucket_of(SECOND), 1), (-1, 2)]


def test_the_abort_bound_applies_to_other_versions_than_the_current_one():
    plan = RolloutPlan(shares={6: 90, 7: 10}, abort_above=10, minimum=20)
    assert judge(plan, 6, {}) is None
    assert judge(plan, 6, {6: tally(0, 100)}) is None
    assert judge(plan, 6, {7: tally(10, 9)}) is None
    assert judge(plan, 6, {7: tally(18, 1, 1)}) is None
    assert judge(plan, 6, {7: tally(17, 1, 2)}) == "3 of 20 attempts of version 7 failed (15 %), more than 10 %."
    assert judge(RolloutPlan(shares={6: 90, 7: 10}), 6, {7: tally(0, 100)}) is None


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ([], "body"),
        ({"share": "10%"}, "version"),
        ({"version": 7, "versions": {"7": 1}}, "versions"),
        ({"version": 7, "change": {}, "share": 1}, "change"),
        ({"version": 7}, "share"),
        ({"versions": {"7": 1}, "share": "10%"}, "share"),
        ({"version": 7, "share": "10%", "colour": "red"}, "colour"),
        ({"version": 7, "share": "110%"}, "share"),
        ({"version": 7, "share": True}, "share"),
        ({"version": 6, "share": "10%"}, "version"),
        ({"versions": {"seven": 1}}, "versions.seven"),
        ({"versions": {"7": -1}}, "versions.7"),
        ({"versions": {"7": 0}}, "versions"),
        ({"versions": {}}, "versions"),
        ({"versions": {"6": 100}}, "versions"),
        ({"versions": {"7": 1, "07": 1}}, "versions.07"),
        ({"version": 7, "share": 10, "by": "${nobody.knows}"}, "by"),
        ({"version": 7, "share": 10, "abortAbove": "lots"}, "abortAbove"),
        ({"version": 7, "share": 10, "minimum": 0}, "minimum"),
    ],
)
def test_an_invalid_rollout_is_refused_with_its_field(body: object, field: str):
    with pytest.raises(BadInput) as refused:
        plan_of(read_request(body), 6, None)
    assert refused.value.fields["field"] == field


def test_a_rollout_plan_is_parsed():
    plan = plan_of(read_request({"version": 7, "share": "12.5%", "by": "${params.customer}", "abortAbove": 5}), 6, None)
    assert plan == RolloutPlan(shares={6: 87.5, 7: 12.5}, by="${params.customer}", abort_above=5.0)
    assert plan_of(read_request({"change": {}, "share": 10}), 6, 9).shares == {6: 90, 9: 10}
    assert plan_of(read_request({"versions": {"6": 1, "7": 3}}), 6, None).shares == {6: 1, 7: 3}
    assert percent(" 10 %", "share") == 10
