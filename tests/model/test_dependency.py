"""Decisions about joins, for any parts that upstreams have contributed."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.model.executions.execution import FINAL
from horae.model.triggers.dependency import (
    CONDITIONS,
    NO_INTERVAL,
    Join,
    JoinPart,
    in_words,
    judge,
    meets,
    missing,
    unmet,
    why_late,
    why_skipped,
)

A, B, D, RUN = (UUID(int=i) for i in range(1, 5))
STATES = sorted(FINAL)


def part(upstream=A, *, met=True, state="success"):
    return JoinPart(upstream=upstream, met=met, state=state, execution=RUN)


@pytest.mark.parametrize(
    ("condition", "met_by"),
    [("success", {"success"}), ("failure", {"failed"}), ("finished", {"success", "failed", "cancelled", "skipped"})],
)
def test_final_states_meet_conditions(condition, met_by):
    assert {state for state in STATES if meets(condition, state)} == met_by


@pytest.mark.parametrize(
    ("join", "parts", "scheduled", "verdict"),
    [
        (Join(dependent=D), {}, False, "wait"),
        (Join(dependent=D), {A: part()}, False, "wait"),
        (Join(dependent=D), {A: part(), B: part(B)}, False, "start"),
        (Join(dependent=D), {A: part(), B: part(B)}, True, "wait"),  # its own schedule starts it
        (Join(dependent=D, execution=RUN), {A: part(), B: part(B)}, True, "release"),
        (Join(dependent=D, execution=RUN), {A: part()}, True, "wait"),
        (Join(dependent=D, execution=RUN), {A: part(met=False, state="failed")}, True, "skip"),
        (Join(dependent=D), {A: part(met=False, state="failed")}, False, "skip"),
        (Join(dependent=D), {A: part(met=False, state="failed")}, True, "wait"),
        (Join(dependent=D, state="skipped"), {A: part(), B: part(B, met=False)}, True, "wait"),
        (Join(dependent=D, state="skipped"), {A: part(), B: part(B)}, True, "start"),
        (Join(dependent=D, state="started"), {A: part(), B: part(B)}, False, "wait"),
        (Join(dependent=D, state="ended"), {A: part(), B: part(B)}, False, "wait"),
    ],
)
def test_a_join_of_two_upstreams(join, parts, scheduled, verdict):
    assert judge(join, {A: "success", B: "success"}, parts, scheduled=scheduled) == verdict


def test_a_success_skips_a_dependent_on_failures_only_if_an_execution_waits():
    parts = {A: part(met=False)}
    assert judge(Join(dependent=D), {A: "failure"}, parts, scheduled=False) == "wait"
    assert judge(Join(dependent=D, execution=RUN), {A: "failure"}, parts, scheduled=True) == "skip"


def test_without_dependencies_a_waiting_execution_continues_and_none_starts():
    assert judge(Join(dependent=D, execution=RUN), {}, {}, scheduled=False) == "release"
    assert judge(Join(dependent=D), {}, {A: part()}, scheduled=False) == "wait"


@given(
    needed=st.dictionaries(st.sampled_from([A, B]), st.sampled_from(CONDITIONS), min_size=1),
    states=st.dictionaries(st.sampled_from([A, B, D]), st.sampled_from(STATES)),
    waits=st.booleans(),
    scheduled=st.booleans(),
)
def test_no_execution_continues_before_every_upstream_met_its_condition(needed, states, waits, scheduled):
    parts = {
        upstream: part(upstream, met=meets(needed.get(upstream, "finished"), state), state=state)
        for upstream, state in states.items()
    }
    join = Join(dependent=D, execution=RUN if waits else None)
    verdict = judge(join, needed, parts, scheduled=scheduled)
    met = all(upstream in states and meets(needed[upstream], states[upstream]) for upstream in needed)
    assert (verdict == ("release" if waits else "start")) == (met and (waits or not scheduled))
    assert set(missing(needed, parts)) == needed.keys() - states.keys()
    if verdict == "skip":
        assert unmet(needed, parts)


def test_causes_name_the_upstream_its_end_and_the_interval():
    needed, names = {A: "success", B: "success"}, {A: "extract"}
    failed = {A: part(met=False, state="failed")}
    assert why_skipped(needed, failed, names) == (
        f'"extract" ended as failed ({RUN}), and this job runs on its success.'
    )
    hour = (0, 3_600_000_000)
    assert why_late(needed, {B: part(B)}, names, hour) == (
        'It waited for "extract" for 1970-01-01T00:00:00Z to 1970-01-01T01:00:00Z, which did not end in time.'
    )
    assert in_words(None) == ""


def test_a_join_without_an_interval_has_none():
    assert Join(dependent=D).interval is None
    assert Join(dependent=D, start=NO_INTERVAL, end=5).interval is None
    assert Join(dependent=D, start=3, end=5).interval == (3, 5)
    assert Join(dependent=D, start=3).key == (D, "", 3)
