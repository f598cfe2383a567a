"""`horae jobs`."""

import json

import msgspec
import pytest
import yaml

from horae.cli.definitions.definition import editable
from horae.cli.option_errors import flag_of
from horae.client.transport.transport import ApiResponse
from horae.errors import BadInput, Conflict, NotFound
from horae.model.definitions.job import JOB as JOB_TABLE
from tests.cli.fake_api import FakeApi, page, run

JOB = {
    "jobId": "0190-1",
    "name": "daily",
    "version": 3,
    "state": "active",
    "status": "scheduled",
    "schedule": "0 0 * * *",
    "scheduleText": "at 00:00 UTC, every day",
    "nextFireAt": "2027-01-15T09:00:00Z",
    "command": "python report.py",
    "params": {},
    "retries": 3,
    "notes": ["It is noted."],
}


def test_create_sends_the_given_options():
    api = FakeApi({"POST /jobs": JOB})

    result = run(
        api, "jobs", "create", "daily", "--command", "python report.py", "--schedule", "0 0 * * *", "--retries", "3",
        "--timeout", "1h", "--param", "n=1", "--param", "day=2026-11-15", "--param", 'deep={"a": [1]}', "--need", "gpu",
        "--tag", "team=data", "--env", "A=b", "--depends-on", "extract", "--priority", "0",
    )  # fmt: skip

    assert result.exit_code == 0
    assert api.requests[0].body == {
        "name": "daily",
        "command": "python report.py",
        "schedule": "0 0 * * *",
        "retries": 3,
        "timeout": "1h",
        "priority": 0,
        "params": {"n": 1, "day": "2026-11-15", "deep": {"a": [1]}},
        "needs": ["gpu"],
        "tags": {"team": "data"},
        "env": {"A": "b"},
        "dependencies": ["extract"],
    }
    assert result.stdout == "Created job daily (0190-1), scheduled.\nIt is noted.\n"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--python", "digest"], {"python": "digest"}),
        (["--shell", "a | b"], {"command": {"shell": "a | b"}}),
        (["--http", "http://x", "--method", "GET"], {"http": {"url": "http://x", "method": "GET"}}),
        (["--command", "a b", "--user", "u"], {"command": {"argv": "a b", "user": "u"}}),
        (
            ["--shell", "a", "--process-limit", "memory=1GiB", "--process-limit", "files=9"],
            {"command": {"shell": "a", "limits": {"memory": "1GiB", "files": 9}}},
        ),
        (["--python", "f", "--process-limit", "cpu=1s"], {"python": {"function": "f", "limits": {"cpu": "1s"}}}),
        (["--http", "http://x", "--redirects", "3"], {"http": {"url": "http://x", "redirects": 3}}),
        (["--http", "http://x", "--redirects", "0"], {"http": {"url": "http://x", "redirects": 0}}),
        (["--every", "5m"], {"schedule": {"every": "5m"}}),
        (["--cron", "0 9 * * *"], {"schedule": "0 9 * * *"}),
        (["--at", "2026-11-15T08:00:00Z"], {"schedule": {"at": "2026-11-15T08:00:00Z"}}),
        (
            ["--schedule", "0 9 * * *", "--tz", "Europe/Paris"],
            {"schedule": {"cron": "0 9 * * *", "timezone": "Europe/Paris"}},
        ),
        (["--retries", "0"], {"retries": 0}),
        (["--retry-delay", "10s"], {"retry": {"delay": "10s"}}),
    ],
)
def test_each_option_has_its_field(options, said):
    api = FakeApi({"POST /jobs": JOB})
    assert run(api, "jobs", "create", "a", *options).exit_code == 0
    assert api.requests[0].body == {"name": "a", **said}


@pytest.mark.parametrize(
    "options",
    [
        ["--command", "a", "--python", "b"],
        ["--command", "a", "--limit", "k=2,3"],
        ["--command", "a", "--limit", "k=1/1s,2/1s"],
        ["--command", "a", "--limit", "k=²"],
        ["--every", "5m", "--schedule", "* * * * *"],
        ["--tz", "UTC"],
        ["--method", "GET"],
        ["--command", "a", "--redirects", "0"],
        ["--python", "f", "--user", "u"],
        ["--http", "http://x", "--user", "u"],
        ["--http", "http://x", "--process-limit", "cpu=1s"],
        ["--param", "novalue"],
        ["--priority", "10"],
        ["--nonsense"],
        [],
    ],
)
def test_contradictions_are_usage_errors_and_nothing_is_sent(options):
    api = FakeApi({"POST /jobs": JOB})
    name = ["a"] if options else []
    assert run(api, "jobs", "create", *name, *options).exit_code == 2
    assert api.requests == []


@pytest.mark.parametrize(
    ("field", "flag"), [("schedule.timezone", "--tz"), ("schedule", "--schedule"), ("schedule.every", "--every")]
)
def test_errors_name_the_option_of_a_field(field, flag):
    assert flag_of(field) == flag


def test_every_field_with_an_option_is_named_by_it():
    assert {row.name for row in JOB_TABLE.rows if not flag_of(row.name)} == {
        "triggers",
        "workflow",
        "schema",
        "timeouts",
    }
    assert (flag_of("keyFor"), flag_of("limits[0].key"), flag_of("with.day")) == ("--key-for", "--limit", "--with")


def test_a_file_is_the_base_and_options_win(tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text("name: daily\ncommand: python report.py\nretries: 1\n")
    api = FakeApi({"POST /jobs": JOB})
    run(api, "jobs", "create", "-f", str(path), "--retries", "5")
    assert api.requests[0].body == {"name": "daily", "command": "python report.py", "retries": 5}


def test_the_name_of_a_job_in_a_file_may_be_an_argument(tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text("command: python report.py\n")
    api = FakeApi({"POST /jobs": JOB})
    run(api, "jobs", "create", "daily", "-f", str(path))
    assert api.requests[0].body == {"name": "daily", "command": "python report.py"}
    refused = run(api, "jobs", "create", "-f", str(path))
    assert (refused.exit_code, "A job needs a name" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("error", "code"),
    [(Conflict("Taken.", "Choose another."), 4), (NotFound("No.", "Look."), 3), (BadInput("Bad.", "Mend it."), 2)],
)
def test_errors_are_printed_on_stderr_with_their_exit_code(error, code):
    result = run(FakeApi({"POST /jobs": error}), "jobs", "create", "a", "--command", "x")
    assert result.exit_code == code
    assert result.stdout == ""
    assert result.stderr == f"Error: {error.detail}\n{error.remedy}\n"


def test_list_is_a_table_for_people_and_the_apis_document_for_programs():
    api = FakeApi({"GET /jobs": page(JOB, next_cursor="c2")})

    table = run(api, "jobs", "list", "--state", "active", "--limit", "1")
    head, row = table.stdout.splitlines()
    assert head.split() == ["NAME", "STATUS", "SCHEDULE", "NEXT", "LAST", "ID"]
    assert "at 00:00 UTC, every day" in row
    assert "in 1h" in row
    assert "--cursor c2" in table.stderr
    assert api.requests[0].query == {"state": "active", "limit": "1"}

    assert json.loads(run(api, "jobs", "list", "-o", "json").stdout) == page(JOB, next_cursor="c2")
    assert yaml.safe_load(run(api, "jobs", "list", "-o", "yaml").stdout) == page(JOB, next_cursor="c2")


def test_an_empty_list_says_what_to_do():
    assert "horae jobs create" in run(FakeApi({"GET /jobs": page()}), "jobs", "list").stdout


def test_show_omits_empty_fields():
    shown = run(FakeApi({"GET /jobs/daily": JOB}), "jobs", "show", "daily").stdout
    assert "nextFireAt" in shown
    assert "params" not in shown


def test_a_weight_is_given_once_for_each_version():
    refused = run(FakeApi({}), "jobs", "rollout", "start", "daily", "--weight", "6=50", "--weight", "6=10")
    assert (refused.exit_code, "--weight names version 6 twice." in refused.stderr) == (2, True)


def test_show_mentions_an_active_rollout():
    versions = [{"version": 3, "share": 90.0}, {"version": 4, "share": 10.0}]
    told = {"jobId": "j", "job": "daily", "state": "on", "since": "2026-11-15T08:00:00Z", "versions": versions}
    shown = run(FakeApi({"GET /jobs/daily": JOB, "GET /jobs/daily/rollout": told}), "jobs", "show", "daily").stdout
    assert "A rollout is active: version 3 90 %, version 4 10 %." in shown
    over = FakeApi({"GET /jobs/daily": JOB, "GET /jobs/daily/rollout": {**told, "state": "promoted"}})
    assert "rollout" not in run(over, "jobs", "show", "daily").stdout


def test_edit_by_options_is_a_patch():
    api = FakeApi({"GET /jobs/daily": JOB, "PATCH /jobs/daily": {**JOB, "version": 4}})
    result = run(api, "jobs", "edit", "daily", "--retries", "5")
    assert api.requests[-1].body == {"retries": 5}
    assert "if-match" not in api.requests[-1].headers
    assert result.stdout == "Changed job daily: version 3 became 4.\n"


def test_edit_resets_fields_to_their_defaults():
    api = FakeApi({"GET /jobs/daily": JOB, "PATCH /jobs/daily": JOB})
    run(
        api,
        "jobs",
        "edit",
        "daily",
        "--timeout",
        "none",
        "--unset",
        "tag",
        "--unset",
        "timeouts",
        "--description",
        "none",
    )
    assert api.requests[-1].body == {"timeout": None, "tags": None, "timeouts": None, "description": "none"}
    refused = run(api, "jobs", "edit", "daily", "--unset", "colour")
    assert (refused.exit_code, "colour" in refused.stderr) == (2, True)


@pytest.mark.parametrize(("option", "field"), [("--retries", "retries"), ("--schedule", "schedule")])
def test_a_field_is_not_set_and_reset_at_once(option, field):
    refused = run(FakeApi({}), "jobs", "edit", "daily", option, "3", "--unset", field)
    assert (refused.exit_code, f"--unset resets {field}, which another option sets." in refused.stderr) == (2, True)


def test_edit_can_be_guarded_by_a_version():
    api = FakeApi({"GET /jobs/daily": JOB, "PATCH /jobs/daily": JOB})
    for more in ((), ("--dry-run",)):
        run(api, "jobs", "edit", "daily", "--retries", "3", "--if-version", "2", *more)
        assert api.requests[-1].headers["if-match"] == '"2"'


@pytest.mark.parametrize(
    "command", ["jobs edit a --retries 3", "jobs rollback a", "calendars set a --hours 09:00-17:00"]
)
def test_version_zero_is_refused_because_no_object_has_it(command):
    refused = run(FakeApi({}), *command.split(), "--if-version", "0")
    assert (refused.exit_code, "Invalid value for '--if-version'" in refused.stderr) == (2, True)


def test_edit_from_a_file_replaces_the_definition(tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text("name: daily\ncommand: true\n")
    api = FakeApi({"GET /jobs/daily": JOB, "PUT /jobs/daily": JOB})
    assert "unchanged" in run(api, "jobs", "edit", "daily", "-f", str(path)).stdout
    assert api.requests[-1].headers["if-match"] == '"3"'


def test_edit_without_options_opens_an_editor(monkeypatch):
    seen = []

    def editor(text, **_):
        seen.append(yaml.safe_load(text))
        return text.replace("retries: 3", "retries: 9")

    monkeypatch.setattr("click.edit", editor)
    api = FakeApi({"GET /jobs/daily": JOB, "PUT /jobs/daily": {**JOB, "version": 4}})

    run(api, "jobs", "edit", "daily")

    assert seen == [{"name": "daily", "schedule": "0 0 * * *", "command": "python report.py", "retries": 3}]
    assert api.requests[-1].body["retries"] == 9


def test_the_editor_keeps_hidden_fields_for_which_the_namespace_may_have_another_default(monkeypatch):
    monkeypatch.setattr("click.edit", lambda text, **_: text.replace("'true'", "ls"))
    hidden = {"retries": 0, "priority": 4, "queue": "default", "grace": "10s"}
    given = {"name": "daily", "command": "true"}
    api = FakeApi({"GET /jobs/daily": {"jobId": "1", "version": 3, **given, **hidden}, "PUT /jobs/daily": JOB})

    run(api, "jobs", "edit", "daily")

    assert api.requests[-1].body == {"name": "daily", "command": "ls", **hidden}


def test_an_editor_left_without_saving_changes_nothing(monkeypatch):
    monkeypatch.setattr("click.edit", lambda *_, **__: None)
    api = FakeApi({"GET /jobs/daily": JOB})
    result = run(api, "jobs", "edit", "daily")
    assert result.exit_code == 2
    assert api.lines == ["GET /jobs/daily"]


@pytest.mark.parametrize("verb", ["pause", "resume", "restore"])
def test_verbs_are_posts(verb):
    api = FakeApi({f"POST /jobs/daily/{verb}": JOB})
    result = run(api, "jobs", verb, "daily")
    assert result.exit_code == 0
    assert "daily" in result.stdout
    assert json.loads(run(api, "jobs", verb, "daily", "-o", "json").stdout) == JOB


def test_delete_says_how_to_undo_it():
    api = FakeApi({"DELETE /jobs/daily": {**JOB, "state": "deleted"}})
    result = run(api, "jobs", "delete", "daily", "--queued", "finish")
    assert "horae jobs restore 0190-1" in result.stdout
    assert api.requests[0].query == {"queued": "finish"}


def test_deleted_jobs_are_one_document():
    api = FakeApi({"DELETE /jobs/a": {**JOB, "name": "a"}, "DELETE /jobs/b": {**JOB, "name": "b"}})
    assert json.loads(run(api, "jobs", "delete", "a", "-o", "json").stdout)["name"] == "a"
    many = json.loads(run(api, "jobs", "delete", "a", "b", "-o", "json").stdout)
    assert [one["name"] for one in many["items"]] == ["a", "b"]
    partly = run(api, "jobs", "delete", "b", "gone", "-o", "json")
    assert (partly.exit_code, [one["name"] for one in json.loads(partly.stdout)["items"]]) == (3, ["b"])


def test_jobs_are_deleted_by_their_tag():
    api = FakeApi({"GET /jobs": page(JOB), "DELETE /jobs/daily": {**JOB, "state": "deleted"}})

    refused = run(api, "jobs", "delete", "--tag", "demo", input="n\n")
    assert refused.exit_code == 1
    assert [request.method for request in api.requests] == ["GET"]

    assert "Deleted job daily" in run(api, "jobs", "delete", "--tag", "demo", "--yes").stdout
    assert api.requests[-2].query == {"tag": "demo", "limit": "1000"}

    assert run(api, "jobs", "delete").exit_code == 2
    assert run(api, "jobs", "delete", "daily", "--tag", "demo").exit_code == 2
    assert run(FakeApi({"GET /jobs": page()}), "jobs", "delete", "--tag", "dem").exit_code == 3


def test_a_dry_run_shows_the_changes_and_writes_nothing():
    plan = {"dryRun": True, "name": "daily", "version": 4, "scheduleText": "every 5m", "notes": ["It is noted."]}
    change = {"path": "retries", "kind": "changed", "before": 3, "after": 5}
    api = FakeApi(
        {
            "GET /jobs/daily": JOB,
            "POST /jobs": plan,
            "PATCH /jobs/daily": {**plan, "changes": [change]},
            "PUT /jobs/daily": plan,
        }
    )
    created = run(api, "jobs", "create", "daily", "--command", "true", "--dry-run")
    assert (api.requests[-1].query, created.stdout) == (
        {"dryRun": "true"}, "Job daily would be created: version 4, every 5m.\nIt is noted.\n",
    )  # fmt: skip
    edited = run(api, "jobs", "edit", "daily", "--retries", "5", "--dry-run")
    assert edited.stdout == "Job daily would change: version 4, every 5m.\n- retries: 3\n+ retries: 5\nIt is noted.\n"
    assert (api.requests[-1].method, api.requests[-1].query) == ("PATCH", {"dryRun": "true"})


def test_an_edited_document_keeps_its_schema_and_secrets():
    job = {"name": "daily", "python": "digest", "schema": {"type": "object"}, "secrets": ["TOKEN"], "params": {}}
    assert editable(job) == {key: value for key, value in job.items() if key != "params"}


def test_versions_and_rollback():
    version = {
        "jobId": "1",
        "version": 2,
        "current": True,
        "createdAt": "2026-11-15T08:00:00Z",
        "definition": {"name": "daily", "retries": 1, "params": {}, "schema": None, "command": ["echo", "hi"]},
    }
    api = FakeApi({"GET /jobs/daily/versions": page(version), "POST /jobs/daily/rollback": {**JOB, "version": 5}})
    assert 'command: ["echo","hi"], retries: 1\n' in run(api, "jobs", "versions", "daily").stdout
    assert "version 5" in run(api, "jobs", "rollback", "daily", "2").stdout
    assert api.requests[-1].body == {"version": 2}
    run(api, "jobs", "rollback", "daily", "--to", "1", "--if-version", "4")
    assert (api.requests[-1].body, api.requests[-1].headers["if-match"]) == ({"version": 1}, '"4"')
    assert run(api, "jobs", "rollback", "daily", "1", "--to", "2").exit_code == 2


def test_without_a_version_a_rollback_goes_to_the_one_before():
    api = FakeApi({"GET /jobs/daily": JOB, "POST /jobs/daily/rollback": {**JOB, "version": 4}})

    run(api, "jobs", "rollback", "daily")

    assert (api.requests[-1].body, api.requests[-1].headers["if-match"]) == ({"version": 2}, '"3"')


@pytest.mark.parametrize("command", ["diff", "rollback"])
def test_the_first_version_has_no_earlier_one(command):
    api = FakeApi({"GET /jobs/daily": {**JOB, "version": 1}})
    refused = run(api, "jobs", command, "daily")
    assert (refused.exit_code, "Job daily has no version before version 1." in refused.stderr) == (2, True)
    assert api.lines == ["GET /jobs/daily"]
    assert "Invalid value for '[A]': 0" in run(api, "jobs", "diff", "daily", "0").stderr


def test_a_diff_is_read_line_by_line():
    changes = [
        {"path": "retries", "kind": "changed", "before": 1, "after": 3},
        {"path": "command", "kind": "changed", "before": ["a"], "after": ["a", "b"]},
        {"path": "description", "kind": "added", "after": "What it is for."},
        {"path": "tags", "kind": "changed", "before": {"team": "data"}, "after": {}},
    ]
    api = FakeApi(
        {
            "GET /jobs/daily": JOB,
            "GET /jobs/daily/versions/2/diff/3": {"jobId": "1", "job": "daily", "changes": changes},
            "GET /jobs/daily/versions/1/diff/1": {"jobId": "1", "job": "daily", "changes": []},
        }
    )

    assert run(api, "jobs", "diff", "daily").stdout == (
        "- retries: 1\n+ retries: 3\n- command:\n-   - a\n+ command:\n+   - a\n+   - b\n"
        "+ description: What it is for.\n- tags:\n-   team: data\n+ tags: {}\n"
    )
    assert json.loads(run(api, "jobs", "diff", "daily", "2", "3", "-o", "json").stdout)["changes"] == changes
    assert "are the same" in run(api, "jobs", "diff", "daily", "1", "1").stdout


def test_trigger_sends_the_given_options():
    api = FakeApi({"POST /jobs/daily/trigger": {"executionId": "e1", "status": "queued", "deduplicated": False}})
    result = run(
        api, "jobs", "trigger", "daily", "--param", "n=1", "--params", '{"m": 2, "n": 0}', "--delay", "10m",
        "--key", "k", "--priority", "9", "--tag", "a=b",
    )  # fmt: skip
    assert result.stdout == "Execution e1 is queued.\n"
    assert api.requests[0].body == {
        "params": {"m": 2, "n": 1}, "delay": "10m", "key": "k", "priority": 9, "tags": {"a": "b"},
    }  # fmt: skip


def refusing(field: str, remedy: str) -> FakeApi:
    body = {"type": "bad-input", "detail": "'x' is not right.", "remedy": remedy, "field": field}
    return FakeApi({"POST /jobs": ApiResponse(status=400, body=msgspec.json.encode(body))})


@pytest.mark.parametrize(
    ("field", "remedy", "flag", "told"),
    [
        ("timeout", 'Write it as "5m".', "--timeout", 'Write it as "5m".'),
        ("schedule.every", 'Write it as "5m".', "--every", 'Write it as "5m".'),
        ("retry.delay", 'Write it as "5m".', "--retry-delay", 'Write it as "5m".'),
        (
            "needs[0]",
            'Write ["gpu=a100", "ssd"].',
            "--need",
            "--need LABEL: Labels its worker must carry, such as gpu=a100",
        ),
        ("dependencies", "Create it first.", "--depends-on", "Create it first."),
        ("http.url", 'Write {"url": "https://..."}.', "--http", "--http URL: Send an HTTP request."),
        ("retries", 'Set "retries": 0.', "--retries", "--retries N: Further tries after the job's own failures"),
        ("command[1]", 'Write "a", ["a"].', "--command", "--command COMMAND: Run a program"),
        ("command[1]", '"$${" is "${"; see --shell.', "--command", '"$${" is "${"; see --shell.'),
    ],
)
def test_errors_name_the_given_options(field, remedy, flag, told):
    result = run(refusing(field, remedy), "jobs", "create", "daily", "--command", "true")
    assert result.exit_code == 2
    assert f"Error: {flag}: 'x' is not right.\n{told}" in result.stderr


def test_errors_about_a_file_name_its_fields(tmp_path):
    (tmp_path / "job.yaml").write_text("name: daily\ncommand: 'true'\ntimeout: x\n")
    result = run(refusing("timeout", "Write 5m."), "jobs", "create", "-f", str(tmp_path / "job.yaml"))
    assert "Error: 'x' is not right." in result.stderr


def test_trigger_shows_why_an_execution_stays_queued():
    queued = {"executionId": "e1", "status": "queued"}
    api = FakeApi(
        {"POST /jobs/daily/trigger": queued, "GET /executions/e1": {**queued, "hint": "No live worker knows it."}}
    )
    result = run(api, "jobs", "trigger", "daily")
    assert (result.stdout, result.stderr) == ("Execution e1 is queued.\n", "No live worker knows it.\n")


@pytest.mark.parametrize(
    "command", [("jobs", "trigger", "daily", "--wait"), ("executions", "show", "e1"), ("executions", "cancel", "e1")]
)
def test_waiting_ends_in_time(command):
    queued = {"executionId": "e1", "status": "running"}
    api = FakeApi(
        {
            "POST /jobs/daily/trigger": queued,
            "GET /executions/e1": queued,
            "POST /executions/e1/cancel": {"outcome": "requested", "execution": queued},
        }
    )
    result = run(api, *command, "--timeout", "5s")
    assert result.exit_code == 1
    assert "has not ended after 5s" in result.stderr
    assert "horae executions show e1 --wait" in result.stderr


@pytest.mark.parametrize(("status", "code"), [("success", 0), ("failed", 1), ("cancelled", 1), ("skipped", 0)])
def test_trigger_waits_and_exits_with_the_outcome(status, code):
    states = iter(["queued", "running", status])
    final = {"executionId": "e1", "result": {"rows": 2}, "attempt": 2, "errorMessage": "boom" if code else None}
    final |= {"startedAt": "2026-11-15T08:00:00Z", "completedAt": "2026-11-15T08:00:02.5Z"}
    api = FakeApi(
        {
            "POST /jobs/daily/trigger": {"executionId": "e1", "status": "queued"},
            "GET /executions/e1": lambda _: {**final, "status": next(states, status)},
        }
    )
    result = run(api, "jobs", "trigger", "daily", "--wait")
    assert result.exit_code == code
    assert f"Execution e1: {status} after 2.5 s, attempt 2." in result.stdout
    assert 'Result: {"rows":2}' in result.stdout
    assert ("boom" in result.stderr) == bool(code)


def test_a_waiting_user_is_shown_a_hint():
    states = iter(["queued"] * 3)
    api = FakeApi(
        {
            "POST /jobs/daily/trigger": {"executionId": "e1", "status": "queued"},
            "GET /executions/e1": lambda _: {
                "executionId": "e1",
                "status": next(states, "success"),
                "hint": "No worker.",
            },
        }
    )
    assert run(api, "jobs", "trigger", "daily", "--wait").stderr == "No worker.\n"


def test_trigger_follows_the_log():
    logs = {"items": [{"text": "hello", "stream": "stdout"}, {"text": "oh", "stream": "stderr"}], "nextCursor": "1"}
    api = FakeApi(
        {
            "POST /jobs/daily/trigger": {"executionId": "e1", "status": "queued"},
            "GET /executions/e1/logs": lambda r: {**logs, "ended": True, **({"items": []} if r.query else {})},
            "GET /executions/e1": {"executionId": "e1", "status": "success"},
        }
    )
    result = run(api, "jobs", "trigger", "daily", "-f")
    assert result.stdout.startswith("hello\n")
    assert result.stderr == "oh\n"
    as_json = run(api, "jobs", "trigger", "daily", "-f", "-o", "json")
    assert json.loads(as_json.stdout)["status"] == "success"
