"""`horae executions` and `horae dlq`."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from horae.cli.workflows import note_of
from horae.client.kernel.executions import ExecutionsResource
from horae.errors import Conflict
from horae.features.artifacts import cli as artifacts
from tests.cli.fake_api import FakeApi, page, run

NEWEST = "01a3185c-5000-75b9-ba02-4204f7c1bd87"
UNTIL = "2027-01-15T08:00:00.001Z"  # just after its creation
FAILED = {
    "executionId": "e1",
    "jobName": "daily",
    "status": "failed",
    "scheduledAt": "2027-01-15T07:59:00Z",
    "attempt": 4,
    "errorMessage": "boom\nand more",
    "error": {"type": "ValueError", "traceback": "Traceback ...\nValueError: boom"},
}


@pytest.fixture
def artifact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every artifact have a content that ends within a character."""

    async def read(*_: object) -> AsyncIterator[bytes]:
        yield b"done \xc3"

    monkeypatch.setattr(ExecutionsResource, "read_artifact", read)


@pytest.mark.usefixtures("artifact")
def test_an_artifact_with_a_long_name_is_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    name = "\u00fc" * 127
    assert run(FakeApi({}), "executions", "artifacts", "e1", f"reports/{name}").stdout == f"{name}: 6 bytes.\n"
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.usefixtures("artifact")
def test_a_terminal_shows_an_incomplete_character_at_the_end_of_an_artifact(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(artifacts, "sys", SimpleNamespace(stdout=SimpleNamespace(isatty=lambda: True)))
    assert run(FakeApi({}), "executions", "artifacts", "e1", "a", "--to", "-").stdout == "done \ufffd"


def test_list_filters_and_shows():
    api = FakeApi({"GET /executions": page(FAILED)})
    result = run(api, "executions", "list", "--job", "daily", "--status", "pending")
    assert api.requests[0].query == {"job": "daily", "status": "pending"}
    row = result.stdout.splitlines()[1]
    assert "e1" in row
    assert "boom" in row
    assert "and more" not in row


def test_show_ends_with_the_traceback():
    result = run(FakeApi({"GET /executions/e1": FAILED}), "executions", "show", "e1")
    assert result.stdout.endswith("ValueError: boom\n")
    assert result.exit_code == 0


def test_show_can_wait():
    result = run(FakeApi({"GET /executions/e1": FAILED}), "executions", "show", "e1", "--wait", "-o", "json")
    assert json.loads(result.stdout)["status"] == "failed"
    assert result.exit_code == 1


def test_cancel_shows_its_result():
    asked = {"outcome": "requested", "execution": {"executionId": "e1", "status": "running"}}
    api = FakeApi(
        {"POST /executions/e1/cancel": asked, "GET /executions/e1": {"executionId": "e1", "status": "cancelled"}}
    )

    assert "asked to stop" in run(api, "executions", "cancel", "e1", "--reason", "why").stdout
    assert api.requests[0].body == {"reason": "why"}
    assert "cancelled" in run(api, "executions", "cancel", "e1", "--wait").stdout


def test_cancelling_an_ended_execution_is_a_conflict():
    api = FakeApi({"POST /executions/e1/cancel": Conflict("It has ended as success.", "Nothing to do.")})
    assert run(api, "executions", "cancel", "e1").exit_code == 4


def test_a_signal_carries_its_payload_and_shows_its_delivery():
    sent = {"executionId": "e1", "name": "approved", "delivered": True}
    api = FakeApi({"POST /executions/e1/signals": sent})
    told = run(api, "executions", "signal", "e1", "approved", "--payload", '{"by": "ada"}')
    assert api.requests[0].body == {"name": "approved", "payload": {"by": "ada"}}
    assert "was delivered" in told.stdout

    api = FakeApi({"POST /executions/e1/signals": {**sent, "delivered": False}})
    assert "is stored" in run(api, "executions", "signal", "e1", "approved").stdout
    assert json.loads(run(api, "executions", "signal", "e1", "approved", "-o", "json").stdout)["delivered"] is False
    assert run(api, "executions", "signal", "e1", "approved", "--payload", "{").exit_code == 2


def test_logs_keep_their_stream_or_become_one_document():
    lines = [{"text": "out", "stream": "stdout", "attempt": 1, "seq": 0}, {"text": "err", "stream": "stderr"}]
    logs = {"items": lines, "nextCursor": "2", "ended": True}
    api = FakeApi({"GET /executions/e1/logs": lambda r: logs if "cursor" not in r.query else {**logs, "items": []}})
    result = run(api, "executions", "logs", "e1", "--tail", "5")
    assert (result.stdout, result.stderr) == ("out\n", "err\n")
    assert api.requests[0].query == {"tail": "5"}
    assert json.loads(run(api, "executions", "logs", "e1", "-o", "json").stdout) == {"items": lines}


def test_a_log_is_searched():
    empty = {"items": [], "nextCursor": "2", "ended": True, "more": False}
    api = FakeApi({"GET /executions/e1/logs": empty})
    assert run(api, "executions", "logs", "e1", "--grep", "out of*memory", "--level", "error").exit_code == 0
    assert api.requests[0].query == {"grep": "out of*memory", "level": "error"}


@pytest.mark.parametrize(("status", "code"), [("success", 0), ("failed", 1), ("cancelled", 1), ("skipped", 0)])
def test_the_exit_code_of_a_followed_log_is_the_outcome(status, code):
    logs = {"items": [], "nextCursor": "0", "ended": True}
    api = FakeApi({"GET /executions/e1/logs": logs, "GET /executions/e1": {**FAILED, "status": status}})
    assert run(api, "executions", "logs", "-f", "e1").exit_code == code


def test_attempts():
    attempt = {"attempt": 1, "outcome": "lost", "workerId": "w", "errorMessage": "gone"}
    assert "lost" in run(FakeApi({"GET /executions/e1/attempts": page(attempt)}), "executions", "attempts", "e1").stdout


LETTER = {"execution": {**FAILED, "executionId": NEWEST}, "state": "open", "retriedAs": None}
DONE = {"matched": 2, "done": 2, "skipped": 0, "more": False, "executionIds": ["n1", "n2"], "notes": []}


def test_dead_letters_are_listed_and_shown():
    api = FakeApi({"GET /dlq": page(LETTER), "GET /dlq/e1": LETTER})
    assert "boom" in run(api, "dlq", "list", "--error-type", "ValueError").stdout
    assert api.requests[0].query == {"errorType": "ValueError"}
    shown = run(api, "dlq", "show", "e1").stdout
    assert "open" in shown
    assert shown.endswith("ValueError: boom\n")


def test_ids_are_retried_without_asking():
    api = FakeApi({"POST /dlq/retry": DONE})
    result = run(api, "dlq", "retry", "e1", "e2")
    assert api.requests[0].body == {"ids": ["e1", "e2"]}
    assert result.stdout.splitlines() == ["Retried 2.", "n1", "n2"]


def test_dead_letters_are_retried_with_changed_params():
    api = FakeApi({"POST /dlq/retry": DONE})
    run(api, "dlq", "retry", "e1", "--param", "day=2026-11-15", "--params", '{"limit": null}')
    assert api.requests[0].body == {"ids": ["e1"], "params": {"day": "2026-11-15", "limit": None}}


REPLAY = {"replayId": "r1", "state": "running", "total": 9, "matched": 3, "retried": 2, "skipped": 1, "note": "deleted"}


def test_dead_letters_are_replayed_at_a_rate():
    api = FakeApi({"POST /dlq/replays": REPLAY})
    said = run(
        api, "dlq", "replay", "--reason", "runTimeout", "--older-than", "1d", "--rate", "10/1s", "--param", "a=1"
    )
    assert api.requests[0].body == {
        "filter": {"reason": "runTimeout", "olderThan": "1d"}, "rate": "10/1s", "params": {"a": 1},
    }  # fmt: skip
    assert said.stdout == "Replay r1: running; retried 2 of 9, skipped 1 (deleted).\n"
    assert run(FakeApi({}), "dlq", "replay", "--rate", "1/1s").exit_code == 2


def test_replays_are_shown_and_changed():
    api = FakeApi({
        "GET /dlq/replays": page(REPLAY), "GET /dlq/replays/r1": REPLAY,
        **{f"POST /dlq/replays/r1/{verb}": REPLAY for verb in ("pause", "resume", "cancel")},
    })  # fmt: skip
    assert "r1" in run(api, "dlq", "replays", "list", "--state", "running").stdout
    assert "deleted" in run(api, "dlq", "replays", "show", "r1").stdout
    for verb in ("pause", "resume", "cancel"):
        assert json.loads(run(api, "dlq", "replays", verb, "r1", "-o", "json").stdout) == REPLAY


def test_a_filter_shows_the_count_and_asks_for_confirmation():
    api = FakeApi({"GET /dlq": page(LETTER, LETTER), "POST /dlq/discard": {**DONE, "executionIds": []}})

    refused = run(api, "dlq", "discard", "--job", "daily", input="n\n")
    assert "2 dead letters match." in refused.stdout
    assert refused.exit_code == 1
    assert api.lines == ["GET /dlq"]

    accepted = run(api, "dlq", "discard", "--job", "daily", "--yes", "-o", "json")
    assert json.loads(accepted.stdout)["done"] == 2
    assert api.requests[-1].body == {"filter": {"job": "daily", "until": UNTIL}}


def test_a_filter_is_applied_until_no_dead_letter_is_left():
    cursors = iter(["b", "c", None])

    def bulk(_: object) -> dict[str, object]:
        cursor = next(cursors)
        return {**DONE, "more": cursor is not None, "nextCursor": cursor}

    api = FakeApi({"GET /dlq": page(LETTER, next_cursor="c"), "POST /dlq/retry": bulk})
    result = run(api, "dlq", "retry", "--all", "--yes")
    assert "At least 1 dead letter matches." in result.stdout
    assert "Retried 6." in result.stdout
    given = [request.body["filter"] for request in api.requests[1:]]
    # never from the newest again, and no newer ones than were counted: some may have failed since
    assert given == [{"until": UNTIL}, {"until": UNTIL, "cursor": "b"}, {"until": UNTIL, "cursor": "c"}]


@pytest.mark.parametrize("options", [[], ["e1", "--job", "a"], ["e1", "--all"]])
def test_retry_needs_either_ids_or_a_filter(options):
    api = FakeApi({})
    assert run(api, "dlq", "retry", *options).exit_code == 2
    assert api.requests == []


def test_nothing_matches():
    assert "0 dead letters match" in run(FakeApi({"GET /dlq": page()}), "dlq", "retry", "--job", "a").stdout


def test_a_graph_shows_the_question_and_the_roles():
    asked = {"kind": "approval", "status": "waiting", "waitsFor": {"message": "An order of 120", "roles": ["operator"]}}
    assert note_of(asked) == "approval of operator: An order of 120"
    assert note_of({"kind": "signal", "status": "waiting", "waitsFor": {"name": "go"}}) == "signal go"
    at = "2026-11-15T08:00:00Z"
    assert note_of({"kind": "sleep", "status": "waiting", "wakeAt": at}) == f"sleep until {at}"


def test_the_archive_is_listed_and_exported_as_lines():
    pages = iter(
        [{"items": [{"executionId": "e2"}], "nextCursor": "c"}, {"items": [{"executionId": "e1"}], "nextCursor": None}]
    )
    api = FakeApi({"GET /archive": lambda request: next(pages), "GET /executions": {"items": [], "nextCursor": None}})
    assert [
        json.loads(line)["executionId"] for line in run(api, "executions", "export", "--archive").stdout.splitlines()
    ] == ["e2", "e1"]
    assert run(api, "executions", "export").stdout == ""
    listed = FakeApi({"GET /archive": {"items": [], "nextCursor": None}})
    assert "horae namespaces set" in run(listed, "executions", "list", "--archive", "--job", "report").stdout
    assert run(listed, "executions", "list", "--archive", "--worker", "w").exit_code == 2


def test_a_damaged_file_of_the_archive_is_named_and_the_rest_is_exported():
    page = {"items": [{"executionId": "e1"}], "nextCursor": None, "notes": ["archive/1/x.jsonl.gz ends too early."]}
    done = run(FakeApi({"GET /archive": page}), "executions", "export", "--archive")
    assert json.loads(done.stdout)["executionId"] == "e1"
    assert "archive/1/x.jsonl.gz" in done.stderr
    assert done.exit_code == 1
    listed = run(FakeApi({"GET /archive": page}), "executions", "list", "--archive")
    assert "archive/1/x.jsonl.gz" in listed.stderr
    assert listed.exit_code == 0
