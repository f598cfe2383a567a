"""`@app.workflow`: calls become steps, values become expressions, and operations that need a value now are refused."""

import re
from datetime import date, timedelta

import pytest

from horae import App, cron, step
from horae.client.workflows.expression import WorkflowExpression, rendered
from horae.client.workflows.workflow import STEP_OPTIONS
from horae.errors import BadInput
from horae.model.definitions.reading.read import parse_definition
from horae.model.workflows.decisions.values import Workflow

PARAMS = WorkflowExpression("params")


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (PARAMS["day"], "${params.day}"),
        (PARAMS["my-day"]["in"][0], '${params["my-day"]["in"][0]}'),
        (PARAMS["n"] > 3, "${params.n > 3}"),
        ((PARAMS["n"] > 3) & ~(PARAMS["s"] == 'a"b'), '${(params.n > 3) && !(params.s == "a\\"b")}'),
        ((PARAMS["a"] + 1) * PARAMS["b"], "${(params.a + 1) * params.b}"),
        ("x" + PARAMS["s"], '${"x" + params.s}'),
        (PARAMS["parts"].size() >= 2, "${size(params.parts) >= 2}"),
        (PARAMS["parts"].contains("x"), '${"x" in params.parts}'),
        (PARAMS["s"] == "caf\u00e9 \U0001f600", '${params.s == "caf\u00e9 \U0001f600"}'),
        (PARAMS["ok"] | (PARAMS["n"] != None), "${params.ok || (params.n != null)}"),  # noqa: E711
    ],
)
def test_operations_on_a_value_become_an_expression(expression: WorkflowExpression, text: str):
    assert str(expression) == text
    assert rendered([{"a": (expression, 1)}]) == [{"a": [text, 1]}]


def test_a_value_in_a_text_is_filled_in_later():
    assert f"{PARAMS['n']} rows" == "${params.n} rows"


@pytest.mark.parametrize(
    ("use", "word"),
    [
        (lambda: bool(PARAMS["n"] > 1), "when="),
        (lambda: list(PARAMS["n"]), "map"),
        (lambda: len(PARAMS["n"]), "size"),
        (lambda: f"{PARAMS['n']:.2f}", "formatted"),
        (lambda: PARAMS["n"] == object(), "compared"),
    ],
)
def test_operations_that_need_the_value_now_are_refused_with_an_alternative(use, word: str):
    with pytest.raises(TypeError, match=word):
        use()


def made() -> App:
    app = App()

    @app.job
    def extract(day: date) -> dict:
        return {}

    @app.job
    def transform(part: int, factor: int = 1) -> int:
        return part * factor

    @app.job(name="load.rows")
    def load(rows: int, parts: list[int]) -> None: ...

    @app.job
    def remove(rows: int) -> None: ...

    return app


def task(workflow) -> Workflow:
    """Return the workflow as a server reads it."""
    read = parse_definition(workflow.definition(), namespace_name="default", created_at=10**15).spec.task
    assert isinstance(read, Workflow)
    return read


def test_calls_become_steps_that_a_server_understands():
    app = made()
    extract, transform, load, remove = app.jobs.values()

    @app.workflow(schedule=cron("0 2 * * *"), timeout=timedelta(hours=2), on_error="finish")
    def etl(day: date = date(2026, 11, 15)):
        """Every night."""
        raw = extract(day)
        parts = transform.map(raw["parts"], factor=2, concurrency=10, tolerate="5%")
        done = load.step(retries=3, when=raw["rows"] > 0, undo=lambda it: remove(it["rows"]))(raw["rows"], parts)
        [raw, done] >> step.sleep("5m") >> [extract(day), remove(1)]
        return {"rows": raw["rows"]}

    document = etl.definition()
    assert document["description"] == "Every night."
    assert document["params"] == {"day": "2026-11-15"}
    assert document["schema"]["properties"]["day"]["format"] == "date"
    assert document["timeout"] == 7200.0
    read = task(etl)
    steps = {one.name: one for one in read.steps}
    assert list(steps) == ["extract", "transform", "load_rows", "sleep", "extract_2", "remove"]
    assert steps["sleep"].after == ("extract", "load_rows")
    assert steps["extract_2"].after == steps["remove"].after == ("sleep",)
    assert steps["load_rows"].own["retries"] == 3
    assert steps["load_rows"].undo.params == {"rows": "${steps.load_rows.result.rows}"}
    assert (steps["transform"].foreach.concurrency, steps["transform"].foreach.tolerate_percent) == (10, 5)
    assert read.on_error == "finish"
    assert read.output == {"rows": "${steps.extract.result.rows}"}
    assert [one["name"] for one in app.definitions()] == ["extract", "transform", "load.rows", "remove", "etl"]


def test_the_undo_of_a_mapped_step_gets_one_item():
    app = made()
    transform, remove = app.jobs["transform"], app.jobs["remove"]

    @app.workflow(name="fan")
    def fan() -> None:
        transform.step(undo=lambda one: remove(one["rows"])).map([1, 2])

    (each,) = task(fan).steps
    assert each.undo.params == {"rows": "${steps.transform.result[index].rows}"}


def test_waits_branches_loops_and_handlers():
    app = made()
    transform, remove = app.jobs["transform"], app.jobs["remove"]

    @app.workflow
    def order(total: int):
        poll = transform.step(until=lambda it: it > 3, every="10s", max_runs=5, name="poll")(1)
        ask = step.approval(roles=["operator"], message=f"{total} to ship", timeout="2d", remind="4h", name="ask")
        ship = step.command(["ship", "${params.total}"], params={"total": total}, name="ship")
        step.switch((total > 1000, ask), default=[ship], after=poll, name="choose")
        paid = step.event("paid", filter=step.event_value["payload"]["total"] == total, timeout="1d", name="paid")
        ship >> paid >> step.signal("go", on_timeout="skip", timeout="1h") >> step.callback(timeout="1h")
        step.job("elsewhere", {"n": poll}, join="always", after=[paid])

    @order.on_failure
    def bad(error, poll):
        remove.step(when=poll.state == "success")(poll)
        step.http("https://example.com", params={"text": error["message"]})

    @order.finally_
    def last():
        remove(1)

    read = task(order)
    kinds = {one.name: type(one.wait).__name__ for one in read.steps if one.wait is not None}
    assert kinds == {"ask": "Approval", "paid": "EventWait", "signal": "SignalWait", "callback": "Callback"}
    steps = {one.name: one for one in read.steps}
    assert (steps["poll"].loop.until, steps["poll"].loop.max_runs) == (True, 5)
    assert [one.name for one in read.on_failure] == ["remove", "http"]
    assert [one.name for one in read.last] == ["remove_2"]


def test_steps_can_read_the_workflow_s_execution():
    app = made()
    extract, transform, _load, _remove = app.jobs.values()

    @app.workflow
    def daily():
        extract(step.execution["interval"]["start"])
        transform.map([1, 2], factor=step.index + 1)

    first, second = task(daily).steps
    assert first.params == {"day": "${execution.interval.start}"}
    assert second.params == {"part": "${item}", "factor": "${index + 1}"}


def test_a_workflow_is_a_step_of_another():
    app = made()
    remove = app.jobs["remove"]

    @app.workflow
    def inner(rows: int):
        remove(rows)

    @app.workflow
    def outer():
        inner.map([1, 2, 3]) >> inner(4)

    assert [(one.name, one.job) for one in task(outer).steps] == [("inner", "inner"), ("inner_2", "inner")]
    with pytest.raises(TypeError, match="submit"):
        inner(1)


def test_outside_a_workflow_calls_run_here_and_steps_are_refused():
    app = made()
    assert app.jobs["transform"](2, 3) == 6
    with pytest.raises(RuntimeError, match=r"@app\.workflow"):
        step.sleep("1s")


def test_mistakes_are_reported_at_their_place():
    app = made()
    extract, transform, _load, _remove = app.jobs.values()
    with pytest.raises(BadInput, match="no steps"):
        app.workflow(name="nothing")(lambda: None)
    with pytest.raises(TypeError, match="needs 'day'"):
        app.workflow(name="a")(lambda: [extract()])
    with pytest.raises(TypeError, match="does not accept 'dya'"):
        app.workflow(name="b")(lambda: extract(dya=1))
    for call in (lambda: extract("2026-11-15", priority=9), lambda: transform.map([1, 2], priority=9)):
        with pytest.raises(TypeError, match=r"\.step\(priority=\.\.\.\)"):
            app.workflow(name="e")(call)
    with pytest.raises(BadInput, match="two steps"):
        app.workflow(name="c")(lambda: [transform.step(name="x")(1), transform.step(name="x")(2)])
    with pytest.raises(TypeError, match="one job"):
        app.workflow(name="d")(lambda: transform.step(undo=lambda it: None)(1))
    with pytest.raises(BadInput, match="already"):
        app.workflow(name="extract")(lambda: transform(1))

    @app.workflow
    def good():
        transform(1)

    with pytest.raises(TypeError, match="has an unknown parameter 'mistake'"):
        good.on_failure(lambda mistake: None)
    good.on_failure(lambda: extract("2026-11-15"))
    with pytest.raises(BadInput, match="has two functions for on_failure"):
        good.on_failure(lambda: extract("2026-11-16"))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda job: job.map([1], 2, 3), "takes 1 params by position after the items, not 2"),
        (lambda job: job.map([1], 2, factor=3), "got 'factor' twice"),
        (lambda job: job.step(timeout_="5m")(1), "has no option 'timeout_': did you mean 'timeout"),
        (lambda job: job.step(whlie_="x")(1), "did you mean 'while_'"),
    ],
)
def test_wrong_arguments_of_a_step_are_refused(call, said):
    job = made().jobs["transform"]
    with pytest.raises(TypeError, match=re.escape(said)):
        App().workflow(name="wrong")(lambda: call(job))


def test_an_option_of_a_step_that_is_none_has_no_effect():
    job = made().jobs["transform"]

    @App().workflow
    def plain():
        job.step(after=None, params=None, while_=None, retries=None)(1)

    (only,) = plain.definition()["workflow"]["steps"]
    assert only == {"name": "transform", "job": "transform", "params": {"part": 1}}


def test_a_workflow_takes_the_options_of_a_job_in_the_same_forms():
    app = made()

    @app.workflow(retry={"give_up_on": [ValueError], "delay": timedelta(seconds=5)}, dependencies=[app.jobs["extract"]])
    def careful():
        app.jobs["remove"](1)

    document = careful.definition()
    assert document["retry"] == {"giveUpOn": ["ValueError"], "delay": 5.0}
    assert document["dependencies"] == ["extract"]


OF_ANY_TYPE = (5, "x", None, [], {}, [5], {"x": 5})
STEPS = "takes a step or a list of steps"


def refusals(call) -> list[str]:
    """Calls with values of any type, each in its own workflow."""
    said = []
    for value in OF_ANY_TYPE:
        try:
            made().workflow(name="tried")(lambda: call(value))  # noqa: B023 - it is called at once
        except (TypeError, BadInput) as refused:
            said.append(str(refused))
    return said


@pytest.mark.parametrize("name", STEP_OPTIONS)
def test_a_wrong_value_of_a_step_is_refused_with_its_option_or_by_the_server(name: str):
    said = refusals(lambda value: step.command("ls", **{name: value}))
    assert [one for one in said if f"the option {name!r} of step.command(...)" not in one] == []


@pytest.mark.parametrize(
    ("call", "spoken", "count"),
    [
        (step.job, "step.job(...) takes the name of a job", 6),
        (step.command, "step.command(...) takes a text, a list of arguments or a mapping", 2),
        (step.http, "step.http(...) takes a URL or a mapping", 4),
        (step.sleep, "step.sleep(...): ", 5),
        (lambda roles: step.approval(roles=roles), "the option 'roles' of step.approval(...) takes a list of roles", 4),
        (lambda span: step.approval(remind=span), "the option 'remind' of step.approval(...): ", 5),
        (lambda span: step.signal("go", timeout=span), "the option 'timeout' of step.signal(...): ", 5),
        (step.switch, "step.switch(...) takes pairs of a condition and steps", 7),
        (lambda steps: step.switch(("true", steps)), f"step.switch(...) {STEPS}", 6),
        (lambda steps: step.switch(default=steps), f"the option 'default' of step.switch(...) {STEPS}", 6),
        (lambda steps: step.sleep("1s") >> steps, f">> {STEPS}", 6),
        (lambda steps: steps >> step.sleep("1s"), f">> {STEPS}", 6),
    ],
)
def test_a_call_that_creates_a_step_names_its_parameters(call, spoken: str, count: int):
    said = [one for one in refusals(call) if "or until=" not in one]
    assert [one for one in said if not one.startswith(spoken)] == []
    assert len(said) == count
