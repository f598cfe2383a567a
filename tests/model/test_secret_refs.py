"""References to secrets: the allowed ones in a definition, and the values filled in."""

import pytest

from horae.errors import BadInput
from horae.model.definitions.job import Spec
from horae.model.definitions.reading.diff import differences
from horae.model.definitions.reading.read import parse_definition
from horae.model.definitions.reading.write import render_definition
from horae.model.expressions.template import compile_template, render, render_tree
from horae.model.tenancy.secret_refs import TAKES_SECRETS, fill, fill_tree, fill_url, references_in

VALUES = {"db": "p$ss${params.x}", "env/TOKEN": "a&b /c"}


def defined(**fields) -> Spec:
    return parse_definition({"name": "j", **fields}, namespace_name="default", created_at=0).spec


def test_references_are_found_where_they_are_filled_in():
    command = defined(command="run", env={"A": "secret://db", "B": "x secret://env/TOKEN, secret://db"})
    http = defined(
        http={
            "url": "https://x/secret://a.b?${params.q}",
            "headers": {"Authorization": "Bearer secret://file/tok-en."},
            "body": {"deep": ["secret://c_", {"k": "secret://d"}]},
        }
    )
    function = defined(python="f", secrets=["db", "secret://env/X"])

    assert command.references == ("db", "env/TOKEN")
    assert http.references == ("a.b", "file/tok-en", "c_", "d")
    assert function.references == ("db", "env/X")
    assert all(TAKES_SECRETS in spec.capabilities for spec in (command, http, function))
    assert TAKES_SECRETS not in defined(command="run", env={"A": "b"}).capabilities


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"command": "curl -H secret://db"}, "command[2]"),
        ({"command": {"shell": "echo secret://db"}}, "command.shell"),
        ({"command": {"argv": ["x"], "cwd": "/secret://db"}}, "command.cwd"),
        ({"command": "x", "params": {"a": [{"b": "secret://db"}]}}, "params"),
        ({"command": "x", "secrets": ["db"]}, "secrets"),
        ({"command": "x", "env": {"A": "secret://"}}, "env.A"),
        ({"command": "x", "env": {"A": "secret://${params.name}"}}, "env.A"),
        ({"command": "x", "env": {"A": '${"secret://db"}'}}, "env.A"),
        ({"command": "x", "env": {"A": "secret://env"}}, "env.A"),
        ({"command": "x", "env": {"A": "secret://file/../etc"}}, "env.A"),
        ({"command": "x", "env": {f"A{n}": f"secret://s{n}" for n in range(65)}}, "secrets"),
        ({"python": "f", "secrets": "db"}, "secrets"),
        ({"python": "f", "secrets": ["a b"]}, "secrets"),
        ({"python": "f", "secrets": ["env"]}, "secrets"),
        ({"http": {"url": "https://x/", "headers": {"A": "secret://../b"}}}, "http.headers.A"),
    ],
)
def test_exposed_or_invalid_references_are_refused(fields, field):
    with pytest.raises(BadInput) as refused:
        defined(**fields)
    assert refused.value.fields["field"] == field
    assert refused.value.remedy


def test_views_and_differences_show_references_only():
    before = render_definition(defined(python="f", secrets=["db"]))
    after = render_definition(defined(python="f", secrets=["secret://db", "env/X"]))

    assert (before["secrets"], after["secrets"]) == (["db"], ["db", "env/X"])
    assert [change.path for change in differences(before, after)] == ["secrets"]
    assert defined(**{k: v for k, v in after.items() if k != "name"}).references == ("db", "env/X")


def test_values_are_filled_into_the_definitions_text_only():
    compiled = compile_template("u:secret://db@${params.x}")
    scope = {"params": {"x": "secret://db"}}

    assert render(fill(compiled, VALUES), scope) == "u:p$ss${params.x}@secret://db"
    assert fill(compile_template("secret://db"), VALUES) == "p$ss${params.x}"
    body = {"a": ["secret://db", "$${x}"], "b": "${params.x}", "c": 1}
    assert render_tree(fill_tree(body, "http.body", VALUES), scope) == {
        "a": ["p$ss${params.x}", "${x}"],
        "b": "secret://db",
        "c": 1,
    }
    assert render_tree(fill_tree({"a": "secret://db"}, "http.body", VALUES), scope) == {"a": "p$ss${params.x}"}


def test_a_value_in_a_url_cannot_change_its_structure():
    values = {"whole": "https://hooks/x?y=1", "t": "a&b/c"}
    assert fill_url("secret://whole", values) == "https://hooks/x?y=1"
    assert fill_url("https://x/?t=secret://t", values) == "https://x/?t=a%26b%2Fc"
    rendered = render(fill_url(compile_template("https://${params.h}/secret://t"), values), {"params": {"h": "x"}})
    assert rendered == "https://x/a%26b%2Fc"


def test_a_secret_name_ends_before_other_text():
    assert references_in("see secret://a. or secret://b-, secret://c/d", "f") == ["a", "b", "c"]
