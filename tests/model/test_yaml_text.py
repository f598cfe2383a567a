"""YAML texts: their values and positions, and texts refused before they are built."""

import pytest

from horae.errors import BadInput
from horae.model.documents.yaml_text import FILE, read_documents

JOB = """\
name: load # the nightly one
schedule: {cron: 0 9 * * *, timezone: Europe/Paris}
workflow:
  steps:
    - name: a
      command: "true"
    - {name: b, after: [a]}
at: 2026-11-15
1: one
"""


def test_a_text_is_parsed_with_the_positions_of_its_values():
    (document,) = read_documents(JOB)
    steps = [{"name": "a", "command": "true"}, {"name": "b", "after": ["a"]}]
    assert document.value == {
        "name": "load", "schedule": {"cron": "0 9 * * *", "timezone": "Europe/Paris"}, "workflow": {"steps": steps},
        "at": "2026-11-15", "1": "one",
    }  # fmt: skip
    places = document.places
    assert places["schedule.timezone"] == (2, 29)
    assert (places["workflow.steps[0]"], places["workflow.steps[1].after"]) == ((5, 7), (7, 17))


def test_aliases_and_merge_keys_are_expanded():
    (document,) = read_documents("a: &a {x: 1, y: 2}\nb: {<<: *a, x: 3}\nc: *a\n")
    assert document.value == {"a": {"x": 1, "y": 2}, "b": {"x": 3, "y": 2}, "c": {"x": 1, "y": 2}}
    assert read_documents("") == []
    assert [one.value for one in read_documents("a: &a 1\n---\nb: 2\n")] == [{"a": 1}, {"b": 2}]


def doubled(times: int) -> str:
    return "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, times))


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("a: 1\nb: [", 3, "flow"),
        ("a: b: c", 1, "mapping values"),
        ("a: 1\nb: 2\na: 3", 3, "the key 'a' occurs twice"),
        ("a: 1\non: 2", 2, "a name is not a text"),
        ("? [a]\n: 1", 1, "a name is not a text"),
        ("a: .inf", 1, "JSON has no such number"),
        ("a: " + "9" * 30, 1, "JSON has no such number"),
        ("a: " + "9" * 5000, 1, "cannot be read"),
        ("a: 2026-13-45", 1, "cannot be read"),
        ("a: !!bool maybe", 1, "cannot be read"),
        ("a: !!timestamp x", 1, "cannot be read"),
        ("a: !!int ''", 1, "cannot be read"),
        ("a: !!python/object/apply:os.system [ls]", 1, "python/object"),
        ("a: !!set {x, y}", 1, "Remove the tag"),
        ("a: *nobody", 1, "alias"),
        ("a: &a [*a]", 1, "contains itself"),
        ("a: 1\nb: \x07", 2, "does not allow"),
        (doubled(40), 15, "more than 100000 values"),
        ("a: &a " + "x" * 10_000 + "\n" + "".join(f"b{n}: *a\n" for n in range(400)), 319, "more than 100000 values"),
        ("[" * 100_000, 1, "more than 64 levels"),
        ("a: &a " + "[" * 40 + "]" * 40 + "\nb: " + "[" * 40 + "*a" + "]" * 40, 2, "more than 64 levels"),
        ("x" * 300_000, None, "300000 characters"),
    ],
)  # fmt: skip
def test_an_invalid_or_too_large_text_is_refused_with_its_line(text: str, line: int | None, told: str):
    with pytest.raises(BadInput) as refused:
        read_documents(text)
    assert told in str(refused.value)
    assert refused.value.fields.get("line") == line


def test_a_file_may_be_larger_than_a_request():
    (document,) = read_documents("\n".join(f"- {{name: j{n}, command: 'true'}}" for n in range(12_000)), FILE)
    assert len(document.value) == 12_000
