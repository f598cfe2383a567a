"""`horae apply`."""

import json

import pytest

from tests.cli.fake_api import Applying, problem, run

JOBS = """
jobs:
  - {name: report, command: python report.py, dependencies: [extract]}
  - {name: extract, command: python extract.py}
"""


def test_jobs_are_created_changed_or_unchanged(tmp_path):
    path, api = tmp_path / "jobs.yaml", Applying()
    path.write_text(JOBS)

    assert run(api, "apply", "-f", str(path)).stdout == "created    report\ncreated    extract\n"
    assert run(api, "apply", "-f", str(path)).stdout == "unchanged  report\nunchanged  extract\n"
    path.write_text(JOBS.replace("extract.py", "extract.py --all"))
    assert run(api, "apply", "-f", str(path)).stdout == "unchanged  report\nchanged    extract: command\n"
    path.write_text(JOBS.replace("extract.py", "extract.py --some"))
    outcome = json.loads(run(api, "apply", "-f", str(path), "-o", "json").stdout)
    assert [(item["name"], item["outcome"]) for item in outcome["items"]] == [
        ("report", "unchanged"),
        ("extract", "changed"),
    ]


APP = """
from horae import App

app = App()

@app.job
def fine(): ...

@app.job(schedule="61 * * * *")
def wrong(): ...
"""


def test_a_refused_function_is_named_with_its_file_and_line(tmp_path, monkeypatch):
    (tmp_path / "shop_to_apply.py").write_text(APP)
    monkeypatch.syspath_prepend(str(tmp_path))
    api = Applying()
    api.routes["POST /apply"] = problem(400, "bad-input", "wrong: 61 is no minute.", field="jobs[1].schedule")
    refused = run(api, "apply", "--app", "shop_to_apply:app")
    assert f"wrong: 61 is no minute. ({tmp_path}/shop_to_apply.py, line 9)" in refused.stderr


def test_a_dry_run_says_that_nothing_was_written(tmp_path):
    (tmp_path / "jobs.yaml").write_text(JOBS)
    api = Applying()
    said = run(api, "apply", "-f", str(tmp_path / "jobs.yaml"), "--dry-run").stdout
    assert said.endswith("Nothing was written: these changes would be made.\n")
    assert api.requests[0].query == {"dryRun": "true"}


@pytest.mark.parametrize(
    "text",
    [
        "name: a\ncommand: x",
        "[{name: a, command: x}]",
        '{"jobs": [{"name": "a", "command": "x"}]}',
        "---\nname: a\ncommand: x\n---\n",
    ],
)
def test_a_file_may_contain_one_job_a_list_or_several_documents(text):
    api = Applying()
    assert run(api, "apply", "-f", "-", input=text).exit_code == 0
    assert list(api.kept) == [("job", "a")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "defines no job"),
        ("command: x", "without a name"),
        ("[1]", "without a name"),
        ("a: [", "not valid YAML"),
    ],
)
def test_a_bad_file_changes_nothing(text, said):
    api = Applying()
    result = run(api, "apply", "-f", "-", input=text)
    assert result.exit_code == 2
    assert said in result.stderr
    assert api.requests == []


def test_an_empty_command_and_a_missing_file_are_refused():
    assert run(Applying(), "apply").exit_code == 2
    assert "cannot be read" in run(Applying(), "apply", "-f", "gone.yaml").stderr
