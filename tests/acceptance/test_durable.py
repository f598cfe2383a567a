"""Durable functions in real processes, killed after each of their steps."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.fleet import KEY, Fleet
from tests.waiting import eventually_sync

pytestmark = pytest.mark.timeout(180)
STEPS = 7  # of a journey
DONE = ["reserve", "charge", "charge", {"by": "ada"}, "mail0", "mail1", "mail2", 7]
EFFECTS = ["charge", "charge", "mail0", "mail1", "mail2", "reserve"]


@pytest.fixture
def fleet(tmp_path, postgres_url):
    fleet = Fleet(tmp_path, postgres_url)
    try:
        fleet.add_server("a")
        yield fleet
        print(fleet.logs())
    finally:
        fleet.close()


def begin(fleet: Fleet, job: str, kill: int) -> tuple[str, Path]:
    folder = fleet.folder / f"{job}-{kill}"
    folder.mkdir()
    return fleet.submit(job, {"folder": str(folder), "kill": kill}), folder


def effects(folder: Path) -> list[str]:
    return sorted((folder / "effects").read_text().split())


def register(fleet: Fleet) -> None:
    from tests.acceptance.jobs import app

    for job in ("travels", "travels_here"):
        fleet.post("/jobs", app.jobs[job].definition())


def test_every_effect_happens_once_although_each_step_is_killed(fleet):
    register(fleet)
    worker = fleet.add_worker("w", concurrency=4)
    runs = [begin(fleet, "travels", kill) for kill in range(STEPS + 1)]
    for at, (id, _) in enumerate(runs):
        if at % 2:  # before it waits
            fleet.post(f"/executions/{id}/signals", {"name": "go", "payload": {"by": "ada"}})
            continue
        eventually_sync(lambda id=id: fleet.execution(id)["reason"] == "signal", within=40)
        command = [
            sys.executable,
            "-m",
            "horae.cli.main",
            "executions",
            "signal",
            id,
            "go",
            "--payload",
            '{"by": "ada"}',
        ]
        env = {"HORAE_URL": fleet.urls["a"], "HORAE_KEY": KEY}
        subprocess.run(command, check=True, env=env | {"PATH": "", "PYTHONPATH": ":".join(sys.path)})

    for kill, (id, folder) in enumerate(runs):
        done = fleet.until(id, "success", "failed", within=60)
        assert (done["status"], done["result"]) == ("success", DONE), json.dumps(done)
        assert effects(folder) == EFFECTS
        assert (folder / "died").exists() == (kill > 0)
        assert done["retryCount"] == (kill > 0)
    refused = fleet.request("POST", f"/executions/{runs[0][0]}/signals", {"name": "go"})
    assert (refused.status_code, "has ended" in refused.json()["detail"]) == (409, True)

    id, folder = begin(fleet, "travels_here", 2)
    assert worker.wait(30) != 0
    fleet.add_worker("second")
    fleet.post(f"/executions/{id}/signals", {"name": "go", "payload": {"by": "ada"}})
    done = fleet.until(id, "success", "failed", within=60)
    assert (done["status"], done["result"], effects(folder)) == ("success", DONE, EFFECTS)
    assert done["workerId"] == "second"
