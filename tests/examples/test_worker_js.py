"""The worker in JavaScript passes the same tests as the Python worker (tests/acceptance/test_fleet.py)."""

import pytest

from tests.acceptance.test_fleet import (  # noqa: F401
    test_a_drained_worker_hands_back_without_burning_an_attempt,
    test_a_worker_gets_a_submission_made_at_another_server,
    test_an_at_most_once_execution_ends_with_its_worker,
    test_the_report_of_a_frozen_worker_is_refused,
    test_two_servers_share_the_work_and_either_may_be_killed,
    test_work_continues_when_a_worker_is_killed,
)
from tests.examples.fleet_js import WORKER, JsFleet, NodeProcess

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def fleet(node, tmp_path):
    fleet = JsFleet(tmp_path, f"sqlite:///{tmp_path}/horae.db", node)
    yield fleet
    print(fleet.logs())
    fleet.close()


@pytest.fixture
def pg_fleet(node, postgres_url, tmp_path):
    fleet = JsFleet(tmp_path, postgres_url, node)
    yield fleet
    print(fleet.logs())
    fleet.close()


def test_the_worker_is_short_and_has_no_dependencies():
    lines = WORKER.read_text().splitlines()
    assert len(lines) < 310
    assert all(len(line) <= 120 for line in lines)
    assert [line for line in lines if line.startswith("import") and '"node:' not in line] == []


def test_texts_that_cannot_be_stored_are_repaired(pg_fleet):
    pg_fleet.add_server("a")
    pg_fleet.post("/jobs", {"name": "unfit", "python": "unfit", "retries": 1, "retry": {"delay": "10ms"}})
    pg_fleet.add_worker("w")
    done = pg_fleet.until(pg_fleet.submit("unfit"), "success", "failed")
    assert (done["status"], done["attempt"], done["result"]) == ("success", 2, {"\ufffd": "\ufffd"})
    assert done["message"] == "half a \ufffd"
    lines = pg_fleet.get(f"/executions/{done['executionId']}/logs")["items"]
    assert [line["text"] for line in lines] == ["a lone \ufffd, a \ufffd, a \\ud800 and a \U0001f600"] * 2
    attempts = pg_fleet.get(f"/executions/{done['executionId']}/attempts")["items"]
    assert attempts[0]["errorMessage"] == "a text with \ufffd, not an error"


def test_an_unreadable_result_does_not_affect_other_results(fleet, tmp_path):
    fleet.add_server("a")
    fleet.post("/jobs", {"name": "deep", "python": "deep"})
    fleet.post("/jobs", {"name": "waits_for", "python": "waits_for"})
    fleet.add_worker("w")
    neighbours = [fleet.submit("waits_for", {"path": str(tmp_path / "go")}) for _ in range(3)]
    done = fleet.until(fleet.submit("deep"), "success", "failed")
    (tmp_path / "go").touch()

    assert (done["status"], done["error"]["type"], done["attempt"]) == ("failed", "OutcomeRefused", 1)
    ends = [fleet.until(id, "success", "failed") for id in neighbours]
    assert [(one["status"], one["attempt"]) for one in ends] == [("success", 1)] * 3


def test_a_refused_key_ends_the_worker_with_the_reason(fleet):
    fleet.add_server("a")
    worker = fleet.add_worker("known")
    stranger = NodeProcess(fleet.folder, "stranger", fleet.node, fleet.functions, {"HORAE_URL": fleet.urls["a"]})
    fleet.workers["stranger"] = stranger
    assert stranger.wait(20) == 1
    assert "this worker cannot go on: This key is not valid" in stranger.log.read_text()
    assert worker.running
