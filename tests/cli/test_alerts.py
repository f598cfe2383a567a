"""`horae alerts`: alerts, rules and channels by options or files, and tests with their exit codes."""

from pathlib import Path

from tests.cli.fake_api import FakeApi, page, run

ALERT = {
    "alertId": "a1", "rule": "old", "kind": "queue-age", "severity": "warning", "state": "firing", "subject": "default",
    "jobId": None, "executionId": None, "message": "the next execution has been queued for 1m", "count": 1,
    "since": "2027-01-15T07:59:00Z", "lastAt": "2027-01-15T07:59:00Z", "recoveredAt": None,
    "acknowledgedAt": "2027-01-15T07:59:30Z", "acknowledgedBy": "key:1",
    "deliveries": [
        {"channel": "ops", "kind": "firing", "state": "delivered", "attempts": 1, "lastError": None, "at": None},
        {"channel": "mail", "kind": "firing", "state": "pending", "attempts": 2, "lastError": "busy", "at": None},
    ],
}  # fmt: skip
RULE = {"name": "old", "kind": "queue-age", "state": "active", "definition": {}, "channels": ["ops"], "version": 2}
CHANNEL = {"name": "ops", "kind": "webhook", "to": {"url": "https://x/..."}, "secret": "whsec_1", "version": 1}


def test_alerts_are_listed_and_acknowledged():
    api = FakeApi({"GET /alerts": page(ALERT), "POST /alerts/a1/acknowledge": ALERT})
    row = run(api, "alerts", "list", "--state", "firing", "--job", "report").stdout.splitlines()[1]
    assert "firing (acknowledged)" in row
    assert "1 delivered, 1 pending" in row
    assert api.requests[-1].query == {"state": "firing", "job": "report"}
    assert run(api, "alerts", "acknowledge", "a1").stdout == 'The alert of rule "old" about default is acknowledged.\n'
    api = FakeApi({"POST /alert-rules/old/acknowledge": {"rule": "old", "acknowledged": 4}})
    assert run(api, "alerts", "acknowledge", "--rule", "old").stdout == '4 alerts of rule "old" acknowledged.\n'
    assert (
        run(api, "alerts", "acknowledge").exit_code
        == run(api, "alerts", "acknowledge", "a", "--rule", "b").exit_code
        == 2
    )
    assert run(FakeApi({"GET /alerts": page()}), "alerts", "list").stdout == "There are no alerts.\n"


def test_a_rule_is_put_by_options_over_a_file(tmp_path: Path):
    file = tmp_path / "old.yaml"
    file.write_text("kind: queue-age\nafter: 1h\nqueues: [slow]\n")
    api = FakeApi({"PUT /alert-rules/old": RULE, "POST /alert-rules/old/pause": RULE})
    given = ("--after", "5m", "--channel", "ops", "--repeat-every", "4h", "--max-notices", "5/1h", "--no-recovery")
    said = run(api, "alerts", "rules", "put", "old", "-f", str(file), *given).stdout
    assert said == "Rule old is at version 2; it notifies ops.\n"
    assert api.requests[-1].body == {
        "kind": "queue-age", "after": "5m", "queues": ["slow"], "channels": ["ops"], "repeatEvery": "4h",
        "maxNotices": "5/1h", "recovery": False,
    }  # fmt: skip
    run(
        api,
        "alerts",
        "rules",
        "put",
        "old",
        "--kind",
        "failures-in-a-row",
        "--job",
        "a",
        "--job",
        "b*",
        "--count",
        "3",
    )
    assert api.requests[-1].body == {"kind": "failures-in-a-row", "jobs": ["a", "b*"], "count": 3}
    assert run(api, "alerts", "rules", "pause", "old").stdout == "Rule old is paused.\n"


def test_a_channel_is_put_and_its_secret_shown_once():
    api = FakeApi({"PUT /alert-channels/{name}": CHANNEL, "GET /alert-channels": page(CHANNEL)})
    said = run(api, "alerts", "channels", "put", "ops", "--webhook", "https://x/token").stdout
    assert "whsec_1" in said
    assert api.requests[-1].body == {"kind": "webhook", "url": "https://x/token"}
    mail = ("--email", "o@x.y", "--from", "h@x.y", "--smtp", "smtp.x.y:2525", "--user", "u", "--password", "secret://p")
    run(api, "alerts", "channels", "put", "mail", *mail)
    assert api.requests[-1].body == {
        "kind": "email", "to": ["o@x.y"], "from": "h@x.y", "host": "smtp.x.y", "port": 2525, "username": "u",
        "password": "secret://p",
    }  # fmt: skip
    assert "https://x/..." in run(api, "alerts", "channels", "list").stdout
    wrong = run(api, "alerts", "channels", "put", "mail", "--smtp", "smtp:x")
    assert (wrong.exit_code, "is not a port" in wrong.stderr) == (2, True)


def test_a_test_that_fails_is_a_failure():
    (good, bad) = ALERT["deliveries"]
    api = FakeApi(
        {
            "POST /alert-rules/old/test": {"deliveries": [good]},
            "POST /alert-channels/ops/test": {"deliveries": [{**bad, "state": "failed"}]},
        }
    )
    done = run(api, "alerts", "test", "old")
    assert (done.exit_code, done.stdout) == (0, "ops: delivered\n")
    failed = run(api, "alerts", "channels", "test", "ops")
    assert (failed.exit_code, failed.stdout) == (1, "mail: failed: busy\n")
