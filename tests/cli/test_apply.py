"""`horae apply`."""

import json

import pytest

from tests.cli.fake_api import Applying, problem, run

JOBS = """
jobs:
  - {name: report, command: python report.py, dependencies: [extract]}
  - {name: extract, command: python extract.py}
"""


def test_jobs_are_created_changed_or_left_in_the_order_they_need(tmp_path):
    path, api = tmp_path / "jobs.yaml", Applying()
    path.write_text(JOBS)

    assert run(api, "apply", "-f", str(path)).stdout == "created    extract\ncreated    report\n"
    assert run(api, "apply", "-f", str(path)).stdout == "unchanged  extract\nunchanged  report\n"
    path.write_text(JOBS.replace("extract.py", "extract.py --all"))
    assert run(api, "apply", "-f", str(path)).stdout == "changed    extract: command\nunchanged  report\n"
    path.write_text(JOBS.replace("extract.py", "extract.py --some"))
    outcome = json.loads(run(api, "apply", "-f", str(path), "-o", "json").stdout)
    assert [(item["name"], item["outcome"]) for item in outcome["items"]] == [
        ("extract", "changed"),
        ("report", "unchanged"),
    ]


WORKFLOWS = """
jobs:
  - name: etl
    workflow:
      steps:
        - {name: a, command: x, undo: {job: undone}}
        - {name: b, steps: [{name: c, job: load, undo: unload}]}
      finally: [{name: d, job: clean}]
  - {name: load, command: x}
  - {name: unload, command: x}
  - {name: clean, command: x}
  - {name: undone, workflow: [{name: e, job: load}]}
"""


def test_what_workflows_run_comes_before_them(tmp_path):
    (tmp_path / "jobs.yaml").write_text(WORKFLOWS)
    said = run(Applying(), "apply", "-f", str(tmp_path / "jobs.yaml")).stdout
    order = [line.split()[1] for line in said.splitlines()]
    assert order[-1] == "etl"
    assert order.index("load") < order.index("undone")


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
    assert said.endswith("Nothing was written: this is what would be done.\n")
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
def test_a_file_may_hold_one_a_list_or_documents(text):
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
        ("[{name: a}, {name: a}]", "defined twice"),
        ("[{name: a, dependencies: [b]}, {name: b, dependencies: [a]}]", "in a circle"),
    ],
)
def test_a_bad_file_changes_nothing(text, said):
    api = Applying()
    result = run(api, "apply", "-f", "-", input=text)
    assert result.exit_code == 2
    assert said in result.stderr
    assert api.requests == []


def test_nothing_to_apply_and_no_such_file():
    assert run(Applying(), "apply").exit_code == 2
    assert "cannot be read" in run(Applying(), "apply", "-f", "gone.yaml").stderr
