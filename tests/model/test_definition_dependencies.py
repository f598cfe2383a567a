"""The dependencies in a job's definition."""

import pytest

from horae.env import SECOND
from horae.errors import BadInput
from horae.model.base.duration import DAY
from horae.model.definitions.reading.read import parse_definition
from horae.model.definitions.reading.write import render_definition

EXTRACT, LOAD = "0195c1d2-7a3b-7c4d-8e5f-0123456789ab", "0195c1d2-7a3b-7c4d-8e5f-0123456789ac"


def parse(**fields):
    return parse_definition({"name": "report", "command": "true", **fields}, namespace_name="default", created_at=0)


def test_a_dependency_is_a_name_or_an_object_with_a_condition():
    definition = parse(
        dependencies=["extract", {"job": "load"}, {"job": "check", "condition": "failure"}, "extract"],
        dependencyTimeout="90s", onDependencyTimeout="skip",
    )  # fmt: skip
    assert definition.dependencies == ("extract", "load", "check")
    assert definition.conditions == {"check": "failure"}
    assert (definition.spec.dependency_timeout, definition.spec.on_dependency_timeout) == (90 * SECOND, "skip")


def test_the_default_condition_is_a_success_within_a_day():
    spec = parse().spec
    assert (spec.dependency_timeout, spec.on_dependency_timeout, spec.conditions_by_job) == (DAY, "fail", {})


@pytest.mark.parametrize(
    ("dependencies", "field", "words"),
    [
        ([{"job": "report"}], "dependencies", "depend on itself"),
        ([5], "dependencies[0]", "neither a text nor an object"),
        ([{"condition": "success"}], "dependencies[0].job", "not name a job"),
        ([{"job": "a", "condition": "sucess"}], "dependencies[0].condition", "cannot be 'sucess'"),
        ([{"job": "a", "when": "success"}], "dependencies[0].when", "no field"),
        (["a", {"job": "a", "condition": "failure"}], "dependencies[1].condition", "two conditions"),
        ([""], "dependencies[0]", "empty"),
        ("a", "dependencies", "not a list"),
    ],
)
def test_errors_of_a_dependency_name_its_field(dependencies, field, words):
    with pytest.raises(BadInput) as refused:
        parse(dependencies=dependencies)
    assert refused.value.fields["field"] == field
    assert words in refused.value.detail


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"dependencyTimeout": 0}, "dependencyTimeout"),
        ({"dependencyTimeout": "soon"}, "dependencyTimeout"),
        ({"onDependencyTimeout": "retry"}, "onDependencyTimeout"),
    ],
)
def test_an_invalid_dependency_timeout_is_refused(fields, field):
    with pytest.raises(BadInput) as refused:
        parse(**fields)
    assert refused.value.fields["field"] == field


def test_only_conditions_other_than_success_are_shown():
    from msgspec import structs

    spec = structs.replace(parse().spec, dependencies=(EXTRACT, LOAD), conditions={LOAD: "finished"})
    shown = render_definition(spec, {EXTRACT: "extract", LOAD: "load"})
    assert shown["dependencies"] == ["extract", {"job": "load", "condition": "finished"}]
    assert (shown["dependencyTimeout"], shown["onDependencyTimeout"]) == ("1d", "fail")
    again = parse(**{name: shown[name] for name in ("dependencies", "dependencyTimeout", "onDependencyTimeout")})
    assert again.conditions == {"load": "finished"}
