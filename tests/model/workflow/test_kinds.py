"""Expressions that can never give the required kind are refused before they run; others are accepted."""

import pytest

from horae.errors import BadInput
from horae.model.workflows.decisions.check import check_graph
from horae.model.workflows.reading.workflow import parse_workflow
from tests.model.workflow.test_decide import job


def check(**fields):
    check_graph(parse_workflow({"steps": [job("a"), job("b", **fields)]}))


@pytest.mark.parametrize(
    ("when", "told"),
    [
        ("size(params.x)", "gives a whole number, never true or false"),
        ("params.x + 1", "gives a whole number, never true or false"),
        ("'x' + string(params.x)", "gives a text, never true or false"),
        ("steps.a.state", "gives a text, never true or false"),
        ("steps.a.error", "gives null or an object, never true or false"),
        ("params.x ? 1 : 2", "gives a whole number"),
        ("steps.a.resultt == 1", "steps.a.resultt, which does not exist"),
        ("execution.foo == 1", "execution.foo, which does not exist"),
    ],
)
def test_conditions_that_are_never_boolean_are_refused(when, told):
    with pytest.raises(BadInput) as refused:
        check(when=f"${{{when}}}")
    assert told in refused.value.detail
    assert refused.value.fields["field"] == "workflow.steps[1].when"


@pytest.mark.parametrize(
    "when",
    [
        "params.x", "params.x > 3", "params.x.y.z == 'a'", "steps.a.result[0].rows > 3", "steps.a.result[0]",
        "params.m[params.k]", "params.x.exists(y, y.z == 1)", "timestamp(params.x) > timestamp(params.y)",
        "size(steps.a.result.parts) > 0 && steps.a.result.ok", "has(params.x)", "params.a + params.b + params.c > 3",
        "execution.interval != null", "steps.a.error == null || steps.a.error.kind == 'timeout'", "size(params) > 0",
        "params.x == null ? false : params.x.y", "steps['a'].result", "steps.a.result.map(x, x.n)[0] > 1",
        "params.names.all(n, n.startsWith('a'))", "int(params.n) % 2 == 0",
    ],
)  # fmt: skip
def test_conditions_that_may_be_boolean_are_accepted(when):
    check(when=f"${{{when}}}")


def test_items_that_are_never_a_list_are_refused():
    with pytest.raises(BadInput, match="gives a whole number, never a list"):
        check(foreach="${size(steps.a.result)}")
    check(foreach="${steps.a.result.filter(x, x.ok)}")
    check(foreach="${params.list + [1]}")
