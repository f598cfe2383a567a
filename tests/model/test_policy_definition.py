"""Policies and queues as users write them, and the refused ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.env import SECOND
from horae.errors import BadInput
from horae.model.admission.policy import (
    FIFO,
    KINDS,
    PriorityPolicy,
    order_within,
    quantum,
    read_policy,
    slots_reserved,
    write_policy,
)
from horae.model.admission.queue import ServedQueues, merge_queue, parse_queue, read_served
from horae.model.admission.share_key import share_of, shares_of
from horae.model.definitions.job import Spec
from horae.model.definitions.tasks import CommandTask

SPEC = Spec(name="report", task=CommandTask(argv=("true",)), params={"customer": "acme"}, tags={"team": "data"})


def test_a_policy_is_a_kind_or_an_object():
    assert read_policy("fifo") == FIFO
    assert read_policy({"kind": "priority", "ageing": "5s"}) == PriorityPolicy(ageing=5 * SECOND)
    fair = read_policy({"kind": "fair", "by": "${params.customer}", "weights": {"acme": 5}, "within": "deadline"})
    assert (fair.weight("acme"), fair.weight("other"), order_within(fair).kind) == (5, 1, "deadline")


@given(
    st.sampled_from(KINDS),
    st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(1, 9), max_size=3),
    st.sampled_from(["job", "caller", "${params.customer}"]),
)
def test_a_shown_policy_reads_back(kind, weights, by):
    said = {"kind": "fair", "by": by, "weights": weights, "reserve": {"a": "5%"}} if kind == "fair" else {"kind": kind}

    shown = write_policy(read_policy(said))

    assert write_policy(read_policy(shown)) == shown
    assert shown["kind"] == kind
    assert shown.get("weights", {}) == (weights if kind == "fair" else {})


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ("fastest", "policy.kind"),
        ({"ageing": "1m"}, "policy.kind"),
        ({"kind": "fifo", "ageing": "1m"}, "policy.ageing"),
        ({"kind": "priority", "strict": True, "ageing": "1m"}, "policy.ageing"),
        ({"kind": "priority", "weights": {"a": 1}}, "policy.weights"),
        ({"kind": "fair", "weights": {"a": 0}}, "policy.weights.a"),
        ({"kind": "fair", "weights": {"a": -1}}, "policy.weights.a"),
        ({"kind": "fair", "defaultWeight": 0}, "policy.defaultWeight"),
        ({"kind": "fair", "by": "namespace"}, "policy.by"),
        ({"kind": "fair", "by": "customer"}, "policy.by"),
        ({"kind": "fair", "by": "${nobody.knows}"}, "policy.by"),
        ({"kind": "fair", "within": "fair"}, "policy.within"),
        ({"kind": "fair", "reserve": {"a": "60%", "b": "50%"}}, "policy.reserve"),
        ({"kind": "fair", "reserve": {"a": "much"}}, "policy.reserve.a"),
        ({"kind": "fair", "reserve": {"a": 0}}, "policy.reserve.a"),
        ({"kind": "shortest", "factor": 0}, "policy.factor"),
        ({"kind": "fair", "wieghts": {}}, "policy.wieghts"),
    ],
)
def test_an_invalid_policy_is_refused_with_its_field(said, field):
    with pytest.raises(BadInput) as refused:
        read_policy(said)

    assert refused.value.fields["field"] == field
    assert refused.value.remedy


def test_a_queue_has_a_policy_and_may_be_the_default():
    spec, default = parse_queue({"policy": "shortest", "default": True})
    assert (spec.policy.kind, default) == ("shortest", True)
    assert parse_queue({})[1] is None
    with pytest.raises(BadInput, match="has no field"):
        parse_queue({"polici": "fifo"})


@pytest.mark.parametrize(
    ("by", "share"),
    [
        ("job", "report"),
        ("caller", "key:1"),
        ("${params.customer}", "acme"),
        ("${params.n}", "7"),
        ("${tags.team + '/' + job.name}", "data/report"),
    ],
)
def test_the_share_that_an_execution_uses(by, share):
    policy = read_policy({"kind": "fair", "by": by})

    assert share_of(policy, SPEC, b'{"n":7}', {}, "key:1") == share


@given(st.lists(st.sampled_from([b'{"who":"a"}', b'{"who":"b","x":[1]}', b'{"who":7}', b"{}", b'{"who":null}'])))
def test_shares_of_many_items_equal_the_share_of_each(items):
    policy = read_policy({"kind": "fair", "by": "${params.who}"})

    found, wrong = shares_of(policy, SPEC, items, {}, "")

    assert list(wrong) == [i for i, item in enumerate(items) if item == b"{}"]
    expected = ["" if i in wrong else share_of(policy, SPEC, item, {}, "") for i, item in enumerate(items)]
    assert found == expected


def test_a_missing_or_too_long_share_is_refused():
    policy = read_policy({"kind": "fair", "by": "${params.who}"})
    for item in (b"{}", b'{"who":"%b"}' % (b"x" * 300)):
        with pytest.raises(BadInput, match="share"):
            share_of(policy, SPEC, item, {}, "")


def test_reserves_may_promise_all_slots():
    reserve = {"a": "0.2%", "b": "83.9%", "c": "15.9%"}
    assert read_policy({"kind": "fair", "by": "job", "reserve": reserve}).reserve == reserve


def test_a_removed_rate_removes_its_burst():
    limited = parse_queue({"rate": "10/1m", "burst": 5})[0]
    assert parse_queue(merge_queue(limited, {"rate": None}))[0].limit.rate is None
    with pytest.raises(BadInput, match="without a rate"):
        parse_queue(merge_queue(limited, {"rate": None, "burst": 3}))


def test_reserves_are_slots_or_a_percentage():
    assert (slots_reserved(4, 100), slots_reserved("25%", 100), slots_reserved("1%", 10), slots_reserved("1%", 0)) == (
        4, 25, 1, 0,
    )  # fmt: skip


@given(st.floats(1, 1e12))
def test_a_quantum_is_bounded_by_time_and_at_least_one(expected):
    count = quantum(expected)

    assert 1 <= count <= 1024
    assert count == 1 or count * expected <= SECOND
    assert count <= 16 or count * expected <= SECOND / 100


@pytest.mark.parametrize(
    ("given", "served"),
    [
        (["default"], ServedQueues(("default",))),
        (["a", "b"], ServedQueues(("a", "b"))),
        (["critical=5", "default=1"], ServedQueues(("critical", "default"), {"critical": 5.0, "default": 1.0})),
        (["critical,default"], ServedQueues(("critical", "default"), strict=True)),
        (["critical>default"], ServedQueues(("critical", "default"), strict=True)),
    ],
)
def test_a_worker_names_its_queues_with_weights_or_in_an_order(given, served):
    assert read_served(given) == served


@pytest.mark.parametrize("given", [["a=0"], ["a=0.0001"], ["a=x"], ["a,b=2"], ["a", "a"], ["a,b", "c"], [""]])
def test_invalid_queues_of_a_worker_are_refused(given):
    with pytest.raises(BadInput, match=r"queue|weight|order"):
        read_served(given)
