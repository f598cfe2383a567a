"""Versions are compared, tried on a share of executions and promoted; jobs follow their template."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.fleet import KEY, Fleet
from tests.acceptance.test_explain import begin
from tests.waiting import eventually_sync

pytestmark = pytest.mark.timeout(120)

TEMPLATE = """\
kind: template
name: greet
parameters: {who: {type: string}}
job: {command: [echo, WORD, "${with.who}"]}
---
{name: greet-eu, template: greet, with: {who: eu}}
"""


def horae(fleet: Fleet, *arguments: str) -> Any:
    """Return the JSON output of a command."""
    url = next(iter(fleet.urls.values()))
    line = [sys.executable, "-m", "horae.cli.main", *arguments, "-o", "json", "--server", url, "--api-key", KEY]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_canary_is_promoted_and_jobs_follow_their_template(fleet: Fleet, tmp_path: Path):
    begin(fleet)
    fleet.post("/jobs", {"name": "work", "command": "true"})
    horae(fleet, "jobs", "rollout", "start", "work", "--command", "echo", "--share", "50%", "--by", "${params.n}")
    answer = fleet.post("/executions", {"job": "work", "items": [{"n": n} for n in range(20)]})
    ids = [item["executionId"] for item in answer["items"]]
    versions = [fleet.until(id, "success")["jobVersion"] for id in ids]
    assert set(versions) == {1, 2}

    def counted() -> bool:
        arms = {arm["version"]: arm for arm in horae(fleet, "jobs", "rollout", "show", "work")["versions"]}
        return all(arms[version]["succeeded"] == versions.count(version) for version in (1, 2))

    eventually_sync(counted)
    assert horae(fleet, "jobs", "rollout", "promote", "work")["state"] == "promoted"
    assert fleet.until(fleet.submit("work"), "success")["jobVersion"] == 2
    (change,) = horae(fleet, "jobs", "diff", "work")["changes"]
    assert (change["path"], change["before"], change["after"]) == ("command", ["true"], ["echo"])

    file = tmp_path / "greet.yaml"
    for word in ("hello", "goodbye"):
        file.write_text(TEMPLATE.replace("WORD", word))
        horae(fleet, "apply", "-f", str(file))
    job = fleet.get("/jobs/greet-eu")
    assert (job["version"], job["command"]) == (2, ["echo", "goodbye", "eu"])
    assert fleet.request("DELETE", "/templates/greet").status_code == 409
