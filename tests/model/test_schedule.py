"""The `schedule` field: parsed, formatted and described."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.errors import BadInput
from horae.model.base.duration import HOUR, MINUTE
from horae.model.base.instant import format_instant, parse_instant
from horae.model.definitions.reading.schedule import parse_when
from horae.model.triggers.decisions.named_trigger import NAMED_TRIGGER
from horae.model.triggers.decisions.rules import RULES
from horae.model.triggers.decisions.schedule import FIELDS, KINDS, TABLES, render_schedule
from horae.model.triggers.decisions.values import TRIGGERS, Cron, Interval, Once, next_fire

NOW = parse_instant("2026-11-15T08:00:00Z")
LATER = parse_instant("2026-11-16T09:30:00Z")


def read(value):
    return parse_when(value, key="default/backup", created_at=NOW).trigger


@pytest.mark.parametrize(
    ("value", "trigger"),
    [
        ("0 0 * * *", Cron(expression="0 0 * * *")),
        ("  0  0 * * * ", Cron(expression="0 0 * * *")),
        ("@daily", Cron(expression="@daily")),
        ("H 2 * * *", Cron(expression="H 2 * * *", key="default/backup")),
        ("0 9 * MAR THU", Cron(expression="0 9 * MAR THU")),
        ("@every 5m", Interval(every=5 * MINUTE, since=NOW)),
        ({"every": "5m"}, Interval(every=5 * MINUTE, since=NOW)),
        ({"every": 90}, Interval(every=90_000_000, since=NOW)),
        ({"every": "PT1H", "anchor": "2026-11-16T09:30:00Z"}, Interval(every=HOUR, anchor=LATER, since=NOW)),
        ({"at": "2026-11-16T10:30:00+01:00"}, Once(at=LATER)),
        ({"cron": "0 9 * * *", "timezone": "Europe/Paris"}, Cron(expression="0 9 * * *", timezone="Europe/Paris")),
        (
            {
                "cron": "30 2 * * *",
                "timezone": "Europe/Paris",
                "dialect": "unix",
                "dstGap": "skip",
                "dstOverlap": "both",
            },
            Cron(expression="30 2 * * *", timezone="Europe/Paris", dst_gap="skip", dst_overlap="both"),
        ),
    ],
)
def test_a_schedule_is_read(value, trigger):
    assert read(value) == trigger


@pytest.mark.parametrize(
    "value",
    [
        "0 9 * * MON-FRI",
        "@hourly",
        "H H * * *",
        {"every": "1h30m"},
        {"every": "7d", "anchor": "2026-11-16T09:30:00Z"},
        {"at": "2026-11-16T09:30:00Z"},
        {"cron": "0 9 * * *", "timezone": "Europe/Paris"},
        {"cron": "0 0 9 ? * 2#1 2027-2030", "dialect": "quartz"},
        {"cron": "30 2 * * *", "timezone": "Europe/Paris", "dstGap": "skip", "dstOverlap": "second"},
    ],
)
def test_a_schedule_is_shown_as_it_was_written(value):
    assert render_schedule(read(value)) == value
    assert read(render_schedule(read(value))) == read(value)


@pytest.mark.parametrize(
    ("value", "detail", "remedy"),
    [
        ("nonsense", "1 field", '{"every": "5m"}'),
        ("@every", "empty", "5m"),
        ("@every never", "not a length", "5m"),
        (5, "text or an object", "cron expression"),
        (None, "text or an object", "cron expression"),
        ([], "text or an object", "cron expression"),
        ({}, "needs cron, every, at, event, webhook or watch", "cron expression"),
        ({"evry": "5m"}, "no field 'evry'", 'Did you mean "every"?'),
        ({"cron": "0 9 * * *", "timezon": "UTC"}, "no field 'timezon'", 'Did you mean "timezone"?'),
        ({"cron": "0 9 * * *", "anchor": "x"}, "no field 'anchor'", "The fields are: cron, timezone"),
        ({"zzz": 1}, "no field 'zzz'", "at, event, filter, webhook, watch, interval, existing, settle, startAt, endAt"),
        ({"every": "5m", "zzz": 1}, "no field 'zzz'", "The fields are: every, anchor"),
        ({"every": "5m", "at": "2026-11-16T09:30:00Z"}, "one of every and at", "cron expression"),
        ({"every": "1ms"}, "at least 100ms", "5m"),
        ({"every": "0s"}, "at least 100ms", "5m"),
        ({"every": None}, "not a length", "5m"),
        ({"every": "5m", "anchor": 5}, "RFC 3339", "2026"),
        ({"at": "2026-11-16T09:30:00"}, "does not say its offset", "Z"),
        ({"at": "2026-11-15T07:00:00Z"}, "has passed", "trigger the job"),
        ({"at": None}, "RFC 3339", "2026"),
        ({"cron": 5}, "is a number, not a text", "cron expression"),
        ({"cron": "0 9 * * *", "timezone": None}, "is null, not a text", "quotes"),
        ({"cron": "0 9 * * *", "timezone": "Paris"}, "no time zone named 'Paris'", "Europe/Paris"),
        ({"cron": "0 9 * * *", "dialect": "vixie"}, "dialect cannot be 'vixie'", "unix"),
        ({"cron": "0 9 * * *", "dialect": "quartz"}, "5 fields", "remove the field `dialect`"),
        ({"cron": "0 0 9 * * ? 2025", "dialect": "quartz"}, "has passed", "later year"),
        ({"cron": "0 0 9 * * ? 2027"}, "7 fields", '"dialect": "quartz"'),
        ({"cron": "0 9 * * *", "dstGap": "first"}, "dstGap cannot be", "shift, skip"),
        ({"cron": "@every 5m", "timezone": "UTC"}, "no field 'timezone'", "cron"),
        ({1: 2}, "no field '1'", "cron"),
    ],
)
def test_a_wrong_schedule_is_refused_with_the_reason_and_a_remedy(value, detail, remedy):
    with pytest.raises(BadInput) as refused:
        read(value)

    assert detail in refused.value.detail
    assert remedy in refused.value.remedy
    assert refused.value.fields["field"]


def test_an_instant_just_past_is_accepted():
    at = NOW - 30 * 1_000_000

    assert read({"at": format_instant(at)}) == Once(at=at)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"every": "5m"}, "every 5m"),
        ({"at": "2026-11-16T09:30:00Z"}, "once at 2026-11-16T09:30:00Z"),
        ("0 0 * * *", "at 00:00 every day, UTC time"),
        ("@hourly", "every hour at :00, UTC time"),
        ("* * * * *", "every minute, UTC time"),
        ("*/15 * * * *", "every 15 minutes, UTC time"),
        ("* * * * * *", "every second, UTC time"),
        ("0,30 9 * * MON-FRI", "at 09:00 and 09:30 from Monday to Friday, UTC time"),
        ("0 9 * * 1,3", "at 09:00 on Monday and Wednesday, UTC time"),
        ("0 9 1 * *", "at 09:00 on day 1 of the month, UTC time"),
        ("0 9 L 2 *", "at 09:00 on the last day of the month in February, UTC time"),
        ("H H * * *", "at 05:49 every day, UTC time"),
        ({"cron": "0 9 * * *", "timezone": "Europe/Paris"}, "at 09:00 every day, Europe/Paris time"),
        ("*/7 3 * * *", "every 7 minutes between 03:00 and 03:59, UTC time"),
        ("0 0 * * 5#2", "at 00:00 on the second Friday of the month, UTC time"),
        (
            {"cron": "0 0 9 1 1 ? 2027", "dialect": "quartz"},
            "at 09:00 on day 1 of the month in January in 2027, UTC time",
        ),
        ("1,2,5,9,20,30,40,44 * * * *", 'cron "1,2,5,9,20,30,40,44 * * * *", UTC time'),
    ],
)
def test_a_trigger_in_plain_english(value, sentence):
    assert read(value).words == sentence


FIELD = st.sampled_from(["*", "?", "0", "1", "5", "*/2", "*/7", "1-3", "1,2", "MON", "L", "5L", "1#2", "H", "15W", "x"])


@given(st.lists(FIELD, min_size=5, max_size=6).map(" ".join))
def test_an_accepted_schedule_can_be_described_shown_and_fired(text):
    try:
        trigger = read(text)
    except BadInput:
        return
    assert trigger.words
    assert read(render_schedule(trigger)) == trigger
    assert next_fire(trigger, NOW) > NOW


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.dictionaries(
            st.sampled_from(["cron", "every", "at", "anchor", "timezone", "dstGap", "x"]), inner
        ),
    )
)
def test_any_json_is_read_or_refused(value):
    with suppress(BadInput):
        next_fire(read(value), NOW)


def test_every_kind_of_trigger_has_one_identifying_field_and_one_name() -> None:
    told = {kind.struct for kind in KINDS.values()}
    assert told == set(TRIGGERS)
    assert len({kind.name for kind in KINDS.values()}) == len(KINDS)


def test_shared_fields_of_trigger_kinds_are_declared_alike() -> None:
    rows = [row for table in (*TABLES.values(), RULES, NAMED_TRIGGER) for row in table.rows]
    for row in rows:
        assert (row.field.help, row.kind.python) == (FIELDS[row.name].field.help, FIELDS[row.name].kind.python)
