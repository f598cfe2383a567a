"""The page of templates: its example can be applied, and creates the jobs that it names."""

import re

import yaml

from tests.docs.pages import ROOT
from tests.server.conftest import Api


async def test_the_example_creates_the_jobs_that_it_names(api: Api):
    (example,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/templates.md").read_text(), re.DOTALL)
    template, *jobs = yaml.safe_load_all(example)

    assert (await api.put(f"/api/v1/templates/{template['name']}", json=template)).status_code == 201
    made = [(await api.post("/api/v1/jobs", json=job)).json() for job in jobs]

    assert [job["command"][2:4] for job in made] == [["eu", "--keep=7"], ["us", "--keep=30"]]
    assert [(job["schedule"], job["tags"]) for job in made] == [
        ("0 3 * * *", {"region": "eu"}), ("0 9 * * *", {"region": "us"}),
    ]  # fmt: skip
