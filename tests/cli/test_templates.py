"""`horae templates`, and jobs created from them."""

from pathlib import Path

from tests.cli.fake_api import Applying, FakeApi, run

TEMPLATE = {
    "templateId": "1", "name": "backup", "version": 2, "description": "", "parameters": {"region": {}},
    "job": {"command": "true"}, "jobs": ["eu"],
    "createdAt": "2026-11-15T08:00:00Z", "updatedAt": "2026-11-15T08:00:00Z",
    "affected": [
        {"jobId": "2", "job": "eu", "changes": [{"path": "retries", "kind": "changed", "before": 1, "after": 2}]},
        {"jobId": "3", "job": "us", "changes": [], "error": "It has no name."},
    ],
}  # fmt: skip


def test_put_shows_what_changes(tmp_path: Path):
    file = tmp_path / "backup.yaml"
    file.write_text("name: backup\nparameters: {region: {type: string}}\njob: {command: 'true'}\n")
    api = FakeApi({"PUT /templates/backup": TEMPLATE})

    dry = run(api, "templates", "put", "-f", str(file), "--dry-run")
    assert dry.stdout == (
        "eu:\n  - retries: 1\n  + retries: 2\nus: It has no name.\n"
        "Version 2 of template backup would be refused: 1 job could no longer be made from it. Nothing was changed.\n"
    )
    assert api.requests[-1].query == {"dryRun": "true"}
    whole = FakeApi({"PUT /templates/backup": {**TEMPLATE, "affected": TEMPLATE["affected"][:1]}})
    dry = run(whole, "templates", "put", "-f", str(file), "--dry-run", "--if-version", "2")
    assert "would change 1 job. Nothing was changed." in dry.stdout
    assert whole.requests[-1].headers["if-match"] == '"2"'
    run(api, "templates", "put", "backup", "-f", str(file), "--if-version", "1")
    assert (api.requests[-1].query, api.requests[-1].headers["if-match"]) == ({}, '"1"')


def test_apply_sends_templates_before_the_jobs_created_from_them(tmp_path: Path):
    file = tmp_path / "all.yaml"
    file.write_text(
        "{name: eu, template: backup, with: {region: eu}}\n---\n"
        "{kind: template, name: backup, parameters: {region: {}}, job: {command: 'true'}}\n"
    )
    api = Applying()

    assert run(api, "apply", "-f", str(file)).stdout == "created    template backup\ncreated    eu\n"
    assert list(api.kept) == [("template", "backup"), ("job", "eu")]


def test_a_job_says_what_it_is_made_from():
    job = {"jobId": "1", "name": "eu", "version": 1, "state": "active", "status": "idle"}
    api = FakeApi({"POST /jobs": job})
    run(api, "jobs", "create", "eu", "--template", "backup", "--with", "region=eu", "--with", "keep=3")
    assert api.requests[0].body == {"name": "eu", "template": "backup", "with": {"region": "eu", "keep": 3}}
