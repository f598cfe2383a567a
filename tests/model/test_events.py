"""Events: their validation, filters and params, and the outcome of each event."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.env import SECOND
from horae.errors import BadInput, TooLarge
from horae.features.events.model.read import read_event
from horae.model.expressions.template import TemplateError
from horae.model.triggers.calendars.compiled import Calendar
from horae.model.triggers.calendars.read import parse_times
from horae.model.triggers.calendars.resolve import current_calendar
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.events.decide import Listening, decide_event
from horae.model.triggers.events.filters import check_params, compile_filter, fill_params
from horae.model.triggers.events.values import MOST_PAYLOAD, NewEvent, event_scope

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


def scope(payload, name="upload"):
    event = NewEvent(name=name, payload=msgspec.json.encode(payload))
    return {"event": event_scope(event, "e1", 1_000_000)}


def test_an_event_is_a_name_a_payload_and_an_id():
    event = read_event({"name": "orders/paid:v1", "payload": {"n": 1}, "id": "evt_1"})

    assert (event.name, event.payload, event.id, event.id_scope) == (
        "orders/paid:v1", b'{"n":1}', "evt_1", "event:orders/paid:v1",
    )  # fmt: skip
    assert read_event({"name": "ping"}).payload == b"null"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ([], "body"),
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": "a b"}, "name"),
        ({"name": 7}, "name"),
        ({"name": "a", "id": ""}, "id"),
        ({"name": "a", "id": "x" * 257}, "id"),
        ({"name": "a", "payloda": {}}, "payloda"),
    ],
)
def test_an_invalid_event_is_refused_with_its_field(body, field):
    with pytest.raises(BadInput) as refused:
        read_event(body)

    assert refused.value.fields["field"] == field
    assert refused.value.remedy


def test_a_payload_has_a_bound():
    with pytest.raises(TooLarge, match="payload has"):
        read_event({"name": "a", "payload": "x" * MOST_PAYLOAD})


@pytest.mark.parametrize(
    ("filter", "payload", "refusal"),
    [
        ("${event.payload.size > 10}", {"size": 11}, None),
        ("${event.payload.size > 10}", {"size": 10}, "the filter is false"),
        ("${event.payload.size > 10}", {}, "there is no 'size'"),
        ("${event.payload.size > 10}", None, "could not be computed"),
        ("${event.payload.size > 10}", {"size": "large"}, "could not be computed"),
        ("${event.payload.size}", {"size": 3}, "gave '3', not true or false"),
        ("${event.payload.key.endsWith('.csv') && event.name == 'upload'}", {"key": "a.csv"}, None),
        ("${event.payload.tags.exists(t, t == 'x')}", {"tags": ["y", "x"]}, None),
        ("${has(event.payload.size) && event.payload.size > 1}", {}, "the filter is false"),
    ],
)
def test_a_filter_lets_an_event_pass_or_says_why_not(filter, payload, refusal):
    told = compile_filter(filter).refusal(scope(payload))

    assert told == refusal if refusal is None else refusal in told


@pytest.mark.parametrize(
    "filter",
    [
        "event.payload.size > 10",
        "${event.payload.size > }",
        "${params.day == 'x'}",
        "x-${event.name}",
        "${true} ${true}",
        "",
        "${[1, 2, 3, 4, 5, 6, 7, 8, 9]" + ".map(x, [x] + [x])" * 3 + ".all(x, event.name.matches('('))}",
        "${'" + "x" * 5000 + "' == 'x'}",
    ],
)
def test_an_invalid_or_expensive_filter_is_refused(filter):
    with pytest.raises(BadInput) as refused:
        compile_filter(filter, "triggers[0].filter")

    assert refused.value.fields["field"] == "triggers[0].filter"


def test_quoted_brackets_do_not_count_as_list_loops():
    assert compile_filter("${event.name != '.all(x, .all(y, '}").refusal(scope({})) is None


def test_a_filter_over_budget_does_not_pass_and_reports_it():
    large = {"xs": list(range(20_000))}

    assert "takes more than" in compile_filter("${event.payload.xs.all(x, x >= 0)}").refusal(scope(large))
    assert compile_filter("${event.payload.xs[3] == 3}").refusal(scope(large)) is None
    assert compile_filter("${event.payload.xs.all(x, x >= 0)}").refusal(scope({"xs": list(range(1000))})) is None


@given(JSON)
def test_a_filter_passes_or_gives_a_reason_for_any_payload(payload):
    for filter in (
        "${event.payload.size > 10}",
        "${event.payload.exists(x, x == 1)}",
        "${event.payload == event.name}",
    ):
        told = compile_filter(filter).refusal(scope(payload))
        assert told is None or told


def test_params_are_filled_from_the_event():
    params = {"path": "in/${event.payload.key}", "size": "${event.payload.size}", "fixed": [1, "${event.id}"]}
    check_params(params)

    item = fill_params(params, scope({"key": "a.csv", "size": 3}))

    assert msgspec.json.decode(item) == {"path": "in/a.csv", "size": 3, "fixed": [1, "e1"]}
    assert fill_params({}, scope({})) == b"{}"


def test_params_that_cannot_be_rendered_give_the_reason():
    with pytest.raises(TemplateError, match="no 'key'"):
        fill_params({"path": "${event.payload.key}"}, scope({}))


@pytest.mark.parametrize("text", ["${params.day}", "${event.payload.a.sort()}", "${event."])
def test_params_that_can_never_be_rendered_are_refused(text):
    with pytest.raises(BadInput) as refused:
        check_params({"deep": [text]}, "triggers[0].params")

    assert refused.value.fields["field"] == "triggers[0].params.deep[0]"


@pytest.mark.parametrize(
    ("listening", "disposition", "cause"),
    [
        (Listening(rules=Rules()), "fired", "came"),
        (Listening(rules=Rules(), paused="job"), "skipped-paused", "the job is paused"),
        (Listening(rules=Rules(start_at=20 * SECOND)), "skipped-bounds", "startAt"),
        (Listening(rules=Rules(end_at=10 * SECOND)), "skipped-bounds", "endAt"),
        (Listening(rules=Rules(start_at=10 * SECOND, end_at=11 * SECOND)), "fired", "came"),
        (Listening(rules=Rules(max_fires=2), fired=2), "skipped-bounds", "maxFires is 2"),
        (Listening(rules=Rules(max_fires=2), fired=1), "fired", "came"),
        (Listening(rules=Rules(overlap="skip"), busy=True), "skipped-overlap", "had not ended"),
        (Listening(rules=Rules(overlap="allow"), busy=True), "fired", "came"),
        (Listening(rules=Rules(), filter="${event.payload.n == 2}"), "skipped-filter", "false"),
        (Listening(rules=Rules(), filter="${event.payload.n == 1}"), "fired", "came"),
    ],
)
def test_every_event_fires_or_is_skipped_for_a_cause(listening, disposition, cause):
    verdict = decide_event(listening, scope({"n": 1}), 10 * SECOND)

    assert verdict.disposition == disposition
    assert cause in verdict.cause


def calendar(**definition) -> Calendar:
    return current_calendar("work", {"work": parse_times(definition)})


DAY = 86_400 * SECOND
NINE = 9 * 3600 * SECOND  # on the first day of 1970, a Thursday


@pytest.mark.parametrize(
    ("outside", "hours", "told", "due"),
    [
        ("skip", "00:00-24:00", "fired", None),
        ("skip", "09:00-10:00", "skipped-calendar", None),
        ("postpone", "00:00-24:00", "fired", None),
        ("postpone", "09:00-10:00", "moved", NINE),
    ],
)
def test_a_closed_calendar_skips_an_event_or_moves_it_to_the_next_opening(outside, hours, told, due):
    rules = Rules(overlap="allow", calendars=("work",), outside=outside)

    verdict = decide_event(Listening(rules=rules, calendar=calendar(hours=hours)), scope({}), SECOND)

    assert (verdict.disposition, verdict.due) == (told, due)
    assert told == "fired" or 'calendar "work" was closed' in verdict.cause


def test_a_calendar_that_does_not_open_again_moves_nothing():
    rules = Rules(overlap="allow", calendars=("work",), outside="postpone")

    verdict = decide_event(Listening(rules=rules, calendar=calendar(dates=["1970-01-01"])), scope({}), 2 * DAY)

    assert (verdict.disposition, verdict.cause) == (
        "skipped-calendar", 'calendar "work" was closed and does not open again',
    )  # fmt: skip


def test_a_moved_event_follows_the_overlap_policy():
    rules = Rules(overlap="skip", calendars=("work",), outside="postpone")
    listening = Listening(rules=rules, calendar=calendar(hours="09:00-10:00"), busy=True)

    assert decide_event(listening, scope({}), SECOND).disposition == "skipped-overlap"
