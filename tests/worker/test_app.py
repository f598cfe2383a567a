"""`App` and `@app.job`."""

from datetime import UTC, date, datetime, timedelta

import pytest

from horae.client.app import App, AppJob, cron, every, once
from horae.client.options import JobOptions, WorkflowOptions
from horae.client.workflows.job_options import SPELLED
from horae.env import SECOND
from horae.errors import BadInput
from horae.model.definitions.reading.read import parse_definition
from horae.model.definitions.resource_limits import ResourceLimits
from horae.model.definitions.tasks import PythonTask


class FakeClient:
    def __init__(self):
        self.calls = []

    async def submit(self, job, params, **options):
        self.calls.append((job, params, options))
        return "execution"

    async def submit_many(self, job, items, **options):
        self.calls.append((job, list(items), options))
        return ["execution"]


def read(job):
    return parse_definition(job.definition(), namespace_name="default", created_at=1_800_000_000 * SECOND)


def test_a_registered_function_is_still_a_function():
    app = App()

    @app.job()
    def add(a: int, b: int = 2) -> int:
        """Add two numbers."""
        return a + b

    assert add(1) == 3
    assert (add.name, add.__doc__, add.__name__) == ("add", "Add two numbers.", "add")
    assert app.jobs == {"add": add}


def test_a_definition_is_what_the_api_takes():
    app = App()
    extract = app.job("extract")(lambda: None)

    @app.job(
        "daily-digest",
        schedule=cron("0 9 * * MON-FRI", tz="Europe/Paris"),
        retries=3,
        retry={"delay": "10s", "factor": 2.0, "max": timedelta(minutes=5), "giveUpOn": ["ValueError"]},
        timeout="5m",
        queue="mail",
        priority=7,
        needs=["gpu=a100"],
        dependencies=[extract],
        tags={"team": "a"},
        isolation="process",
        process_limits={"memory": "1GiB", "file_size": 9, "cpu": timedelta(seconds=2)},
        params={"limit": 5},
        key_for=timedelta(hours=1),
    )
    async def digest(day: date, limit: int = 3) -> None:
        """Send the digest.

        To everybody.
        """

    definition = read(digest)
    spec = definition.spec

    limits = ResourceLimits(memory=1 << 30, file_size=9, cpu=2 * SECOND)
    assert spec.task == PythonTask(function="daily-digest", isolation="process", limits=limits)
    assert (spec.name, spec.description) == ("daily-digest", "Send the digest.\n\nTo everybody.")
    assert (spec.retry.retries, spec.retry.delay, spec.retry.max) == (3, 10 * SECOND, 300 * SECOND)
    assert (spec.timeout, spec.queue, spec.priority, spec.needs) == (300 * SECOND, "mail", 7, ("gpu=a100",))
    assert (spec.tags, spec.params, spec.key_for) == ({"team": "a"}, {"limit": 5}, 3600 * SECOND)
    assert definition.dependencies == ("extract",)
    assert [when.name for when in definition.whens] == ["schedule"]
    assert spec.schema["required"] == ["day"]
    assert app.definitions() == [extract.definition(), digest.definition()]


def test_dependencies_are_functions_names_or_either_with_a_condition():
    app = App()
    extract = app.job("extract")(lambda: None)

    @app.job(
        dependencies=[extract, "load", {"job": extract.name + "-2"}, {"job": extract, "condition": "success"}],
        dependency_timeout=timedelta(hours=6),
        on_dependency_timeout="run",
    )
    def report() -> None: ...

    definition = read(report)
    assert definition.dependencies == ("extract", "load", "extract-2")
    assert (definition.spec.dependency_timeout, definition.spec.on_dependency_timeout) == (6 * 3600 * SECOND, "run")


def test_absent_options_are_left_to_the_server():
    app = App()

    @app.job()
    def bare() -> None: ...

    assert set(bare.definition()) == {"name", "python", "description", "schema"}


def test_a_custom_retry_rule_retries_until_it_gives_up():
    app = App()

    def rule(failures: int, error: BaseException) -> bool:
        return failures < 3

    job = app.job("ruled", retry=rule)(lambda: None)

    assert job.retry_function is rule
    assert read(job).spec.retry.retries == 100
    assert read(app.job("few", retry=rule, retries=5)(lambda: None)).spec.retry.retries == 5


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (every("5m"), {"every": "5m"}),
        (every(timedelta(seconds=90), misfire="skip"), {"every": 90.0, "misfire": "skip"}),
        (cron("0 0 * * *"), {"cron": "0 0 * * *"}),
        (cron("0 0 * * *", start_at="2026-01-01T00:00:00Z"), {"cron": "0 0 * * *", "startAt": "2026-01-01T00:00:00Z"}),
        (once(datetime(2030, 1, 1, tzinfo=UTC)), {"at": "2030-01-01T00:00:00+00:00"}),
        (once("2030-01-01T00:00:00Z"), {"at": "2030-01-01T00:00:00Z"}),
        (
            every("5m", end_at=datetime(2030, 1, 1, tzinfo=UTC), misfire={"window": timedelta(minutes=1)}, max_fires=3),
            {"every": "5m", "endAt": "2030-01-01T00:00:00+00:00", "misfire": {"window": 60.0}, "maxFires": 3},
        ),
    ],
)
def test_schedules_are_converted_for_the_api(schedule, expected):
    app = App()
    job = app.job("j", schedule=schedule)(lambda: None)

    assert job.definition()["schedule"] == expected
    assert len(read(job).whens) == 1


def test_a_job_has_as_many_triggers_as_are_listed():
    app = App()
    job = app.job("j", triggers=[cron("0 2 * * *", name="nightly", paused=True), "@weekly"])(lambda: None)

    assert job.definition()["triggers"] == [{"cron": "0 2 * * *", "name": "nightly", "paused": True}, "@weekly"]
    assert [(when.name, when.paused) for when in read(job).whens] == [("nightly", True), ("cron", False)]


@pytest.mark.parametrize(
    "options", [{"name": "no/slash"}, {"name": "taken"}, {"timeout": "soon"}, {"retry": ["x"]}, {"key_for": -1}]
)
def test_invalid_options_are_refused_at_the_declaration(options):
    app = App()
    app.job("taken")(lambda: None)

    with pytest.raises(BadInput):
        app.job(**{"name": "j", **options})(lambda: None)


def test_mistakes_in_the_declaration():
    with pytest.raises(BadInput, match="time zone"):
        once(datetime(2030, 1, 1))


def test_a_job_without_options_needs_no_parentheses():
    app = App()

    @app.job
    def digest(day: str) -> str:
        """Its purpose."""
        return day

    assert isinstance(digest, AppJob)
    assert digest("monday") == "monday"
    assert app.definitions()[0]["name"] == "digest"
    assert app.definitions()[0]["description"] == "Its purpose."


async def test_submitting_goes_to_the_client():
    app = App(client=FakeClient())

    @app.job(params={"b": 5})
    def add(a: int, b: int, priority: int = 0) -> int:
        return a + b

    assert await add.submit(1, priority=3, delay="10m", key="k") == "execution"
    await add.submit(a=1, b=2, tags={"x": "y"})
    await add.submit_many([{"a": 1}, {"a": 2}], priority=2)

    assert app.client.calls == [
        ("add", {"a": 1, "priority": 3}, {"delay": "10m", "key": "k"}),
        ("add", {"a": 1, "b": 2}, {"tags": {"x": "y"}}),
        ("add", [{"a": 1}, {"a": 2}], {"atomic": False, "priority": 2}),
    ]


@pytest.mark.parametrize(("args", "named"), [((1, 2), {}), ((), {}), ((), {"a": 1, "z": 2}), ((1,), {"a": 2})])
async def test_submitting_what_the_function_cannot_take_is_a_type_error(args, named):
    app = App(client=FakeClient())
    job = app.job("one")(lambda a: None)

    with pytest.raises(TypeError):
        await job.submit(*args, **named)
    assert app.client.calls == []


def test_every_option_of_a_job_is_known():
    options = {"name", "batch", *JobOptions.__annotations__}
    assert options == {"name", "isolation", "process_limits", "description", *SPELLED}
    assert {"on_error", *WorkflowOptions.__annotations__} <= {"description", "on_error", *SPELLED}
    with pytest.raises(TypeError, match="no option 'retires'"):
        App().job(retires=3)


OF_ANY_TYPE = (5, "x", None, [], {}, [5], {"x": 5})


def refusal(kind: str, options: dict) -> str:
    """Return the refusal of options of a job or a workflow; None if the server decides."""
    app = App()
    leaf = app.job("leaf")(lambda: None)
    try:
        getattr(app, kind)(**{"name": "root", **options})(lambda x=None: [leaf()])
    except (TypeError, BadInput) as refused:
        return str(refused)
    return ""


@pytest.mark.parametrize("name", [*SPELLED, "name", "description", "process_limits"])
@pytest.mark.parametrize("kind", ["job", "workflow"])
def test_a_value_of_another_type_is_refused_by_the_name_of_its_option_or_left_to_the_server(kind, name):
    spoken = f"the name of a {kind}" if name == "name" else f"the option {name!r} of @app.{kind}"
    said = [refusal(kind, {name: value}) for value in OF_ANY_TYPE if (kind, name) != ("workflow", "process_limits")]
    assert [one for one in said if one and spoken not in one] == []


@pytest.mark.parametrize("name", ["triggers", "limits", "prefers", "dependencies", "needs", "secrets", "retry"])
def test_a_text_is_not_read_as_a_list_of_letters(name):
    with pytest.raises(TypeError, match=f"the option '{name}' of @app.job takes a list of .*, not 'gpu'"):
        App().job(**{name: "gpu"})


@pytest.mark.parametrize("rules", [5, [5]])
def test_a_wrong_rule_about_failures_is_named(rules):
    with pytest.raises(TypeError, match=r"the option 'retry' of @app.job takes .*rules.*, not 5"):
        App().job(retry={"retry_on": rules})
