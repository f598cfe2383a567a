"""`horae apply`."""

import json

import pytest

from horae.errors import BadInput, NotFound
from tests.cli.fake_api import FakeApi, Request, run


class Jobs(FakeApi):
    """Keeps jobs by name; an equal definition keeps its version."""

    def __init__(self) -> None:
        self.kept: dict[str, dict] = {}
        super().__init__({"POST /jobs": self.create, "GET /jobs/{ref}": self.get, "PUT /jobs/{ref}": self.replace})

    def create(self, request: Request):
        self.kept[request.body["name"]] = {**request.body, "version": 1, "jobId": request.body["name"]}
        return self.kept[request.body["name"]]

    def get(self, request: Request):
        name = request.path.rpartition("/")[2]
        return self.kept.get(name) or NotFound(f"No job named {name}.")

    def replace(self, request: Request):
        name = request.path.rpartition("/")[2]
        before = self.kept[name]
        same = {k: v for k, v in before.items() if k not in ("version", "jobId")} == request.body
        self.kept[name] = {**request.body, "jobId": name, "version": before["version"] + (not same)}
        return self.kept[name]


JOBS = """
jobs:
  - {name: report, command: python report.py, dependencies: [extract]}
  - {name: extract, command: python extract.py}
"""


def test_jobs_are_created_changed_or_left_in_the_order_they_need(tmp_path):
    path, api = tmp_path / "jobs.yaml", Jobs()
    path.write_text(JOBS)

    assert run(api, "apply", "-f", str(path)).stdout == "created    extract\ncreated    report\n"
    assert run(api, "apply", "-f", str(path)).stdout == "unchanged  extract\nunchanged  report\n"
    path.write_text(JOBS.replace("extract.py", "extract.py --all"))
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
    said = run(Jobs(), "apply", "-f", str(tmp_path / "jobs.yaml")).stdout
    order = [line.split()[1] for line in said.splitlines()]
    assert order[-1] == "etl"
    assert order.index("load") < order.index("undone")


def test_of_several_jobs_the_refused_one_is_named(tmp_path):
    (tmp_path / "jobs.yaml").write_text(JOBS)
    api = Jobs()
    api.routes["POST /jobs"] = BadInput("It runs nothing.", "Say what.")
    refused = run(api, "apply", "-f", str(tmp_path / "jobs.yaml"))
    assert "extract: It runs nothing." in refused.stderr


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
    api = Jobs()
    assert run(api, "apply", "-f", "-", input=text).exit_code == 0
    assert list(api.kept) == ["a"]


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
    api = Jobs()
    result = run(api, "apply", "-f", "-", input=text)
    assert result.exit_code == 2
    assert said in result.stderr
    assert api.requests == []


def test_nothing_to_apply_and_no_such_file():
    assert run(Jobs(), "apply").exit_code == 2
    assert "cannot be read" in run(Jobs(), "apply", "-f", "gone.yaml").stderr
