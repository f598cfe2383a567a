"""Definitions of workflows: parsed, refused with the step and a remedy, and written back."""

import msgspec
import pytest

from horae.errors import BadInput
from horae.model.definitions.reading.patch import merge_definition
from horae.model.definitions.reading.read import parse_definition
from horae.model.definitions.reading.write import render_definition
from horae.model.workflows.repeats import Loop
from horae.model.workflows.waits import Sleep


def job(name, **fields):
    return {"name": name, "job": "j", **fields}


def switch(*branches):
    return {"name": "w", "switch": list(branches)}


def read(*steps, **more):
    body = {"name": "w", "workflow": {"steps": list(steps), **more}}
    return parse_definition(body, namespace_name="default", created_at=0).spec


EVERYTHING = {
    "name": "etl",
    "params": {"day": "2026-11-15"},
    "workflow": {
        "onError": "finish",
        "output": "${steps.load.result}",
        "timeout": "2h",
        "steps": [
            job("extract", params={"day": "${params.day}"}),
            {
                "name": "transform", "command": ["python", "t.py", "${params.part}"], "retries": 3, "timeout": "5m",
                "when": "${steps.extract.result.rows > 0}", "join": "noneFailed", "priority": 7, "queue": "heavy",
                "foreach": {"items": "${steps.extract.result.parts}", "concurrency": 10, "tolerate": "10%"},
                "params": {"part": "${item}", "n": "${index}"}, "ignoreFailure": True,
                "limits": [{"key": "a", "concurrency": 1}],
                "undo": {"job": "remove", "params": {"parts": "${steps.transform.result}"}},
            },
            {"name": "poll", "http": "https://a.b", "until": "${steps.poll.result.done}", "every": "10s", "maxRuns": 9},
            {"name": "part", "steps": [{"name": "x", "command": "true"}], "timeout": "1h"},
            {"name": "whole", "workflow": {"steps": [job("y")], "onError": "ignore"}},
            {"name": "nap", "sleep": "5m"},
            {"name": "night", "sleep": {"until": "${params.at}"}},
            {"name": "paid", "event": {"name": "p", "filter": "${event.payload.n == params.n}", "timeout": "1d"}},
            {"name": "go", "signal": "go"},
            {"name": "ok", "approval": {"roles": ["operator"], "message": "?", "remind": "4h", "timeout": "2d"}},
            {"name": "back", "callback": True},
            {"name": "choose", "switch": [{"when": "${params.n > 1}", "then": ["a"]}, {"else": ["b"]}]},
            job("a", **{"while": "${index < 3}"}),
            job("b", after=["back"]),
            job("load", after=["transform", "a", "b"], join="always", foreach=[1, 2]),
        ],
        "onSuccess": [job("well")],
        "onFailure": [job("tell", params={"text": "${error.message}"})],
        "finally": [job("clean"), job("last", after=["clean"])],
    },
}  # fmt: skip


def test_a_workflow_round_trips():
    spec = parse_definition(EVERYTHING, namespace_name="default", created_at=0).spec
    written = render_definition(spec)
    assert parse_definition(written, namespace_name="default", created_at=0).spec == spec
    assert (written["timeout"], spec.capabilities) == ("2h", ("kind:workflow",))
    steps = {step["name"]: step for step in written["workflow"]["steps"]}
    assert steps["part"] == {"name": "part", "steps": [{"name": "x", "command": "true"}], "timeout": "1h"}
    assert steps["transform"]["foreach"]["tolerate"] == "10%"


def test_stored_loops_are_read_with_the_former_name_of_their_bound():
    loop = {"condition": "${true}", "until": True, "most": 9}
    assert msgspec.convert(loop, Loop).max_runs == 9
    nested = {"name": "part", "steps": [job("a", until="${true}", most=9)]}
    spec = read(nested, job("b", until="${true}", most=9))
    assert spec.task.steps[1].loop == msgspec.convert(loop, Loop)
    assert render_definition(spec)["workflow"]["steps"][1]["maxRuns"] == 9
    assert read(*render_definition(spec)["workflow"]["steps"]).task.steps == spec.task.steps


def test_a_patch_replaces_a_workflow_as_a_whole():
    spec = read(job("a"), job("b"))
    merged = merge_definition(render_definition(spec), {"workflow": [job("c")]})
    assert [s.name for s in parse_definition(merged, namespace_name="d", created_at=0).spec.task.steps] == ["c"]
    merged = merge_definition(render_definition(spec), {"command": "true"})
    assert "workflow" not in merged


def test_a_sleep_until_an_instant_is_read():
    assert read({"name": "a", "sleep": {"until": "2026-11-15T08:00:00Z"}}).task.steps[0].wait == Sleep(
        until="2026-11-15T08:00:00Z"
    )


REFUSED = [
    (
        [job("a", after=["c"]), job("b", after=["a"]), job("c", params={"x": "${steps.b.result}"})],
        "in a circle: a -> b -> c -> a", "steps",
    ),
    ([job("a", after=["a"])], "It comes after itself", "steps[0].after"),
    ([job("a", after=["bb"]), job("b")], 'the step "bb", which does not exist. Did you mean "b"?', "steps[0].after[0]"),
    ([job("a", when="${steps.bb.result}"), job("b")], 'refers to the step "bb"', "steps[0].when"),
    ([job("a", when="${steps.my-step.result}"), job("my-step")], 'steps["my-step"]', "steps[0].when"),
    ([job("a", params={"x": {"y": "${foo}"}})], "refers to 'foo'", "steps[0].params.x.y"),
    ([job("a", params={"x": "${item}"})], "`item` and `index` exist", "steps[0].params.x"),
    ([job("a", params={"x": "${steps[params.y].result}"})], "does not say which step", "steps[0].params"),
    ([job("a", params={"x": "${steps.a.result}"})], "refers to the step itself", "steps[0].params"),
    ([job("a", when="${1 > }")], "is not an expression", "steps[0].when"),
    ([job("a", when="yes")], "which is not an expression", "steps[0].when"),
    ([job("a", when="it ${true}")], "has text around its expression", "steps[0].when"),
    ([job("a", when="${1 + 2}")], "when is always 3", "steps[0].when"),
    ([job("a", when="${1 + 'a'}")], "would always fail", "steps[0].when"),
    ([job("a", foreach={"items": {"a": 1}})], "foreach.items is an object, not a list", "steps[0].foreach.items"),
    ([job("a", foreach="${3}")], "foreach.items is always 3", "steps[0].foreach.items"),
    ([job("a", foreach={"items": [1], "tolerate": "101%"})], "tolerate cannot be", "steps[0].foreach.tolerate"),
    ([job("a", foreach={"items": [1], "concurrency": 0})], "concurrency cannot be 0", "steps[0].foreach.concurrency"),
    ([job("a", **{"while": "${true}", "until": "${true}"})], "both while and until", "steps[0].until"),
    ([job("a", until="${true}", foreach=[1])], "both foreach and until", "steps[0].until"),
    ([job("a", until="${true}", maxRuns=0)], "maxRuns cannot be 0", "steps[0].maxRuns"),
    ([job("a", every="3s")], "every has no effect without", "steps[0].every"),
    ([{"name": "a"}], "It has no action", "steps[0].job"),
    ([job("a", command="x")], "It has several actions: job and command", "steps[0].command"),
    ([{"name": "a", "sleep": "1s", "retries": 1}], "retries does not apply", "steps[0].retries"),
    ([{"name": "a", "command": "x ${steps.b.result}"}, job("b")], "can use only its params", "steps[0].command[1]"),
    ([{"name": "a", "steps": [job("q", retrys=2)]}], 'Step "a/q": ', "steps[0].steps[0].retrys"),
    ([{"name": "a", "workflow": {"steps": []}}], "A workflow needs a step", "steps[0].steps"),
    ([job("a", retries=-1)], "retries cannot be -1", "steps[0].retries"),
    ([job("a"), job("a")], 'Two steps are named "a"', "steps[1].name"),
    ([job("a.b")], "is not a valid name of a step", "steps[0].name"),
    ([{"job": "j"}], "has no name", "steps[0].name"),
    ([], "A workflow needs a step", "steps"),
    ([job("a", when="${false}")], "It can never run: its condition never holds", "steps[0]"),
    ([job("a", join="oneFailed")], "It can never run: oneFailed needs steps before it", "steps[0]"),
    ([job("a"), job("b", after=["a"], join="allSkipped")], "satisfies allSkipped", "steps[1]"),
    (
        [switch({"when": "${true}", "then": ["a"]}, {"else": ["b"]}), job("a"), job("b")],
        "It can never run", "steps[2]",
    ),
    ([switch({"else": ["a"]}, {"when": "${true}", "then": []}), job("a")], "must be the last", "steps[0].switch[0]"),
    ([switch({"when": "${true}", "then": ["x"]})], 'It chooses the step "x"', "steps[0].switch[0].then[0]"),
    ([{"name": "a", "event": {"filter": "${event.x}"}}], "has no name", "steps[0].event.name"),
    ([{"name": "a", "signal": {"name": "x", "onTimeout": "skip"}}], "without a timeout", "steps[0].signal.onTimeout"),
    ([{"name": "a", "approval": {"roles": ["No Role"]}}], "not the name of a role", "steps[0].approval.roles[0]"),
    ([{"name": "a", "approval": {"roles": ["king"]}}], "one of: operator, editor", "steps[0].approval.roles[0]"),
    ([{"name": "a", "sleep": {"until": "soon"}}], "soon", "steps[0].sleep.until"),
    ([{"name": "a", "template": "t", "with": {"x": 1}}], "A step cannot be made from a template", "steps[0].template"),
    ([job("a", undo={"template": "t"})], "A step cannot be made from a template", "steps[0].undo.template"),
    ([job("a", **{"with": {"x": 1}})], "has no field 'with'", "steps[0].with"),
    ([job("a", undo={"job": "u", "command": "x"})], "undo must run exactly one job or task", "steps[0].undo"),
    (
        [job("a", undo={"job": "u", "params": {"x": "${steps.z.result}"}})],
        'Its undo refers to the step "z"', "steps[0].undo.params",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("steps", "words", "field"), REFUSED, ids=[field + " " + words[:20] for _, words, field in REFUSED]
)
def test_invalid_steps_are_refused(steps, words, field):
    with pytest.raises(BadInput) as refused:
        read(*steps)
    assert words in str(refused.value)
    assert refused.value.fields["field"] == f"workflow.{field}"
    assert refused.value.remedy


@pytest.mark.parametrize(
    ("more", "words", "field"),
    [
        ({"onErr": 1}, 'Did you mean "onError"?', "workflow.onErr"),
        ({"onError": "stop"}, "workflow.onError cannot be 'stop'", "workflow.onError"),
        ({"output": "${steps.z.result}"}, 'The output refers to the step "z"', "workflow.output"),
        ({"finally": [job("f", after=["a"])]}, "a step of the main phase", "workflow.finally[0].after[0]"),
        ({"finally": [job("f", undo="u")]}, "Only steps of the main phase can be undone", "workflow.finally[0].undo"),
        ({"onFailure": [job("a")]}, 'Two steps are named "a"', "workflow.onFailure[0].name"),
    ],
)
def test_invalid_workflows_are_refused(more, words, field):
    with pytest.raises(BadInput) as refused:
        read(job("a"), **more)
    assert words in str(refused.value)
    assert refused.value.fields["field"] == field


@pytest.mark.parametrize("fields", [{"retries": 2}, {"needs": ["gpu"]}, {"env": {"A": "b"}}, {"preempts": True}])
def test_fields_of_steps_are_refused_for_a_workflow(fields):
    with pytest.raises(BadInput, match="does not apply to a workflow"):
        parse_definition({"name": "w", "workflow": [job("a")], **fields}, namespace_name="d", created_at=0)


def test_bounds_are_enforced():
    with pytest.raises(BadInput, match="1001 entries"):
        read(*[job(f"s{i}") for i in range(1001)])


def test_false_and_zero_values_of_a_step_are_shown():
    said = {"retries": 0, "limits": [], "durable": False, "priority": 0}
    shown = render_definition(read(job("a", **said), job("b")))["workflow"]["steps"]
    assert shown == [job("a", **said), job("b")]
