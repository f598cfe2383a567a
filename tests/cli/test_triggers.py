"""`horae triggers` and `horae fires`."""

import json

import pytest

from tests.cli.fake_api import FakeApi, page, run

NIGHTLY = {
    "jobId": "1", "job": "report", "jobState": "active", "name": "nightly", "kind": "cron", "state": "active",
    "text": "at 02:00 every day, UTC time", "definition": {"cron": "0 2 * * *"}, "nextFireAt": None, "fired": 3,
    "version": 2, "validFrom": "2026-11-15T00:00:00Z",
}  # fmt: skip
FIRE = {
    "at": "2026-11-15T02:00:00Z", "until": "2026-11-15T05:00:00Z", "count": 4, "jobId": "1", "job": "report",
    "trigger": "nightly", "disposition": "skipped-paused", "cause": "the job was paused", "executionId": None,
}  # fmt: skip


def test_list_and_show():
    api = FakeApi({"GET /triggers": page(NIGHTLY), "GET /jobs/report/triggers/nightly": NIGHTLY})
    row = run(api, "triggers", "list", "--state", "active", "--kind", "cron").stdout.splitlines()[1]
    assert row.split()[:3] == ["report", "nightly", "active"]
    assert api.requests[0].query == {"state": "active", "kind": "cron"}
    assert "0 2 * * *" in run(api, "triggers", "show", "report", "nightly").stdout
    assert "horae triggers add" in run(FakeApi({"GET /triggers": page()}), "triggers", "list").stdout


@pytest.mark.parametrize(
    ("options", "body"),
    [
        (["--cron", "0 2 * * *", "--tz", "Europe/Paris", "--name", "nightly", "--spread", "1h"],
         {"cron": "0 2 * * *", "timezone": "Europe/Paris", "name": "nightly", "spread": "1h"}),
        (["--every", "5m", "--max-fires", "3", "--paused"], {"every": "5m", "maxFires": 3, "paused": True}),
        (["--every", "5m", "--misfire", "all=10", "--overlap", "queueAll=5"],
         {"every": "5m", "misfire": {"all": 10}, "overlap": {"queueAll": 5}}),
        (["--at", "2027-01-01T00:00:00Z", "--misfire", "window=1h", "--param", "day=${fire.at}", "--param", "n=5"],
         {"at": "2027-01-01T00:00:00Z", "misfire": {"window": "1h"}, "params": {"day": "${fire.at}", "n": 5}}),
        (["--event", "upload", "--filter", "${event.payload.size > 10}", "--webhook", "signed"],
         {"event": "upload", "filter": "${event.payload.size > 10}", "webhook": True}),
        (["--webhook", "unsigned", "--param", "key=${event.payload.key}"],
         {"webhook": {"verify": "none"}, "params": {"key": "${event.payload.key}"}}),
        (["--watch", "/srv/inbox", "--interval", "10s", "--existing", "fire", "--settle", "5s"],
         {"watch": "/srv/inbox", "interval": "10s", "existing": "fire", "settle": "5s"}),
    ],
)  # fmt: skip
def test_add_by_options(options, body):
    api = FakeApi({"POST /jobs/report/triggers": NIGHTLY})
    result = run(api, "triggers", "add", "report", *options)
    assert result.stdout == "Added trigger nightly to job report: at 02:00 every day, UTC time.\n"
    assert api.requests[0].body == body


def test_edit_remove_pause_and_resume():
    path = "/jobs/report/triggers/nightly"
    api = FakeApi(
        {
            f"PATCH {path}": NIGHTLY,
            f"DELETE {path}": NIGHTLY,
            f"POST {path}/pause": NIGHTLY,
            f"POST {path}/resume": NIGHTLY,
        }
    )
    assert run(api, "triggers", "edit", "report", "nightly", "--cron", "0 3 * * *").stdout.startswith(
        "Changed trigger nightly"
    )
    assert api.requests[-1].body == {"cron": "0 3 * * *"}
    run(api, "triggers", "edit", "report", "nightly", "--spread", "1h", "--unset", "calendar")
    assert api.requests[-1].body == {"spread": "1h", "calendar": None}
    assert run(api, "triggers", "edit", "report", "nightly").exit_code == 2
    assert run(api, "triggers", "pause", "report", "nightly").stdout == "Paused trigger nightly of job report.\n"
    assert run(api, "triggers", "resume", "report", "nightly").stdout == "Resumed trigger nightly of job report.\n"
    assert run(api, "triggers", "remove", "report", "nightly").stdout == "Removed trigger nightly from job report.\n"
    assert json.loads(run(api, "triggers", "remove", "report", "nightly", "-o", "json").stdout) == NIGHTLY


def test_a_preview_asks_no_server():
    api = FakeApi({})
    options = ["--tz", "Europe/Paris", "--from", "2026-03-27T00:00:00Z", "--count", "2"]
    result = run(api, "triggers", "preview", "0 9 * * MON-FRI", *options, "-o", "json")
    assert json.loads(result.stdout) == ["2026-03-27T08:00:00Z", "2026-03-30T07:00:00Z"]
    assert result.stderr == ""
    told = run(api, "triggers", "preview", "0 9 * * MON-FRI", *options).stdout.splitlines()
    assert told[0] == "At 09:00 from Monday to Friday, Europe/Paris time."
    assert told[1].split() == ["UTC", "Europe/Paris"]
    assert "clocks go forward" in told[3]
    assert api.requests == []


def test_a_preview_in_utc_shows_each_instant_once():
    told = run(FakeApi({}), "triggers", "preview", "0 9 * * *", "--from", "2026-03-27T00:00:00Z", "--count", "1").stdout
    assert told.count("09:00") == 1 + told.splitlines()[0].count("09:00")


def test_a_preview_of_a_jobs_trigger_asks_the_server():
    answer = {"fires": ["2026-03-27T08:00:00Z"], "text": "x", "timezone": "UTC", "details": [], "notes": []}
    api = FakeApi({"POST /triggers/preview": answer})
    run(api, "triggers", "preview", "--job", "report", "--trigger", "nightly", "-o", "json")
    assert api.requests[0].body == {"job": "report", "trigger": "nightly", "count": 10}
    run(api, "triggers", "preview", "0 9 * * *", "--calendar", "work")
    assert api.requests[1].body == {"cron": "0 9 * * *", "calendar": "work", "count": 10}


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        (["60 * * * *"], 2, "outside 0-59"),
        (["0 9 * * *", "--tz", "Europe/Pari"], 2, "Europe/Paris"),
        (["* * * *"], 2, "4 fields"),
        ([], 2, "Give a schedule"),
        (["--trigger", "x"], 2, "--job"),
        (["0 9 * * *", "--cron", "0 8 * * *"], 2, "once"),
        (["0 9 * * *", "--job", "x"], 2, "cannot be given"),
        (["0 9 * * *", "--from", "tomorrow"], 2, "RFC 3339"),
    ],
)
def test_a_wrong_preview_says_why(options, code, told):
    result = run(FakeApi({}), "triggers", "preview", *options)
    assert (result.exit_code, told in result.stderr) == (code, True), result.stderr


def test_fires_are_listed():
    api = FakeApi({"GET /fires": {**page(FIRE), "complete": False, "notes": ["Something is left out."]}})
    result = run(api, "fires", "list", "--from", "2026-11-15T00:00:00Z", "--job", "report")
    assert "2026-11-15T02:00:00Z to 2026-11-15T05:00:00Z" in result.stdout
    assert "Something is left out." in result.stdout
    assert api.requests[0].query == {"from": "2026-11-15T00:00:00Z", "job": "report"}
    run(api, "fires", "list", "--next", "--limit", "5")
    assert api.requests[1].query == {"disposition": "planned", "limit": "5"}
    assert "--next lists coming fires" in run(api, "fires", "list", "--next", "--disposition", "fired").stderr


def test_fires_are_counted():
    counts = {"fired": 7, "missed": 0, "skipped": 0, "success": 7, "failed": 0, "planned": 19, "more": True}
    told = {"items": [{"at": "2026-11-15T00:00:00Z", "until": "2026-11-16T00:00:00Z", **counts}], "notes": ["Some."]}
    api = FakeApi({"GET /fires/counts": told})
    result = run(api, "fires", "count", "--from", "2026-11-15", "--job", "report")
    assert ("19+" in result.stdout, "Some." in result.stdout) == (True, True)
    assert api.requests[0].query == {"from": "2026-11-15", "by": "day", "timezone": "UTC", "job": "report"}
