"""Alert rules and channels: their validation, their decisions about findings, and the content of notices."""

from uuid import UUID

import pytest

from horae.env import SECOND
from horae.errors import BadInput
from horae.features.alerts.model.changes import MOST_OPEN, EndedAlert, OpenAlert, decide_changes
from horae.features.alerts.model.channel import fill_secrets, private_part, read_channel, redacted
from horae.features.alerts.model.findings import (
    ExpectedRun,
    JobOutcomes,
    RuleFinding,
    is_too_long,
    literal_prefix,
    low_success,
    many_retries,
)
from horae.features.alerts.model.notification import encode_content, read_content, summarize, text_of, title_of
from horae.features.alerts.model.rule import RULE as RULES
from horae.features.alerts.model.rule import Lag
from horae.model.admission.rate import Rate
from horae.model.base.duration import HOUR, MINUTE

NOW = 1_000_000 * MINUTE
RULE = Lag(after=MINUTE, channels=("ops",))


def found(*subjects: str) -> list[RuleFinding]:
    return [RuleFinding(subject=subject, message="late") for subject in subjects]


def opened(subject: str, number: int = 1, **more) -> OpenAlert:
    return OpenAlert(**{"id": UUID(int=number), "subject": subject, "last_at": NOW, "notified_at": NOW, **more})


@pytest.mark.parametrize("kind", RULES.tables)
def test_rules_of_every_kind_are_read_and_written_alike(kind):
    rule = RULES.read({"kind": kind, "channels": "ops", "repeatEvery": "4h", "maxNotices": "5/1h"})
    assert (rule.channels, rule.repeat_every, rule.at_most) == (("ops",), 4 * HOUR, Rate(5, HOUR, 5))
    assert RULES.read(RULES.write(rule)) == rule


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "kind"),
        ({"kind": "lags"}, "kind"),
        ({"kind": "lag", "count": 3}, "count"),
        ({"kind": "lag", "queues": ["a"]}, "queues"),
        ({"kind": "lag", "jobs": []}, "jobs"),
        ({"kind": "lag", "jobs": ["a b"]}, "jobs[0]"),
        ({"kind": "lag", "after": "2d"}, "after"),
        ({"kind": "lag", "recovery": "no"}, "recovery"),
        ({"kind": "lag", "maxNotices": "20/1s"}, "maxNotices"),
        ({"kind": "lag", "repeatEvery": "1s"}, "repeatEvery"),
        ({"kind": "success-rate", "below": 0.9}, "below"),
        ({"kind": "success-rate", "below": "101%"}, "below"),
        ({"kind": "overlong", "times": 1}, "times"),
    ],
)
def test_an_invalid_rule_is_refused_with_its_field(body, field):
    with pytest.raises(BadInput) as refused:
        RULES.read(body)
    assert refused.value.fields["field"] == field
    assert refused.value.remedy


def test_patterns_match_names():
    rule = RULES.read({"kind": "lag", "jobs": ["etl-*", "report"]})
    assert [rule.covers(name) for name in ("etl-1", "report", "reports", "other")] == [True, True, False, False]
    assert literal_prefix(["etl-*", "etl-b?"]) == "etl-"
    assert literal_prefix(["*"]) == literal_prefix([]) == literal_prefix(["a", "b"]) == ""
    assert literal_prefix(["report"]) == "report"


def test_rates_need_a_minimum_of_executions():
    rule = RULES.read({"kind": "success-rate", "below": "90%", "minimum": 10})
    assert low_success(rule, JobOutcomes(9, 1)) is None
    assert low_success(rule, JobOutcomes(0, 9)) is None
    assert low_success(rule, JobOutcomes(17, 3)) == "3 of 20 executions failed; 85% succeeded"
    retries = RULES.read({"kind": "retry-rate", "above": "50%", "minimum": 2})
    assert many_retries(retries, JobOutcomes(2, 0, 1)) is None
    assert many_retries(retries, JobOutcomes(1, 1, 3)) == "3 retries of 2 executions (150%)"


def test_overlong_executions_are_measured_against_the_usual_duration():
    rule = RULES.read({"kind": "overlong", "times": 3, "minDuration": "1m"})
    assert not is_too_long(rule, 30 * SECOND, SECOND)
    assert not is_too_long(rule, 3 * MINUTE, MINUTE)
    assert is_too_long(rule, 3 * MINUTE + 1, MINUTE)


def test_a_deadline_is_at_risk_before_it_is_missed():
    waits = ExpectedRun(deadline=NOW + 10 * MINUTE, begins_at=NOW, lasts=11 * MINUTE)
    assert waits.overrun(0, NOW) == MINUTE
    runs = ExpectedRun(deadline=NOW + 10 * MINUTE, begins_at=NOW - 5 * MINUTE, lasts=11 * MINUTE)
    assert runs.overrun(0, NOW) is None
    assert runs.overrun(5 * MINUTE, NOW) == MINUTE
    overdue = ExpectedRun(deadline=NOW + MINUTE, begins_at=NOW - HOUR, lasts=MINUTE)  # longer than ever, not yet late
    assert overdue.overrun(0, NOW) is None


def test_one_alert_is_open_per_subject_and_notified_once():
    first = decide_changes(RULE, [*found("a", "b"), RuleFinding(subject="a", message="again")], [], 0, NOW)
    assert [(f.subject, f.message, told) for f, told in first.opened] == [("a", "late", True), ("b", "late", True)]
    second = decide_changes(RULE, found("a", "b"), [opened("a"), opened("b", 2)], first.pace, NOW + SECOND)
    assert not second
    third = decide_changes(RULE, found("a"), [opened("a"), opened("b", 2)], first.pace, NOW + MINUTE)
    assert [alert.subject for alert, _ in third.refreshed] == ["a"]
    assert [(one.alert.subject, one.notified, one.forgotten) for one in third.ended] == [("b", True, "")]


def test_a_forgotten_alert_ends_without_a_recovery():
    gone = RuleFinding(subject="b", message="it is lost", forgotten=True)
    over = decide_changes(RULE, [*found("a"), gone], [opened("a"), opened("b", 2)], 0, NOW)
    assert [(one.alert.subject, one.forgotten) for one in over.ended] == [("b", "it is lost")]
    assert not decide_changes(RULE, [gone], [], 0, NOW), "nor does it begin"


def test_an_alert_of_a_rule_without_channels_counts_as_not_notified():
    silent, usual = Lag(after=MINUTE, repeat_every=MINUTE), decide_changes(RULE, found("a"), [], 0, NOW)
    first = decide_changes(silent, found("a"), [], 0, NOW)
    assert ([told for _, told in first.opened], first.firing_notices) == ([False], 0)
    alert = opened("a", notified_at=None)
    later = decide_changes(RULE, found("a"), [alert], 0, NOW + MINUTE)
    assert (len(later.notified), later.firing_notices) == (1, usual.firing_notices), "when the rule gets a channel"
    over = decide_changes(silent, [], [alert], 0, NOW + MINUTE, unnotified=2)
    assert ([one.notified for one in over.ended], over.unnotified) == ([False], 0)


def test_reminders_are_sent_until_the_acknowledgement():
    rule = Lag(after=MINUTE, channels=("ops",), repeat_every=HOUR)
    assert not decide_changes(rule, found("a"), [opened("a", last_at=NOW + HOUR - 1)], 0, NOW + HOUR - 1).reminded
    assert decide_changes(rule, found("a"), [opened("a")], 0, NOW + HOUR).reminded
    assert not decide_changes(rule, found("a"), [opened("a", acknowledged=True)], 0, NOW + HOUR).reminded
    assert not decide_changes(RULE, found("a"), [opened("a")], 0, NOW + HOUR).reminded, "it does not repeat"


def test_a_storm_is_one_notice_and_unnotified_alerts_follow_when_there_is_room():
    rule = Lag(after=MINUTE, channels=("ops",), at_most=Rate(2, HOUR, 2))
    few = decide_changes(rule, found("a", "b"), [], 0, NOW)
    assert (len(few.opened), few.firing_notices) == (2, 2), "one by one"
    storm = decide_changes(rule, found(*map(str, range(400))), [], 0, NOW)
    assert ({told for _, told in storm.opened}, storm.firing_notices, rule.at_most.room(storm.pace, NOW)) == (
        {True},
        1,
        1,
    )
    assert decide_changes(rule, found("a", "b"), [], storm.pace, NOW).firing_notices == 1, "there is room for no more"
    late = decide_changes(rule, found("c", "d"), [], few.pace, NOW + SECOND)
    assert ([told for _, told in late.opened], late.firing_notices) == ([False, False], 0)
    silent = [opened("c", 3, notified_at=None), opened("d", 4, notified_at=None)]
    later = decide_changes(rule, found("c", "d"), silent, few.pace, NOW + HOUR // 2)
    assert ([alert.subject for alert, _ in later.notified], later.firing_notices) == (["c", "d"], 1)
    over = decide_changes(rule, [], silent, few.pace, NOW + SECOND)
    assert [one.notified for one in over.ended] == [False, False], "no beginning was sent, so no end"
    assert over.unnotified == 2, "but their number is"
    assert decide_changes(rule, found("e"), [], few.pace, NOW + HOUR, unnotified=2).unnotified == 0
    assert decide_changes(rule, found("e"), [], few.pace, NOW + SECOND, unnotified=2).unnotified == 2
    many = decide_changes(rule, found(*map(str, range(MOST_OPEN + 5))), [], 0, NOW)
    assert (len(many.opened), many.overflow, many.firing_notices) == (MOST_OPEN, 5, 1)


def test_many_reminders_are_one_notice():
    rule = Lag(after=MINUTE, channels=("ops",), repeat_every=HOUR)
    going_on = [opened(str(n), n) for n in range(30)]
    again = decide_changes(rule, found(*(one.subject for one in going_on)), going_on, 0, NOW + HOUR)
    assert (len(again.reminded), again.reminder_notices) == (30, 1)


def test_no_recovery_is_sent_if_the_rule_disables_it():
    rule = Lag(after=MINUTE, channels=("ops",), recovery=False)
    assert decide_changes(rule, [], [opened("a")], 0, NOW).ended == (EndedAlert(opened("a"), False),)


def test_the_secrets_of_a_channel_are_not_shown_and_are_kept_when_left_out():
    body = {"kind": "webhook", "url": "https://hooks.example.com:8443/T0/secret", "headers": {"x-key": "secret://k"}}
    channel = read_channel(body)
    assert redacted(channel) == {"url": "https://hooks.example.com:8443/...", "headers": ["x-key"]}
    assert channel.references == ("k",)
    assert private_part(fill_secrets(channel, {"k": "v"}))["headers"] == {"x-key": "v"}
    again = read_channel({"kind": "webhook", "description": "on call"}, channel)
    assert (private_part(again), again.description) == (private_part(channel), "on call")
    mail = {"kind": "email", "host": "smtp.example.com", "from": "a@b.c", "to": "o@b.c", "username": "u"}
    first = read_channel({**mail, "password": "hunter2"})
    assert redacted(first) == {
        "host": "smtp.example.com", "port": 587, "tls": "starttls", "from": "a@b.c", "to": ["o@b.c"], "username": "u",
        "hasPassword": True,
    }  # fmt: skip
    assert private_part(read_channel(mail, first)) == {"password": "hunter2"}
    assert redacted(read_channel({"kind": "apprise", "urls": "slack://a/b/c"})) == {"urls": ["slack://..."]}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"kind": "pager"}, "kind"),
        ({"kind": "webhook"}, "url"),
        ({"kind": "webhook", "url": "ftp://a"}, "url"),
        ({"kind": "webhook", "url": "https://a b/"}, "url"),
        ({"kind": "webhook", "url": "https://a/", "secret": "short"}, "secret"),
        ({"kind": "webhook", "url": "secret://env/URL"}, "url"),
        ({"kind": "webhook", "url": "https://a/", "headers": {"webhook-id": "1"}}, "headers.webhook-id"),
        ({"kind": "webhook", "url": "https://a/", "headers": {"x": "a\r\nb: c"}}, "headers.x"),
        ({"kind": "email", "host": "a", "from": "a@b.c"}, "to"),
        ({"kind": "email", "host": "a", "from": "a@b.c", "to": "a@b.c\nbcc: x@y.z"}, "to[0]"),
        ({"kind": "email", "host": "a", "from": "a@b.c", "to": "a@b.c", "username": "u"}, "password"),
        ({"kind": "email", "host": "a", "from": "a@b.c", "to": "a@b.c", "url": "x"}, "url"),
        ({"kind": "apprise", "urls": ["syslog://"]}, "urls[0]"),
        ({"kind": "apprise", "urls": ["mailtos://u:p@example.com?smtp=10.0.0.1"]}, "urls[0]"),
        ({"kind": "apprise", "urls": ["slack://a/b/c", "tgram://1:a/2?x=1&%74emplate=/etc/horae/key"]}, "urls[1]"),
        ({"kind": "apprise", "urls": ["slack://a/b/c,json://10.0.0.1/"]}, "urls[0]"),
        ({"kind": "apprise", "urls": ["slack://a/b/c json://10.0.0.1/"]}, "urls[0]"),
        ({"kind": "apprise", "urls": ["json://example.com/?redirect=yes"]}, "urls[0]"),
        ({"kind": "apprise", "urls": []}, "urls"),
    ],
)
def test_an_invalid_channel_is_refused_with_its_field(body, field):
    with pytest.raises(BadInput) as refused:
        read_channel(body)
    assert refused.value.fields["field"] == field


def test_credentials_of_a_channel_are_not_sent_to_a_new_receiver():
    hook = read_channel({"kind": "webhook", "url": "https://a.example.com/x", "headers": {"authorization": "Bearer k"}})
    assert private_part(read_channel({"kind": "webhook", "url": "https://a.example.com/y"}, hook))["headers"]
    for url in ("https://evil.example.com/x", "http://a.example.com/x", "https://a.example.com:8443/x", "secret://u"):
        with pytest.raises(BadInput, match="headers is not given"):
            read_channel({"kind": "webhook", "url": url}, hook)
        assert "headers" not in private_part(read_channel({"kind": "webhook", "url": url, "headers": {}}, hook))
    mail = {"kind": "email", "host": "smtp.example.com", "from": "a@b.c", "to": "o@b.c", "username": "u"}
    first = read_channel({**mail, "password": "hunter2"})
    for change in ({"host": "evil.example.com"}, {"port": 2525}, {"tls": "none", "port": 587}):
        with pytest.raises(BadInput, match="password is not given"):
            read_channel({**mail, **change}, first)
        assert private_part(read_channel({**mail, **change, "password": "other"}, first)) == {"password": "other"}


def content(kind: str, count: int, **more):
    said = [summarize(f"report-{n}", "the fire is 2m late", NOW, alert=UUID(int=n)) for n in range(count)]
    text = encode_content(kind, said, rule="nightly", alert_kind="lag", severity="warning", at=NOW, **more)
    return read_content(text)


def test_all_channels_of_a_notice_get_the_same_content():
    told = content("recovered", 1)
    assert (told.type, title_of(told)) == ("alert.recovered", "[RECOVERED] report-0: nightly")
    assert text_of(told, "default").startswith("report-0: the fire is 2m late.\n\nrule       nightly (lag, warning)\n")
    assert (told.data["count"], "alerts" in told.data) == (1, False)


def test_a_group_lists_some_alerts_and_counts_all():
    told = content("firing", 400, overflow=5, unnotified=7)
    assert title_of(told) == "[ALERT] 405 jobs: nightly"
    assert (told.data["count"], told.data["alertId"], len(told.data["alerts"])) == (405, None, 50)
    assert told.data["alerts"][49]["subject"] == "report-49"
    text = text_of(told, "default")
    assert "report-0, report-1, " in text
    assert " and 385 more.\n" in text
    assert (
        "  report-19: the fire is 2m late\n  and 385 more: horae alerts list --rule nightly\nOther alerts that" in text
    )
    assert "and 0 more" not in text_of(content("firing", 4), "default")
    circuits = [summarize(f"pay:{key}", "the circuit is open", NOW) for key in "ab"]
    told = read_content(
        encode_content("firing", circuits, rule="r", alert_kind="circuit-open", severity="info", at=NOW)
    )
    assert told.data["subject"] == "2 circuits", "of one job"
