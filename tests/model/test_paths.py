"""Reduced scopes give expressions the same results as the reference implementation, and errors name the expression."""

import time

import cel
import pytest

from horae.model.base.paths import RemoteValue, branches_of
from horae.model.expressions.template import Expression, TemplateError

SCOPE = {
    "params": {"n": 3, "list": [1, 2, 3], "deep": {"a": {"b": "x"}, "c": None}, "text": "steps.a", "big": [*range(9)]},
    "steps": {"a": {"result": {"rows": 2, "more": [{"k": 1}, {"k": 5}]}, "state": "success"}, "b-c": {"result": None}},
}  # fmt: skip
SOURCES = [
    "params.n",
    "params.n + 1 > steps.a.result.rows",
    "params.list.map(x, x + params.n)",
    "steps.a.result.more.filter(m, m.k > params.n).size()",
    "size(params.list) == 3 && params.text == 'steps.a.result'",
    'steps["b-c"].result == null',
    "has(params.deep.a) && !has(params.deep.zzz) && has(steps.a.result.rows)",
    "params.deep.a == {'b': 'x'}",
    "params.deep.c == null",
    '"n" in params && !("m" in params)',
    "params.text.startsWith('steps') ? params.deep.a.b : params.n",
    "params.list[params.n - 1] + params . n",
    "params.exists(key, key == 'big')",
    "[params.n, steps.a.state]",
    'steps["a"].result["rows"] > 1 && params["deep"].a["b"] == "x"',
    "params['deep']['a']",
    "{'params': params.list.exists_one(params, params == 2)}",
]


@pytest.mark.parametrize("source", SOURCES)
def test_reduced_scopes_give_the_same_results(source):
    known = frozenset(SCOPE)
    assert Expression(source, "x", known).value(SCOPE) == cel.compile(source).execute(SCOPE)


@pytest.mark.parametrize(
    "source", ["params.zzz", "params.deep.zzz.y > 1", "params.n.y", "steps.z.result", "params.n < 'a'"]
)
def test_an_evaluation_error_names_the_expression(source):
    with pytest.raises(TemplateError, match=r"\$\{"):
        Expression(source, "x", frozenset(SCOPE)).value(SCOPE)


def test_paths_are_found_beside_comments_and_unclosed_quotes():
    began = time.process_time()
    quotes = '\\"' * 20_000
    source = f"params.x // \"{quotes}\n + params.y + '''it's {quotes}''' + params.z"

    assert branches_of(source) == {"params": {"x": None, "y": None, "z": None}}
    assert time.process_time() - began < 1  # hundreds of times the usual duration


def test_a_remote_value_is_passed_on_whole_and_not_read():
    scope = {"steps": {"a-b": {"result": RemoteValue({"$artifact": {}}, "is far"), "state": "success"}}}

    def value(source: str):
        return Expression(source, "x", frozenset({"steps"})).value(scope)

    assert value('steps["a-b"].result') == {"$artifact": {}}
    assert value('steps["a-b"].state == "success"') is True
    for source in ('steps["a-b"].result.rows', 'size(steps["a-b"].result)', 'has(steps["a-b"].result.rows)'):
        with pytest.raises(TemplateError, match=r"a-b\.result is far"):
            value(source)
