"""Templates of jobs: placeholders filled in when a job is made, and expressions left for its runs."""

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.errors import BadInput
from horae.features.templates.model.values import JobTemplate, fill_placeholders, read_template, read_use
from horae.model.definitions.job import Spec
from horae.model.definitions.reading.patch import patched_form
from horae.model.definitions.tasks import CommandTask
from horae.model.definitions.template_use import source_of

PARAMETERS = {"region": {"type": "string", "enum": ["eu", "us"]}, "keep": {"type": "integer", "default": 7}}
BACKUP = {
    "parameters": PARAMETERS,
    "job": {
        "command": ["backup", "${with.region}", "--day", "${params.day}"],
        "retries": "${with.keep}",
        "env": {"BUCKET": "backups-${with.region}"},
    },
}


def template(body: Any = BACKUP, version: int = 1) -> JobTemplate:
    name, said = read_template("backup", body)
    return JobTemplate(id=UUID(int=1), namespace=1, name=name, version=version, body=said, created_at=0, updated_at=0)


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("${with.n}", 3),
        ("n=${with.n}", "n=3"),
        ("${with.deep.a[0]}", "x"),
        ('${with["n"] + 1}', 4),
        ("${with.n > 2 ? 'many' : 'few'}-${with.n}", "many-3"),
        ("${params.day}", "${params.day}"),
        ("$${with.n}", "$${with.n}"),
        ("${HOME:-/tmp}/${with.n}", "${HOME:-/tmp}/3"),
        ("${params.mode == 'with'}", "${params.mode == 'with'}"),
        ("${steps.with.result}", "${steps.with.result}"),
        ("no expression }", "no expression }"),
    ],
)
def test_only_expressions_with_parameters_are_filled_in(text: str, filled: Any):
    assert fill_placeholders(text, {"n": 3, "deep": {"a": ["x"]}}, "job") == filled


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text().filter(lambda t: "with" not in t),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_expressions_without_parameters_stay_unchanged(value: Any):
    assert fill_placeholders(value, {"n": 1}, "job") == value


def test_a_job_combines_values_defaults_and_its_own_fields():
    whole, made = template().derive("backup-eu", {"region": "eu"}, {"env": {"DRY": "1"}, "timeout": "5m"})

    assert whole == {
        "name": "backup-eu", "command": ["backup", "eu", "--day", "${params.day}"], "retries": 7,
        "env": {"BUCKET": "backups-eu", "DRY": "1"}, "timeout": "5m",
    }  # fmt: skip
    assert source_of("backup-eu", made) == {
        "name": "backup-eu", "template": "backup", "with": {"region": "eu"}, "env": {"DRY": "1"}, "timeout": "5m",
    }  # fmt: skip
    other, _ = template().derive("b", {"region": "eu"}, {"python": "backup", "retries": None})
    assert ("command" in other, "retries" in other, other["python"]) == (False, False, "backup")


@pytest.mark.parametrize(
    ("values", "field"),
    [({}, "with"), ({"region": "mars"}, "with.region"), ({"region": "eu", "keep": "x"}, "with.keep"),
     ({"region": "eu", "colour": "red"}, "with")],
)  # fmt: skip
def test_values_that_do_not_fit_are_refused(values: dict[str, Any], field: str):
    with pytest.raises(BadInput) as refused:
        template().derive("backup-eu", values, {})
    assert refused.value.fields["field"] == field


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ([], "body"),
        ({"parameters": {}}, "job"),
        ({"job": {"command": "true"}, "colour": "red"}, "colour"),
        ({"job": {"command": "true"}, "kind": "job"}, "kind"),
        ({"job": {"command": "true"}, "name": "other"}, "name"),
        ({"job": {"name": "x", "command": "true"}}, "job.name"),
        ({"job": {"command": "true", "template": "x"}}, "job.template"),
        ({"job": {"command": "${with.nobody}"}}, "job.command"),
        ({"job": {"command": ["a", "${with.}"]}}, "job.command[1]"),
        ({"parameters": {"n": {}}, "job": {"command": "${with.n + params.n}"}}, "job.command"),
        ({"parameters": {"a b": {}}, "job": {"command": "true"}}, "parameters.a b"),
        ({"parameters": {"n": {"type": "nonsense"}}, "job": {"command": "true"}}, "parameters.n"),
        ({"parameters": {"n": {"type": "integer", "default": "x"}}, "job": {"command": "true"}}, "parameters.n"),
        ({"parameters": {"n": {"$ref": "#/$defs/x", "$defs": {"x": {}}}}, "job": {"command": "true"}}, "parameters"),
    ],
)
def test_an_invalid_template_is_refused_with_its_field(body: Any, field: str):
    with pytest.raises(BadInput) as refused:
        read_template("backup", body)
    assert refused.value.fields["field"] == field


def test_a_jobs_template_reference_is_parsed():
    assert read_use({"name": "a", "template": "backup", "with": {"n": 1}, "timeout": "5m"}) == (
        "backup", {"n": 1}, {"name": "a", "timeout": "5m"},
    )  # fmt: skip
    assert read_use({"template": "backup", "with": None}) == ("backup", {}, {})
    wrong = [{"template": "t", "with": value} for value in ([1], [], "", 0, False)]
    for body in ({"template": 3}, {"template": "t", "colour": "red"}, *wrong):
        with pytest.raises(BadInput):
            read_use(body)


def test_a_patch_applies_to_the_users_own_fields():
    _, made = template().derive("backup-eu", {"region": "eu"}, {"timeout": "5m"})
    spec = Spec(name="backup-eu", task=CommandTask(argv=("backup",)), made=made)

    said = {"name": "backup-eu", "template": "backup", "with": {"region": "eu"}, "timeout": "5m"}
    assert patched_form(spec, {"retries": 1}) == said
    alone = patched_form(spec, {"template": None})
    assert (alone["command"], "template" in alone, "with" in alone) == (["backup"], False, False)
