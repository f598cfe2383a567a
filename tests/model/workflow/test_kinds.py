"""Expressions that can never give the required kind are refused before they run; others are accepted."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horae.errors import BadInput
from horae.model.expressions.template import Expression, TemplateError
from horae.model.workflows.decisions.check import check_graph
from horae.model.workflows.decisions.kinds import refuse_kind
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
        "params.names.all(n, n.startsWith('a'))", "int(params.n) % 2 == 0", "params.x ? 5 : true",
        "params.region == 'eu' ? true : 5", "steps.a.state == 'failed' ? true : null", "[5, 6, true][params.x]",
        "{'a': 5, 'b': true}[params.x]",
    ],
)  # fmt: skip
def test_conditions_that_may_be_boolean_are_accepted(when):
    check(when=f"${{{when}}}")


def test_items_that_are_never_a_list_are_refused():
    with pytest.raises(BadInput, match="gives a whole number, never a list"):
        check(foreach="${size(steps.a.result)}")
    check(foreach="${steps.a.result.filter(x, x.ok)}")
    check(foreach="${params.list + [1]}")
    check(foreach="${params.matrix[0]}")
    check(foreach="${params.x > 3 ? [1] : null}")


_READS = ("params.a", "params.b", "steps.s.state", "steps.s.error", "steps.s.result")
_LEAVES = st.sampled_from((*_READS, "true", "2", "1.5", "'eu'", "null", "[1]"))
_CONDITIONS = st.sampled_from(["params.a == 'eu'", "params.b != null", "params.i > 0", "steps.s.state == 'failed'"])


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    choice = st.tuples(_CONDITIONS, inner, inner).map(lambda of: f"({of[0]} ? {of[1]} : {of[2]})")
    element = st.tuples(inner, inner).map(lambda of: f"[{of[0]}, {of[1]}][params.i]")
    member = inner.map(lambda of: f"{{'x': {of}}}.x")
    called = st.tuples(st.sampled_from(["size", "string", "dyn"]), inner).map(lambda of: f"{of[0]}({of[1]})")
    twice = inner.map(lambda of: f"({of} + {of})")
    return st.one_of(choice, element, member, called, twice)


_EXPRESSIONS = st.recursive(_LEAVES, _larger, max_leaves=4)
_SCALARS = st.sampled_from([True, False, 0, 1, 3, -1.0, 2.5, "", "eu", "failed", None])
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.just("x"), inner), max_leaves=4
)
_KINDS = {
    bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null", list: "array", dict: "object",
}  # fmt: skip


@settings(max_examples=200)
@given(_EXPRESSIONS, _VALUES, _VALUES, _VALUES, st.integers(0, 1), st.sampled_from(["success", "failed"]))
def test_an_expression_that_gives_a_kind_is_never_refused_for_it(
    source: str, a: Any, b: Any, result: Any, i: int, state: str
):
    scope = {"params": {"a": a, "b": b, "i": i}, "steps": {"s": {"state": state, "error": None, "result": result}}}
    expression = Expression(source, "when", frozenset(scope))
    try:
        value = expression.value(scope)
    except TemplateError:
        return
    refuse_kind(expression, "when", (_KINDS[type(value)],), "")
