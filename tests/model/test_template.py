"""Templates: CEL between `${` and `}`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.errors import BadInput
from horae.model.expressions.template import TemplateError, compile_template, compile_tree, render, render_tree

SCOPE = {"params": {"day": "2026-11-15", "n": 3, "deep": {"a": [1, None, "x"]}, "nothing": None, "yes": True}}


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("plain", "plain"),
        ("${params.day}", "2026-11-15"),
        ("a-${params.day}-${params.n}.tar", "a-2026-11-15-3.tar"),
        ("${params.n + 1}", "4"),
        ("${params.deep.a}", '[1,null,"x"]'),
        ("${params.nothing}", ""),
        ("${params.yes}", "true"),
        ("${params.n > 2 ? 'many}' : \"few\"}", "many}"),
        ("${ {'a': 1}.a }", "1"),
        ("${[1, 2].map(x, x * 2)}", "[2,4]"),
        ("$${params.day}", "${params.day}"),
        ("cost: $5 {x}", "cost: $5 {x}"),
        ("${'it\\'s}'}", "it's}"),
    ],
)
def test_a_text_is_filled_from_its_scope(text, rendered):
    assert render(compile_template(text), SCOPE) == rendered


@pytest.mark.parametrize("text", ["${params.", "${", "${}", "${params.a +}", "${'open}"])
def test_a_bad_expression_is_refused_with_its_place(text):
    with pytest.raises(BadInput) as refused:
        compile_template(text, "command[1]")

    assert refused.value.fields["field"] == "command[1]"


@pytest.mark.parametrize("text", ["${HOME}", "${params.a + other.x}", "${params.a == 1 ? HOME : 'x'}"])
def test_unknown_names_are_refused_at_definition(text):
    with pytest.raises(BadInput, match="can use params") as refused:
        compile_template(text, "command[1]")

    assert refused.value.fields["field"] == "command[1]"
    assert "--shell" in refused.value.remedy


def test_the_caller_chooses_the_known_names():
    known = frozenset({"event"})

    assert render(compile_template("${event.name}", "filter", known), {"event": {"name": "upload"}}) == "upload"
    assert render_tree(compile_tree({"a": ["${event.n}"]}, "params", known), {"event": {"n": 3}}) == {"a": [3]}
    with pytest.raises(BadInput, match="can use event"):
        compile_template("${params.day}", "filter", known)


@pytest.mark.parametrize(("text", "said"), [("${params.missing}", "missing"), ("${1/0}", "1/0")])
def test_a_value_that_cannot_be_computed_is_named(text, said):
    with pytest.raises(TemplateError, match=said):
        render(compile_template(text), SCOPE)


def test_an_error_names_the_part_that_is_null():
    scope = {"params": {"steps": {"extract": None, "load": {"rows": 3}}}}
    for text in ("${params.steps.extract.rows}", "${params.steps.load.rows > 1 && params.steps.extract.rows > 1}"):
        with pytest.raises(TemplateError, match=r": params\.steps\.extract is null$"):
            render(compile_template(text), scope)


@given(st.text().filter(lambda text: "${" not in text))
def test_a_text_without_expressions_is_itself(text):
    assert compile_template(text) is text


@given(st.text())
def test_a_rendered_value_is_not_rendered_again(value):
    assert render(compile_template("<${params.x}>"), {"params": {"x": value}}) == f"<{value}>"


def test_a_tree_keeps_the_types_of_lone_expressions():
    compiled = compile_tree({"a": "${params.n}", "b": ["${params.deep}", "n=${params.n}", 7], "c": None})

    assert render_tree(compiled, SCOPE) == {"a": 3, "b": [{"a": [1, None, "x"]}, "n=3", 7], "c": None}


def test_a_tree_without_expressions_is_itself():
    tree = {"a": ["x", {"b": 1}]}

    assert compile_tree(tree) is tree
