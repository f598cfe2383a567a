"""The smaller groups: workers, queues, keys, audit, report, config, version; and errors in general."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from horae.cli.fleet.worker import worker
from horae.client.transport.transport import Unanswered
from horae.errors import NotFound, Unauthorized
from horae.version import __version__
from tests.cli.fake_api import FakeApi, page, run

WORKER = {
    "workerId": "w1", "status": "live", "host": "h", "running": 2, "capacity": 10, "queues": ["default"],
    "labels": {"gpu": "a100"}, "version": "0.1.0", "lastHeartbeat": "2027-01-15T08:00:00Z", "jobs": ["digest"],
    "resources": {"gpu": 4}, "used": {"slots": 3, "gpu": 1},
}  # fmt: skip


def test_workers():
    api = FakeApi({"GET /workers": page(WORKER), "GET /workers/w1": WORKER, "POST /workers/w1/drain": WORKER})
    row = run(api, "workers", "list").stdout.splitlines()[1]
    assert row.split()[:10] == ["w1", "live", "h", "2", "3/10", "slots,", "1/4", "gpu", "default", "gpu=a100"]
    assert "digest" in run(api, "workers", "show", "w1").stdout
    assert "asked to drain" in run(api, "workers", "drain", "w1").stdout


def test_queues():
    queue = {"name": "default", "policy": {"kind": "fifo"}, "state": "active", "queued": 7, "lanes": [{}, {}]}
    assert run(FakeApi({"GET /queues": page(queue)}), "queues", "list").stdout.splitlines()[1].split() == [
        "default", "fifo", "active", "7", "2",
    ]  # fmt: skip


def test_a_key_is_shown_once_alone_on_stdout():
    made = {"keyId": "k1", "name": "fleet", "role": "worker", "key": "hk_k1_secret"}
    api = FakeApi({"POST /keys": made, "GET /keys": page({**made, "key": None}), "DELETE /keys/k1": None})

    result = run(api, "keys", "create", "fleet", "--role", "worker", "--expires-in", "1d")
    assert result.stdout == "hk_k1_secret\n"
    assert api.requests[0].body == {"name": "fleet", "role": "worker", "expiresAt": "2027-01-16T08:00:00Z"}
    assert "fleet" in run(api, "keys", "list").stdout
    assert "Revoked key k1." in run(api, "keys", "revoke", "k1").stdout


def test_a_key_is_restricted_and_rotated_and_listed_with_its_restrictions():
    made = {"keyId": "k2", "name": "ci", "role": "editor", "key": "hk_k2_secret"}
    narrowed = {"permissions": ["commands"], "queues": ["etl"], "jobs": ["etl-*"]}
    api = FakeApi({"POST /keys": made, "POST /keys/k2/rotate": made, "GET /keys": page({**made, **narrowed})})
    flags = ("--permission", "commands", "--queue", "etl", "--jobs", "etl-*")

    run(api, "keys", "create", "ci", "--role", "editor", *flags)
    rotated = run(api, "keys", "rotate", "k2", "--overlap", "1h")

    assert [request.body for request in api.requests] == [
        {"name": "ci", "role": "editor", **narrowed},
        {"overlap": "1h"},
    ]
    assert rotated.stdout == "hk_k2_secret\n"
    assert "replaces key k2, which stays valid for another 1h" in rotated.stderr
    assert "+commands, queue etl, etl-*" in run(api, "keys", "list").stdout


def test_every_command_accepts_a_namespace():
    api = FakeApi({"GET /keys": page(), "GET /jobs": page()})
    run(api, "keys", "list", "--namespace", "billing")
    run(api, "jobs", "list", "--namespace", "billing")
    run(api, "jobs", "list")
    assert [request.headers.get("horae-namespace") for request in api.requests] == ["billing", "billing", None]


@pytest.mark.parametrize("flag", ["--key", "--api-key"])
def test_a_worker_accepts_the_key_option_of_other_commands(flag):
    assert worker.make_context("worker", [flag, "hk_x"]).params["key"] == "hk_x"


def test_keys_are_listed_by_pages():
    api = FakeApi({"GET /keys": page({"keyId": "k1", "name": "ci", "role": "admin"}, next_cursor="k1")})
    assert "--cursor k1" in run(api, "keys", "list", "--limit", "1").stderr
    run(api, "keys", "list", "--cursor", "k1")
    assert [request.query for request in api.requests] == [{"limit": "1"}, {"cursor": "k1"}]


def test_sign_in_prints_a_link_alone_on_stdout_and_opens_it_when_asked(monkeypatch):
    opened = []
    monkeypatch.setattr("click.launch", lambda url: opened.append(url) or 0)
    api = FakeApi({"POST /sign-in/codes": {"code": "abc", "expiresAt": "2027-01-15T08:10:00Z"}})

    assert run(api, "sign-in").stdout == "http://fake/#code=abc\n"
    assert opened == []
    run(api, "sign-in", "--browser")
    assert opened == ["http://fake/#code=abc"]
    assert json.loads(run(api, "sign-in", "-o", "json").stdout)["url"] == "http://fake/#code=abc"


def test_sign_in_says_when_there_is_no_browser(monkeypatch):
    monkeypatch.setattr("click.launch", lambda url: 1)
    api = FakeApi({"POST /sign-in/codes": {"code": "abc", "expiresAt": "2027-01-15T08:10:00Z"}})
    assert "open the link yourself" in run(api, "sign-in", "--browser").stderr


def test_dead_letters_are_counted_by_job_and_error():
    group = {
        "jobId": "j", "jobName": "report", "errorType": "KeyError", "count": 12, "newestId": "e9",
        "newestAt": "2027-01-15T07:58:00Z", "errorMessage": "KeyError: 'x'\nmore",
    }  # fmt: skip
    api = FakeApi({"GET /dlq/groups": {"items": [group], "complete": False}})
    result = run(api, "dlq", "groups", "--job", "report", "--state", "all")
    assert result.stdout.splitlines()[1].split() == ["12", "report", "KeyError", "2m", "ago", "e9", "KeyError:", "'x'"]
    assert api.requests[0].query == {"job": "report", "state": "all"}
    assert "select fewer" in result.stderr


def test_an_audit_without_findings_exits_0():
    found = {"shelves": {"waiting": {"slices": 1, "items": 1}, "history": {"slices": 2, "items": 20}}}
    found |= {"findingsByKind": {}, "findings": []}
    result = run(FakeApi({"GET /audit/executions": found}), "audit", "executions")
    assert result.exit_code == 0
    assert result.stdout == "Checked 1 waiting, 20 history.\nEvery execution is in its place.\n"


def test_an_audit_names_its_findings_and_exits_1():
    finding = {
        "kind": "no-live-session",
        "shelf": "running",
        "parcel": "p1",
        "lo": 2,
        "hi": 5,
        "detail": "its session is lost",
    }
    found = {
        "shelves": {"running": {"slices": 1, "items": 3}},
        "findingsByKind": {"no-live-session": 1},
        "findings": [finding],
    }
    repaired = {**found, "findings": [], "findingsByKind": {}, "repaired": {"requeued": 3, "ended": 0}}
    api = FakeApi({"GET /audit/executions": found, "POST /audit/executions": repaired})
    result = run(api, "audit", "executions")
    assert result.exit_code == 1
    assert "p1" in result.stdout
    assert "2..4" in result.stdout
    result = run(api, "audit", "executions", "--repair")
    assert "3 queued again" in result.stdout
    assert result.exit_code == 0


def test_report_writes_lines(tmp_path):
    output = tmp_path / "output"
    env = {"HORAE_OUTPUT": str(output)}
    assert run(None, "report", "--progress", "50", "--message", "half", env=env).exit_code == 0
    assert run(None, "report", "--progress", "99.5", env=env).exit_code == 0
    assert run(None, "report", "--result", '{"rows": 1}', env=env).exit_code == 0
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    assert lines == [{"progress": 50, "message": "half"}, {"progress": 99.5}, {"result": {"rows": 1}}]


def test_a_report_on_a_full_disk_is_refused(tmp_path):
    full = run(None, "report", "--progress", "1", env={"HORAE_OUTPUT": "/dev/full"})
    assert (full.exit_code, "/dev/full cannot be written: No space left on device." in full.stderr) == (2, True)

    output = tmp_path / "output"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5, hard))
    try:
        short = run(None, "report", "--progress", "1", env={"HORAE_OUTPUT": str(output)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (short.exit_code, "No space left on device." in short.stderr) == (2, True)

    assert run(None, "report", "--progress", "2", env={"HORAE_OUTPUT": str(output)}).exit_code == 0
    assert output.read_text() == '{"pro\n{"progress":2}\n'


DEEP = "[" * 100_000


@pytest.mark.parametrize(
    ("command", "input", "said"),
    [
        ("jobs trigger a --params @gone", None, "gone cannot be read: No such file or directory."),
        ("jobs trigger a --params @.", None, ". cannot be read: Is a directory."),
        ("jobs trigger a --params @latin", None, "latin is not text in UTF-8."),
        ("jobs trigger a --params -", b"\xff", "The input is not text in UTF-8."),
        ("apply -f -", b"\xff", "The input is not text in UTF-8."),
        (f"jobs trigger a --params {DEEP}", None, "nested too deeply"),
        (f"jobs trigger a --param x={DEEP}", None, "nested too deeply"),
        ("jobs trigger a --param x=\udcff", None, "is not text in UTF-8."),
        ("jobs show \udcff", None, "is not text in UTF-8."),
        ("secrets set a --file gone", None, "gone cannot be read: No such file or directory."),
        ("events webhook a t --secret-file latin", None, "latin is not text in UTF-8."),
    ],
)
def test_unreadable_values_are_refused(command, input, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("latin").write_bytes(b"\xff")
    refused = run(api := FakeApi({}), *command.split(), input=input)
    assert (refused.exit_code, said in refused.stderr) == (2, True), refused.stderr
    assert api.requests == []


@pytest.mark.parametrize(
    "command", ["report --result -", "secrets set a", "apply -f -", "users create a --role viewer --password-stdin"]
)
def test_a_closed_input_is_reported(command):
    program = f"exec {sys.executable} -m horae.cli.main {command} <&-"
    ended = subprocess.run(
        ["sh", "-c", program], env=os.environ | {"HORAE_OUTPUT": "x"}, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stderr.startswith("Error: The input is closed.")) == (2, True), ended.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&- <&-"])
def test_output_to_a_closed_stream_is_discarded(closed):
    program = f"exec {sys.executable} -m horae.cli.main version {closed}"
    ended = subprocess.run(["sh", "-c", program], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_report_outside_a_job_says_so():
    result = run(None, "report", "--progress", "1", env={"HORAE_OUTPUT": ""})
    assert result.exit_code == 2
    assert "not inside a running job" in result.stderr


@pytest.mark.parametrize("options", [[], ["--progress", "101"], ["--result", "{"]])
def test_report_refuses_invalid_values(options, tmp_path):
    output = tmp_path / "output"
    assert run(None, "report", *options, env={"HORAE_OUTPUT": str(output)}).exit_code == 2
    assert not output.exists()


def test_config_shows_values_and_origins(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("horae.toml").write_text('retention = "7d"\n')
    env = {"HORAE_PORT": "9000", "HORAE_KEY": "hk_secret"}

    table = run(None, "config", "show", "--origin", env=env).stdout
    assert "HORAE_PORT in the environment" in table
    assert "hk_secret" not in table
    rows = {
        row["name"]: row
        for row in json.loads(run(None, "config", "show", "--origin", "-o", "json", env=env).stdout)["items"]
    }
    assert (rows["port"]["value"], rows["retention"]["value"], rows["key"]["value"]) == (9000, "7d", "***")
    assert rows["retention"]["origin"] == "horae.toml"
    assert "origin" not in json.loads(run(None, "config", "show", "-o", "json").stdout)["items"][0]


def test_a_bad_setting_is_reported_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(None, "jobs", "list", env={"HORAE_SESSION_TIMEOUT": "abc"})
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: HORAE_SESSION_TIMEOUT=abc in the environment:")


def test_version():
    assert json.loads(run(None, "version", "-o", "json").stdout)["horae"] == __version__
    assert run(None, "--version").stdout == f"horae {__version__}\n"


def test_a_misspelt_command_gets_a_suggestion():
    result = run(None, "jbos", "list")
    assert result.exit_code == 2
    assert "Did you mean 'jobs'?" in result.stderr


class Silent(FakeApi):
    async def send(self, call):
        raise Unanswered("connection refused", sent=False)


def test_a_missing_server_is_reported_at_once_with_a_remedy():
    result = run(Silent({}), "jobs", "list")
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "Error: No Horae server answers at http://fake (connection refused).",
        "Start one with `horae up`, or name the right one with HORAE_URL.",
    ]


def test_credentials_and_absent_things():
    refused = run(
        FakeApi({"GET /jobs": Unauthorized("This needs a credential.", "Send it as a header.")}), "jobs", "list"
    )
    assert refused.exit_code == 1
    assert "HORAE_KEY" in refused.stderr
    assert "header" not in refused.stderr
    missing = NotFound('No job named "emial".', 'Did you mean "email"?')
    result = run(FakeApi({"GET /jobs/emial": missing}), "jobs", "show", "emial")
    assert (result.exit_code, result.stderr) == (3, 'Error: No job named "emial".\nDid you mean "email"?\n')


def test_the_key_travels_in_the_header():
    api = FakeApi({"GET /jobs": page()})
    run(api, "jobs", "list", "--api-key", "hk_mine")
    assert api.requests[0].headers["authorization"] == "Bearer hk_mine"
