"""`horae events`: events are sent and listed, webhooks created."""

import json

import pytest

from tests.cli.fake_api import FakeApi, page, run

SENT = {
    "eventId": "e1", "name": "upload", "source": "api", "type": None, "receivedAt": "2027-01-15T08:00:00Z",
    "fired": [{"job": "load", "jobId": "j1", "trigger": "inbox", "executionId": "x1"}],
    "skipped": [
        {"job": "copy", "trigger": "event", "disposition": "skipped-filter", "cause": "the filter is false"},
    ],
    "repeated": False, "note": None,
}  # fmt: skip
UNHEARD = {
    **SENT,
    "fired": [],
    "skipped": [],
    "note": 'No trigger listens to "uplaod": it was stored and fired nothing.',
}
HOOK = {
    "job": "deploy", "trigger": "github", "verify": "signature", "createdAt": "2027-01-15T08:00:00Z",
    "url": "http://h/api/v1/hooks/hook_x", "secret": "whsec_s", "oldValidUntil": None, "note": "Not shown again.",
}  # fmt: skip


def test_an_event_is_sent_and_its_executions_are_shown(tmp_path):
    api = FakeApi({"POST /events": SENT})
    (tmp_path / "payload.json").write_text('{"key": "a.csv"}')

    told = run(api, "events", "send", "upload", "--payload", f"@{tmp_path}/payload.json", "--id", "e1")

    assert told.exit_code == 0
    assert told.stdout == "x1  load (inbox)\n"
    assert "skipped-filter: copy (event): the filter is false" in told.stderr
    assert api.requests[0].body == {"name": "upload", "payload": {"key": "a.csv"}, "id": "e1"}
    assert json.loads(run(api, "events", "send", "upload", "-o", "json").stdout) == SENT


def test_a_dry_run_shows_the_triggers_that_would_fire():
    (skipped,) = SENT["skipped"]
    plan = {"name": "upload", "fires": [{**skipped, "disposition": "fired"}], "skipped": [skipped], "note": "Note."}
    api = FakeApi({"POST /events": plan})

    told = run(api, "events", "send", "upload", "--dry-run")

    assert told.stdout == "would fire: copy (event)\nskipped-filter: copy (event): the filter is false\n"
    assert (told.stderr, api.requests[0].query) == ("Note.\n", {"dryRun": "true"})


def test_an_event_without_a_listener_is_reported_but_no_failure():
    told = run(FakeApi({"POST /events": UNHEARD}), "events", "send", "uplaod")

    assert told.exit_code == 0
    assert told.stdout == ""
    assert 'No trigger listens to "uplaod"' in told.stderr


def test_a_payload_that_is_not_json_is_refused():
    told = run(FakeApi({}), "events", "send", "upload", "--payload", "{key: a}")

    assert told.exit_code == 2
    assert "--payload is not valid JSON" in told.stderr


def test_events_are_listed_with_their_results():
    api = FakeApi({"GET /events": page(SENT, UNHEARD)})

    told = run(api, "events", "list", "--name", "upload").stdout

    assert "load (inbox)" in told
    assert "copy (event): the filter is false" in told
    assert "No trigger listens" in told
    assert api.requests[0].query == {"name": "upload"}
    assert "horae events send" in run(FakeApi({"GET /events": page()}), "events", "list").stdout


def test_a_webhook_is_created_and_shown_once(tmp_path):
    api = FakeApi({"POST /jobs/deploy/triggers/github/webhook": HOOK})
    (tmp_path / "secret").write_text("a secret of github's own\n")

    told = run(
        api, "events", "webhook", "deploy", "github", "--secret-file", str(tmp_path / "secret"), "--overlap", "1h"
    )

    assert told.stdout.splitlines() == ["url     http://h/api/v1/hooks/hook_x", "secret  whsec_s"]
    assert api.requests[0].body == {"secret": "a secret of github's own", "overlap": "1h"}
    assert "Not shown again." in told.stderr


@pytest.mark.parametrize(("output", "said"), [([], "Removed the webhook"), (["-o", "json"], '"ended": true')])
def test_a_webhook_is_removed(output, said):
    api = FakeApi({"DELETE /jobs/deploy/triggers/github/webhook": None})

    told = run(api, "events", "webhook", "deploy", "github", "--end", *output)

    assert told.exit_code == 0
    assert said in told.stdout


def test_an_unreadable_secret_file_is_reported(tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff")
    for path, said in (("/nope", "/nope cannot be read"), (str(tmp_path / "binary"), "is not text in UTF-8")):
        told = run(FakeApi({}), "events", "webhook", "deploy", "github", "--secret-file", path)

        assert told.exit_code == 2
        assert said in told.stderr
