"""A job's definition: its forms, and the errors for invalid ones."""

from typing import Any

import pytest

from horae.env import SECOND
from horae.errors import BadInput
from horae.model.definitions.reading.patch import merge_definition
from horae.model.definitions.reading.read import parse_definition
from horae.model.definitions.reading.schedule import parse_when, render_when
from horae.model.definitions.reading.write import render_definition
from horae.model.definitions.resource_limits import ResourceLimits
from horae.model.definitions.tasks import CommandTask, HttpTask, PythonTask
from horae.model.triggers.decisions.named_trigger import NamedTrigger
from horae.model.triggers.decisions.rules import Rules, offset_in
from horae.model.triggers.decisions.values import Cron, Interval, Once

NOW = 1_800_000_000 * SECOND
LATER = "2027-03-01T08:00:00Z"


def parse(**fields: Any):
    return parse_definition({"name": "report", **fields}, namespace_name="default", created_at=NOW)


def spec(**fields: Any):
    return parse(**{"command": "true", **fields}).spec


def refused(body: Any) -> BadInput:
    with pytest.raises(BadInput) as caught:
        parse_definition(body, namespace_name="default", created_at=NOW)
    return caught.value


def refused_field(**fields: Any) -> BadInput:
    return refused({"name": "report", "command": "true", **fields})


def test_the_example_of_the_design_is_accepted():
    body = {
        "name": "daily-report", "schedule": "0 0 * * *", "command": "python report.py",
        "dependencies": ["extract"], "retries": 3, "timeout": 3600,
    }  # fmt: skip
    definition = parse_definition(body, namespace_name="default", created_at=NOW)
    assert definition.spec.task == CommandTask(argv=("python", "report.py"))
    assert [when.trigger for when in definition.whens] == [Cron(expression="0 0 * * *")]
    assert definition.dependencies == ("extract",)
    assert definition.spec.retry.retries == 3
    assert definition.spec.timeout == 3600 * SECOND


@pytest.mark.parametrize(
    ("command", "task"),
    [
        ("echo 'a b' c", CommandTask(argv=("echo", "a b", "c"))),
        ("echo $HOME | wc", CommandTask(argv=("echo", "$HOME", "|", "wc"))),
        (["echo", "a b", ""], CommandTask(argv=("echo", "a b", ""))),
        ({"shell": "echo $HOME | wc"}, CommandTask(shell="echo $HOME | wc")),
        (
            {
                "argv": "a b",
                "user": "backup",
                "limits": {"memory": "512MiB", "cpu": "1m30s", "fileSize": 5, "files": None},
            },
            CommandTask(
                argv=("a", "b"), user="backup", limits=ResourceLimits(memory=512 << 20, cpu=90 * SECOND, file_size=5)
            ),
        ),
        ({"argv": ["ls"], "cwd": "/tmp"}, CommandTask(argv=("ls",), cwd="/tmp")),
    ],
)
def test_a_command_is_split_without_a_shell_unless_one_is_asked_for(command, task):
    assert parse(command=command).spec.task == task


def test_python_and_http_tasks():
    assert parse(python="digest").spec.task == PythonTask(function="digest")
    assert parse(python={"function": "m.digest", "isolation": "process"}).spec.task == PythonTask(
        function="m.digest", isolation="process"
    )
    assert parse(http="https://example.com/hook").spec.task == HttpTask(url="https://example.com/hook")
    task = parse(http={"url": "https://${params.host}/x", "method": "get", "expect": [200, "4xx"]}).spec.task
    assert task == HttpTask(url="https://${params.host}/x", method="GET", expect=("200", "4xx"))


def test_schedules_and_their_rules():
    assert parse(command="true").whens == ()
    (when,) = parse(command="true", schedule={"every": "5m"}).whens
    assert when == NamedTrigger(name="schedule", trigger=Interval(every=300 * SECOND, since=NOW))
    assert isinstance(parse(command="true", schedule={"at": LATER}).whens[0].trigger, Once)
    given = {"cron": "0 9 * * *", "timezone": "Europe/Paris", "overlap": "allow", "misfire": "skip", "jitter": "5s"}
    definition = parse(command="true", schedule=given)
    (when,) = definition.whens
    assert when.trigger == Cron(expression="0 9 * * *", timezone="Europe/Paris")
    assert (when.rules.overlap, when.rules.misfire.policy) == ("allow", "skip")
    assert when.rules.jitter == 5 * SECOND
    assert definition.spec.schedule == given


def test_a_job_has_several_triggers_each_with_a_name():
    definition = parse(
        command="true",
        schedule="@daily",
        triggers=["0 9 * * *", {"every": "5m", "maxFires": 3, "paused": True}, {"name": "x", "at": LATER}, "@hourly"],
    )

    assert [(when.name, type(when.trigger).__name__) for when in definition.whens] == [
        ("schedule", "Cron"), ("cron", "Cron"), ("interval", "Interval"), ("x", "Once"), ("cron-2", "Cron"),
    ]  # fmt: skip
    assert [when.paused for when in definition.whens] == [False, False, True, False, False]
    assert definition.whens[2].rules.max_fires == 3
    again = parse(**{k: v for k, v in render_definition(definition.spec).items() if k != "name"})
    assert (again.spec, again.whens) == (definition.spec, definition.whens)


@pytest.mark.parametrize(
    ("overlap", "read"),
    [("queueOne", ("queueOne", 100)), ("queueAll", ("queueAll", 100)), ({"queueAll": 7}, ("queueAll", 7))],
)
def test_overlaps_of_a_trigger(overlap, read):
    (when,) = parse(command="true", schedule={"every": "5m", "overlap": overlap}).whens

    assert (when.rules.overlap, when.rules.most_queued) == read
    again = parse_when(render_when(when), key="default/report", created_at=NOW)
    assert again == when


def test_spread_and_params_of_a_trigger():
    params = {"day": "${fire.at}", "n": 5}
    (when,) = parse(command="true", schedule={"cron": "@daily", "spread": "1h", "params": params}).whens

    assert when.params == params
    assert when.rules == Rules(spread=3600 * SECOND, offset=offset_in(3600 * SECOND, "default/report/schedule"))


def test_a_given_trigger_name_is_not_assigned_again():
    whens = parse(command="true", triggers=["@daily", {"name": "cron", "cron": "@hourly"}]).whens
    assert [when.name for when in whens] == ["cron-2", "cron"]


def test_retry_policies():
    fixed = spec(retries=2, retry={"delay": "10m"}).retry
    assert (fixed.retries, fixed.delay, fixed.factor, fixed.jitter, fixed.max) == (
        *(2, 600 * SECOND, 1, 0),
        600 * SECOND,
    )
    growing = spec(retries=5, retry={"delay": "2s", "factor": 3, "max": "1m", "jitter": 0.5}).retry
    assert (growing.delay, growing.factor, growing.max, growing.jitter) == (2 * SECOND, 3, 60 * SECOND, 0.5)
    listed = spec(retry=["1s", "10s"]).retry
    assert (listed.retries, listed.delays, listed.jitter) == (2, (SECOND, 10 * SECOND), 0)
    assert spec(retries=9, retry={"delays": ["1s"]}).retry.retries == 9
    ruled = spec(retry={"retryOn": ["http:5xx"], "giveUpOn": "ValueError", "budgets": {"timeout": 1, "lost": 0}}).retry
    assert (ruled.retry_on, ruled.give_up_on) == (("http:5xx",), ("ValueError",))
    assert (ruled.budgets.of("timeout"), ruled.budgets.of("lost"), ruled.budgets.of("error")) == (1, 0, None)


def test_needs_and_tags_take_lists_and_objects():
    assert spec(needs=["ssd", "gpu=a100"]).needs == ("gpu=a100", "ssd")
    assert spec(needs={"ssd": True, "gpu": "a100"}).needs == ("gpu=a100", "ssd")
    assert spec(tags=["nightly"]).tags == {"nightly": ""}
    assert spec(tags={"team": "data"}).tags == {"team": "data"}


def test_null_is_a_field_left_out():
    assert spec(timeout=None, schedule=None, params=None, python=None) == spec()


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        ([], "body", "object"),
        ("x", "body", "object"),
        ({}, "name", "needs a name"),
        ({"name": "report"}, "command", "has no task"),
        ({"name": "report", "command": "a", "python": "b"}, "python", "command and python"),
        ({"name": "report", "comand": "a"}, "comand", 'mean "command"'),
        ({"name": "report", "key_for": "1d", "command": "a"}, "key_for", 'mean "keyFor"'),
        ({"name": "report", "command": "a", "colour": "red"}, "colour", "The fields are: name, description"),
        ({"name": "my report", "command": "a"}, "name", "not a valid name"),
        ({"name": "x" * 129, "command": "a"}, "name", "128 letters"),
        ({"name": 7, "command": "a"}, "name", "a number, not a text"),
        ({"name": "0195c1d2-0000-7000-8000-000000000000", "command": "a"}, "name", "looks like an id"),
    ],
)
def test_errors_of_the_whole_definition(body, field, words):
    error = refused(body)
    assert error.fields["field"] == field
    assert words in str(error)


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"command": "echo 'a"}, "command", "No closing quotation"),
        ({"command": ""}, "command", "empty"),
        ({"command": "   "}, "command", "no program"),
        ({"command": []}, "command", "no program"),
        ({"command": ["a", 1]}, "command[1]", "a number, not a text"),
        ({"command": {"shell": "a", "argv": ["b"]}}, "command", "either argv or shell"),
        ({"command": {"sh": "a"}}, "command.sh", "argv, shell, cwd"),
        ({"command": ["echo", "${params."]}, "command[1]", "without its"),
        ({"command": "a\x00b"}, "command", "not text"),
        ({"command": None, "python": "a b"}, "python.function", "not the name of a function"),
        ({"command": None, "python": {"function": "f", "isolation": "vm"}}, "python.isolation", "thread, process"),
        ({"command": None, "http": "ftp://x"}, "http.url", "not an http"),
        ({"command": None, "http": {"method": "GET"}}, "http.url", "no url"),
        ({"command": None, "http": {"url": "http://x", "method": "PSOT"}}, "http.method", 'mean "POST"'),
        ({"command": None, "http": {"url": "http://x", "method": "FLY"}}, "http.method", "http.method cannot be 'FLY'"),
        ({"command": None, "http": {"url": "http://x", "method": 1}}, "http.method", "http.method cannot be a number"),
        ({"command": None, "http": {"url": "http://x", "expect": ["ok"]}}, "http.expect", "not a status"),
        ({"command": {"argv": ["a"], "limits": {"memory": "much"}}}, "command.limits.memory", "much"),
        ({"command": {"argv": ["a"], "limits": {"memory": 1000}}}, "command.limits.memory", "1000 bytes"),
        ({"command": {"argv": ["a"], "limits": {"cpu": "1ms"}}}, "command.limits.cpu", "1ms"),
        ({"command": {"argv": ["a"], "limits": {"processes": 0}}}, "command.limits.processes", "0"),
        ({"command": {"argv": ["a"], "limits": {"disk": 1}}}, "command.limits.disk", "disk"),
        ({"command": {"argv": ["a"], "limits": [1]}}, "command.limits", "list"),
        ({"command": {"argv": ["a"], "user": "a b"}}, "command.user", "user's name"),
        ({"command": {"argv": ["a"], "user": 0}}, "command.user", "user's name"),
        ({"command": {"shell": "echo ${params.day}"}}, "command.shell", "cannot have placeholders"),
        (
            {"command": None, "python": {"function": "f", "isolation": "thread", "limits": {"files": 9}}},
            "python.limits",
            "threads share",
        ),
        ({"command": None, "http": {"url": "http://x", "redirects": 11}}, "http.redirects", "11"),
        ({"command": None, "http": {"url": "http://x", "headers": {"A": "b\nc"}}}, "http.headers.A", "one line"),
        ({"params": [1]}, "params", "a list, not an object"),
        ({"schema": {"type": "array"}}, "schema", "describe an object"),
        ({"schema": {"$ref": "http://example.com/s"}}, "schema", "another document"),
        ({"schema": {"$schema": "http://json-schema.org/draft-07/schema#"}}, "schema", 'Remove "$schema"'),
        ({"retries": -1}, "retries", "cannot be -1"),
        ({"retries": True}, "retries", "true, not a whole number"),
        ({"retries": 10**30}, "retries", "a number of this size"),
        ({"retries": "3"}, "retries", "a text, not a whole number"),
        ({"retry": {"dealy": "1s"}}, "retry.dealy", '"delay"'),
        ({"retry": {"delay": "1m", "max": "1s"}}, "retry.max", "shorter"),
        ({"retry": {"delays": ["1s"], "factor": 2}}, "retry.factor", "delays and factor"),
        ({"retry": ["1s", "soon"]}, "retry[1]", "not a length of time"),
        ({"retry": {"delays": ["1s", "soon"]}}, "retry.delays[1]", "not a length of time"),
        ({"retry": []}, "retry", "no delay"),
        ({"retry": {"delays": []}}, "retry.delays", "no delay"),
        ({"retry": 0}, "retry", "a number, not an object"),
        ({"retry": {"retryOn": 0}}, "retry.retryOn", "not a list"),
        ({"retry": {"budgets": False}}, "retry.budgets", "false, not an object"),
        ({"timeouts": 0}, "timeouts", "a number, not an object"),
        ({"command": None, "http": {"url": "http://x", "headers": 0}}, "http.headers", "a number, not an object"),
        ({"retry": {"delay": "1s", "jitter": 2}}, "retry.jitter", "from 0 to 1"),
        ({"timeout": "soon"}, "timeout", "not a length of time"),
        ({"timeout": 0}, "timeout", "Remove it"),
        ({"timeout": -5}, "timeout", "negative"),
        ({"timeout": 1e300}, "timeout", "100 years"),
        ({"grace": "2h"}, "grace", "from 0s to 1h"),
        ({"priority": 10}, "priority", "0 (least urgent) to 9"),
        ({"queue": "a b"}, "queue", "not a valid queue"),
        ({"needs": ["gpu:a"]}, "needs[0]", "not a label"),
        ({"needs": "gpu"}, "needs", "not a list"),
        ({"dependencies": "extract"}, "dependencies", "not a list"),
        ({"dependencies": ["report"]}, "dependencies", "depend on itself"),
        ({"tags": {"a b": "c"}}, "tags.a b", "not a valid tag"),
        ({"tags": {"a": 1}}, "tags.a", "a number, not a text"),
        ({"tags": [f"t{i}" for i in range(40)]}, "tags", "At most 32"),
        ({"env": {"A-B": "c"}}, "env.A-B", "variable's name"),
        ({"env": {"A": 1}}, "env.A", '"A": "1"'),
        ({"env": {"HORAE_TOKEN": "1"}}, "env.HORAE_TOKEN", "Horae itself"),
        ({"env": {"A": "x" * 70_000}}, "env.A", "At most 65536"),
        ({"delivery": "exactly-once"}, "delivery", "at-least-once"),
        ({"delivery": "at-most-once", "retries": 1}, "retries", "never tried again"),
        ({"delivery": "at-most-once", "retry": ["1s"]}, "retries", "never tried again"),
        ({"delivery": "at-most-once", "retry": {"budgets": {"timeout": 1}}}, "retry.budgets", 'Remove "budgets"'),
        ({"rate": "10/minute"}, "rate", "Write a number of starts in a span"),
        ({"keyFor": "0s"}, "keyFor", "from 1s"),
        ({"preempts": "yes"}, "preempts", "true or false"),
        ({"preemptible": True, "interruptible": False}, "preemptible", "run to its end"),
        ({"preemptible": True, "delivery": "at-most-once"}, "preemptible", 'Remove "preemptible" or "delivery"'),
        ({"description": "x" * 5000}, "description", "At most 4096"),
        ({"schedule": "every day"}, "schedule", "cron"),
        ({"schedule": {"every": "5m", "overlp": "skip"}}, "schedule.overlp", '"overlap"'),
        ({"schedule": {"every": "5m", "overlap": "never"}}, "schedule.overlap", "allow, skip"),
        ({"schedule": {"every": "5m", "overlap": {"queueAll": 0}}}, "schedule.overlap.queueAll", "cannot be 0"),
        ({"schedule": {"every": "5m", "overlap": {"queueOne": 1}}}, "schedule.overlap", "queueOne"),
        ({"triggers": [{"event": "x", "overlap": "now"}]}, "triggers[0].overlap", "queueOne"),
        ({"schedule": {"every": "5m", "misfire": "no"}}, "schedule.misfire", "misfire policy"),
        ({"schedule": {"at": "2020-01-01T00:00:00Z"}}, "schedule.at", "has passed"),
        ({"schedule": {"at": "tomorrow"}}, "schedule.at", "RFC 3339"),
        ({"schedule": {"every": "5m", "maxFires": 0}}, "schedule.maxFires", "cannot be 0"),
        ({"schedule": {"every": "5m", "jitter": "5s", "spread": "5m"}}, "schedule.spread", "Both spread and jitter"),
        ({"schedule": {"every": "5m", "spread": "2d"}}, "schedule.spread", "cannot be 2d"),
        ({"schedule": {"every": "5m", "params": ["x"]}}, "schedule.params", "not an object"),
        ({"schedule": {"every": "5m", "params": {"x": "${fire.at"}}}, "schedule.params.x", "without its"),
        ({"schedule": {"every": "5m", "params": {"x": "${event.id}"}}}, "schedule.params.x", "refers to 'event'"),
        ({"triggers": [{"every": "5m", "params": {"x": "${env.HOME}"}}]}, "triggers[0].params.x", "refers to 'env'"),
        ({"schedule": {"every": "5m", "paused": "yes"}}, "schedule.paused", "true or false"),
        ({"triggers": "@daily"}, "triggers", "not a list"),
        (
            {"triggers": [{"event": "x", "zzz": 1}]},
            "triggers[0].zzz",
            "webhook, startAt, endAt, maxFires, overlap, within, calendar, calendars, outside, params, paused.",
        ),
        ({"triggers": [5]}, "triggers[0]", "neither a text nor an object"),
        ({"triggers": ["@daily", {"evry": "5m"}]}, "triggers[1].evry", "no field 'evry'"),
        ({"triggers": [{"every": "5m", "at": LATER}]}, "triggers[0]", "one of every and at"),
        ({"triggers": [{"every": "5m", "startAt": LATER, "endAt": LATER}]}, "triggers[0].endAt", "not after"),
        ({"triggers": [{"cron": "0 9 * * *", "timezone": "Mars"}]}, "triggers[0].timezone", "no time zone"),
        ({"triggers": [{"cron": "60 * * * *"}]}, "triggers[0]", "minute"),
        ({"triggers": [{"name": "schedule", "every": "5m"}]}, "triggers[0].name", "belongs to"),
        (
            {"triggers": [{"name": "a", "every": "5m"}, {"name": "a", "every": "6m"}]},
            "triggers[1].name",
            "Two triggers",
        ),
        ({"triggers": [{"name": "a b", "every": "5m"}]}, "triggers[0].name", "not a valid name"),
        ({"triggers": [{"every": "5m"}] * 1001}, "triggers", "1001 entries"),
        ({"schedule": {"every": "5m", "startAt": LATER, "endAt": LATER}}, "schedule.endAt", "not after"),
        ({"params": {"a": "x" * 300_000}}, "params", "bytes"),
    ],
)
def test_errors_of_single_fields(fields, field, words):
    error = refused_field(**fields)
    assert error.fields["field"] == field
    assert words in str(error)
    assert error.remedy


def test_deep_nesting_is_refused_before_it_is_read():
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    assert "nested deeper" in str(refused_field(params={"a": deep}))


def test_a_patch_changes_what_it_names():
    current = render_definition(spec(params={"a": 1, "b": {"c": 2}}, timeout="5m", tags={"x": "1"}))
    merged = merge_definition(current, {"timeout": None, "params": {"a": None, "b": {"d": 3}}, "tags": {"y": "2"}})
    changed = parse_definition(merged, namespace_name="default", created_at=NOW).spec
    assert changed.timeout is None
    assert changed.params == {"b": {"c": 2, "d": 3}}
    assert changed.tags == {"x": "1", "y": "2"}


def test_a_patch_that_removes_the_rate_removes_its_burst():
    merged = merge_definition(render_definition(spec(rate="10/1m", burst=5)), {"rate": None})
    assert parse_definition(merged, namespace_name="default", created_at=NOW).spec.rate is None


def test_a_patched_schedule_task_or_retry_policy_is_replaced_as_a_whole():
    current = render_definition(spec(schedule={"cron": "0 9 * * *", "timezone": "Europe/Paris"}, retry=["1s"]))
    merged = merge_definition(current, {"schedule": {"every": "1m"}, "python": "digest", "retry": {"delay": "2s"}})
    changed = parse_definition(merged, namespace_name="default", created_at=NOW)
    assert changed.whens[0].trigger == Interval(every=60 * SECOND, since=NOW)
    assert changed.spec.task == PythonTask(function="digest")
    assert changed.spec.retry.delay == 2 * SECOND


def test_a_patch_cannot_take_the_name_away():
    with pytest.raises(BadInput, match="needs a name"):
        merge_definition(render_definition(spec()), {"name": None})


@pytest.mark.parametrize("where", ["job", "schedule", "trigger"])
def test_a_deadline_is_read_and_written(where):
    when = {"cron": "0 2 * * *", **({} if where == "job" else {"within": "2h"})}
    body = {"name": "job", "command": "true", **({"within": "2h"} if where == "job" else {})}
    body |= {"triggers": [{"name": "nightly", **when}]} if where == "trigger" else {"schedule": when}
    made = parse_definition(body, namespace_name="default", created_at=0)
    spans = {"job": made.spec.within, "schedule": made.whens[0].rules.within, "trigger": made.whens[0].rules.within}
    assert spans[where] == 2 * 3600 * SECOND
    again = parse_definition(render_definition(made.spec), namespace_name="default", created_at=0)
    assert again == made
    if where != "job":
        assert render_when(made.whens[0])["within"] == "2h"


@pytest.mark.parametrize("within", ["0s", "-1h", "soon", 0, True, [], "401d"])
@pytest.mark.parametrize("where", ["job", "schedule"])
def test_an_invalid_deadline_is_refused(within, where):
    body = {"name": "job", "command": "true", "schedule": {"every": "1h"}}
    (body if where == "job" else body["schedule"])["within"] = within
    with pytest.raises(BadInput) as refused:
        parse_definition(body, namespace_name="default", created_at=0)
    assert refused.value.fields["field"] == ("within" if where == "job" else "schedule.within")


@pytest.mark.parametrize("word", ["deadline", "sla", "withn"])
@pytest.mark.parametrize("where", ["job", "schedule"])
def test_other_names_of_a_deadline_suggest_within(word, where):
    body = {"name": "job", "command": "true", "schedule": {"every": "1h"}}
    (body if where == "job" else body["schedule"])[word] = "2h"
    with pytest.raises(BadInput) as refused:
        parse_definition(body, namespace_name="default", created_at=0)
    assert refused.value.remedy == 'Did you mean "within"?'
