"""Definitions of namespaces, the defaults for their jobs, and their retention."""

import pytest

from horae.errors import BadInput
from horae.model.admission.policy import FifoPolicy
from horae.model.base.duration import DAY
from horae.model.tenancy.namespace import (
    Namespace,
    Retention,
    merge_namespace,
    parse_namespace,
    show_namespace,
    with_defaults,
)


def named(**said) -> Namespace:
    read = parse_namespace(said)
    return Namespace(id=2, name="a", weight=read.weight, policy=read.queue_policy, spec=read.spec)


def test_a_definition_of_a_namespace_is_shown_as_written():
    said = {
        "description": "Billing", "weight": 2.0, "retention": {"failed": "90d", "success": "7d"},
        "archive": ["failed"],
        "defaults": {"retries": 3, "timeout": "1h", "tags": {"team": "billing"}}, "queuePolicy": {"kind": "fifo"},
    }  # fmt: skip
    shown = show_namespace(named(**said))
    assert shown == said | {"queuePolicy": shown["queuePolicy"]}
    assert parse_namespace(shown) == parse_namespace(said)
    assert parse_namespace({}).queue_policy is None


def test_one_retention_applies_to_all_outcomes():
    assert set(named(retention="3d").spec.retention.values()) == {3 * DAY}
    assert len(named(retention="3d").spec.retention) == 4
    assert len(named(archive=True).spec.archive) == 4
    assert named(archive=False).spec.archive == ()


def test_a_patch_keeps_the_rest_and_null_resets():
    before = named(description="old", weight=3, retention="3d", queuePolicy="fair")
    after = parse_namespace(merge_namespace(before, {"description": "new", "retention": None, "queuePolicy": None}))
    assert (after.spec.description, after.weight, after.spec.retention, after.queue_policy) == ("new", 3.0, {}, None)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"colour": "red"}, "colour"),
        ({"weight": 0}, "weight"),
        ({"weight": True}, "weight"),
        ({"retention": {"lost": "1d"}}, "retention.lost"),
        ({"retention": {"success": "1s"}}, "retention.success"),
        ({"defaults": {"command": "true"}}, "defaults.command"),
        ({"defaults": {"priority": 12}}, "defaults.priority"),
        ({"defaults": {"retry": {"delay": "never"}}}, "defaults.retry.delay"),
        ({"queuePolicy": "best"}, "queuePolicy.kind"),
        ([], "body"),
    ],
)
def test_an_invalid_namespace_is_refused_with_its_field(body, field):
    with pytest.raises(BadInput) as refused:
        parse_namespace(body)
    assert refused.value.fields["field"] == field


DEFAULTS = {"retries": 3, "timeout": "1h", "queue": "slow", "tags": {"team": "a"}, "priority": 7}


@pytest.mark.parametrize(
    ("body", "taken"),
    [
        ({}, {"retries": 3, "timeout": "1h", "queue": "slow", "priority": 7}),
        ({"priority": 0, "queue": "own"}, {"retries": 3, "timeout": "1h", "queue": "own", "priority": 0}),
        ({"retry": ["1s"]}, {"retry": ["1s"], "timeout": "1h", "queue": "slow", "priority": 7}),
        ({"timeouts": {"run": "1m"}}, {"timeouts": {"run": "1m"}, "retries": 3, "queue": "slow", "priority": 7}),
        ({"delivery": "at-most-once"}, {"delivery": "at-most-once", "timeout": "1h", "queue": "slow", "priority": 7}),
        ({"workflow": []}, {"workflow": [], "queue": "slow", "priority": 7}),
    ],
)
def test_a_job_takes_defaults_that_it_does_not_override(body, taken):
    assert with_defaults(body, DEFAULTS) == {**taken, "tags": {"team": "a"}}


def test_default_tags_are_merged_with_the_jobs_own():
    assert with_defaults({"tags": ["nightly"]}, DEFAULTS)["tags"] == {"team": "a", "nightly": ""}
    assert with_defaults({"tags": {"team": "b"}}, DEFAULTS)["tags"] == {"team": "b"}


def test_retention_follows_the_namespace():
    now = 100 * DAY
    retention = Retention(30 * DAY, {2: {"success": DAY, "failed": 60 * DAY}})
    assert not retention.is_plain
    assert Retention(30 * DAY).is_plain
    assert retention.shortest_of(2) == DAY
    assert retention.shortest_of(1) == 30 * DAY
    assert retention.longer_rules(now) == [(2, "failed", 40 * DAY)]
    assert retention.is_over([(2, "success", 98 * DAY)], now)
    assert not retention.is_over([(1, "success", 98 * DAY)], now)
    assert not retention.is_over([(2, "success", 98 * DAY), (2, "failed", 69 * DAY)], now)
    assert retention.is_over([(2, "success", 98 * DAY), (2, "cancelled", 69 * DAY)], now)


def test_a_policy_of_queues_is_read_as_a_queues_own():
    assert named(queuePolicy="fifo").policy == FifoPolicy()
