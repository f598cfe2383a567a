"""No expression takes much time or memory, for any text and any data."""

import gc
import time
import tracemalloc
from functools import partial

import pytest

from horae.errors import BadInput, Costly
from horae.model.base.key_templates import fill
from horae.model.definitions.reading.read import parse_definition
from horae.model.executions.signal_waits import Signal, compile_signal_filter, first_signal_for
from horae.model.expressions.meter import Meter, definition_budget, shared_budget
from horae.model.expressions.template import (
    TemplateError,
    TooCostly,
    compile_template,
    compile_tree,
    render,
    render_tree,
    rendered_item,
)
from horae.model.triggers.decisions.params import fill_fire_params
from horae.model.triggers.events.filters import compile_filter, fill_params
from tests.model.expression_attacks import DATA, LITERAL, LITERALS, OVER_DATA, nested

MOST_SECONDS = (
    0.5  # of processor time: six times what the slowest expression takes, and far less than any of them asks for
)
MOST_OF_MANY = 2.5  # for many expressions that share a budget, which may be ten times the budget of one
MOST_BYTES = 12_000_000
SCOPE = {"params": DATA, "event": {"payload": DATA}, "job": {"name": "j"}, "tags": {}}


class Bounded:
    """Measure the processor time of a block, without the garbage collector, whose time grows with the whole process."""

    def __init__(self, most=MOST_SECONDS):
        self._most = most

    def __enter__(self):
        gc.disable()
        self._began = time.process_time()
        return self

    def __exit__(self, *_):
        taken = time.process_time() - self._began
        gc.enable()
        assert taken < self._most


def peak_of(work):
    """Return the peak memory of a call. It is measured separately, since measuring memory multiplies the time."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def attempt(work):
    """Call a function that may refuse."""
    try:
        return work()
    except (BadInput, TemplateError) as error:
        return error


def definition(expression):
    """Return a workflow with one expression at each place where a definition compiles or computes one."""
    text = f"${{{expression}}}"
    step = {"name": "a", "command": "true"}
    places = [
        {"workflow": {"steps": [{**step, "when": text}]}},
        {"workflow": {"steps": [{**step, "params": {"x": text}}]}},
        {"workflow": {"steps": [step], "output": {"x": text}}},
        {"workflow": {"steps": [{**step, "foreach": {"items": text}}]}},
        {"command": ["echo", text]},
        {"command": "true", "sequence": text},
        {"command": "true", "unique": {"key": text}},
        {"command": "true", "limits": [{"key": text, "concurrency": 1}]},
        {"command": "true", "schedule": {"every": "1h", "params": {"x": text}}},
        {"http": {"url": "https://example.com/", "body": {"x": [text]}}},
    ]
    return [{"name": "hostile", **place} for place in places]


@pytest.mark.parametrize("name", [*LITERALS, *OVER_DATA])
def test_a_definition_is_parsed_in_bounded_time_for_any_expression(name):
    source = LITERALS.get(name) or OVER_DATA[name]
    for body in definition(source):
        with Bounded():
            attempt(partial(parse_definition, body, namespace_name="", created_at=0))


@pytest.mark.parametrize("name", LITERALS)
def test_a_constant_is_computed_or_refused_in_bounded_time_and_memory(name):
    source = LITERALS[name]

    def compute():
        attempt(lambda: render_tree(compile_tree(f"${{{source}}}"), SCOPE))

    with Bounded():
        compute()
    assert peak_of(compute) < MOST_BYTES


@pytest.mark.parametrize("name", OVER_DATA)
def test_an_expression_over_large_data_fails_in_bounded_time_and_memory_and_says_why(name):
    compiled = compile_tree(f"${{{OVER_DATA[name]}}}")
    with Bounded(), pytest.raises(TooCostly, match="takes more than 100000 steps"):
        render_tree(compiled, SCOPE)
    assert peak_of(lambda: attempt(lambda: render_tree(compiled, SCOPE))) < MOST_BYTES


def test_no_operator_recovers_from_an_exceeded_budget():
    for source in (f"{OVER_DATA['loops']} || true", f"{OVER_DATA['failures']} && false", nested("params.l", 3, "v9")):
        with pytest.raises((TooCostly, BadInput)):
            render_tree(compile_tree(f"${{{source}}}"), SCOPE)


def test_an_expression_with_too_costly_literals_is_refused_with_a_remedy():
    with pytest.raises(Costly, match="more than 100000 steps") as refused:
        compile_template(f"${{{nested(LITERAL, 6, 'params.x == v0')}}}", "sequence")

    assert refused.value.fields["field"] == "sequence"
    assert "do the work in the job" in refused.value.remedy


@pytest.mark.parametrize("name", OVER_DATA)
def test_expressions_computed_in_large_numbers_have_a_smaller_budget(name):
    source = OVER_DATA[name]
    with Bounded():
        attempt(lambda: fill(f"${{{source}}}", SCOPE, "sequence"))
        attempt(lambda: fill_params({"x": f"${{{source.replace('params', 'event.payload')}}}"}, SCOPE))
        attempt(lambda: fill_fire_params({"x": f"${{{source}}}"}, SCOPE))
        compile_filter(f"${{{source.replace('params', 'event.payload')}}}").refusal(SCOPE)
        compile_signal_filter(f"${{{source.replace('params', 'signal.payload')}}}").refusal(
            {"signal": {"payload": DATA}}
        )


def test_many_expressions_of_one_text_share_a_budget():
    costly = "${" + nested("params.l", 1, "params.l[v0] == v0") + "}"
    with Bounded(MOST_OF_MANY), pytest.raises(TooCostly):
        render(compile_template(costly * 1000), SCOPE)
    with Bounded(MOST_OF_MANY), pytest.raises(TooCostly, match="characters together"):
        render(compile_template("${params.s}" * 5000), SCOPE)


def test_many_expressions_of_one_tree_share_a_budget():
    for leaf in ("${params.s}", "${params}", "${params.d}", "a ${params.d}"):
        with Bounded(MOST_OF_MANY), pytest.raises(TooCostly):
            rendered_item(compile_tree({"x": [leaf] * 5000}), SCOPE)


def test_many_signals_and_many_items_share_a_budget():
    signals = [Signal(id=None, name="s", payload=b"[" + b"1," * 999 + b"1]") for _ in range(1000)]
    with Bounded(MOST_OF_MANY):
        assert (
            first_signal_for("${signal.payload.all(x, signal.payload[0] == x) && signal.name == 'y'}", signals) is None
        )
    with Bounded(MOST_OF_MANY), shared_budget(Meter()):
        for _ in range(10_000):
            attempt(lambda: fill(f"${{{OVER_DATA['loops']}}}", SCOPE, "sequence"))


def test_many_expressions_of_one_definition_share_a_budget():
    near = nested(LITERAL, 4, "true")
    steps = [{"name": f"s{i}", "command": "true", "when": f"${{{near}}}"} for i in range(500)]
    with Bounded(MOST_OF_MANY), pytest.raises(BadInput, match=r"takes more|take too much|too many and too long"):
        parse_definition({"name": "many", "workflow": {"steps": steps}}, namespace_name="", created_at=0)


def test_a_definition_of_nothing_but_expressions_is_refused_before_all_are_compiled():
    text = "${" + ",".join(["[1]"] * 1000).join("[]") + "}"

    def define():
        with definition_budget():
            for i in range(10_000):
                compile_template(f"{text} {i}")

    with pytest.raises(BadInput, match="too many and too long"):
        define()


def test_typical_expressions_stay_far_below_the_budget():
    rows = [{"id": i, "ok": i % 2 == 0, "name": f"row {i}"} for i in range(5000)]
    scope = {"params": {"rows": rows, "ids": list(range(100))}}
    for source in (
        "params.rows.filter(r, r.ok && r.id > 10).map(r, r.name)",
        "params.rows.exists(r, r.name == 'row 4999')",
        "params.ids.map(i, params.rows[i].name)",
        "size(params.rows.filter(r, r.name.endsWith('7'))) > 3",
    ):
        render_tree(compile_tree(f"${{{source}}}"), scope)
