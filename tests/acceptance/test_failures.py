"""The handling of failures, by the command line and REST: with `horae up`, and with two servers on PostgreSQL."""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.acceptance.fleet import APP, FAST, KEY, Fleet, Process, free_port
from tests.waiting import eventually_sync

pytestmark = pytest.mark.timeout(180)
EXIT = ["sh", "-c", "echo no luck >&2; exit ${params.code}"]


@pytest.fixture(params=["up", "two servers"])
def fleet(request, tmp_path):
    """A server on SQLite with its worker, or two servers on PostgreSQL with one worker."""
    up = request.param == "up"
    fleet = Fleet(tmp_path, f"sqlite:///{tmp_path}/horae.db" if up else request.getfixturevalue("postgres_url"))
    try:
        if up:
            fleet.urls["up"] = f"http://127.0.0.1:{(port := free_port())}"
            fleet.servers["up"] = Process(tmp_path, "up", ["up", "--data", str(tmp_path), "--port", str(port)], {})
            eventually_sync(lambda: fleet.is_ready(fleet.urls["up"]), within=20)
        else:
            fleet.add_server("a")
            fleet.add_server("b")
            fleet.add_worker("w")
        yield fleet
        print(fleet.logs())
    finally:
        fleet.close()


@pytest.fixture
def site():
    """An HTTP server that is busy at first and answers with Retry-After."""

    class Busy(BaseHTTPRequestHandler):
        asked = 0

        def do_POST(self):
            Busy.asked += 1
            self.send_response(503 if Busy.asked == 1 else 204)
            self.send_header("Retry-After", "1")
            self.end_headers()

        def log_message(self, *_):
            """Refuse all connections, since nothing listens."""

    server = HTTPServer(("127.0.0.1", 0), Busy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def horae(fleet, *args):
    """Return the command line's output as JSON."""
    done = subprocess.run(
        [sys.executable, "-m", "horae.cli.main", *args, "-o", "json"],
        env=os.environ | FAST | {"HORAE_URL": next(iter(fleet.urls.values())), "HORAE_KEY": KEY},
        cwd=fleet.folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def ends(fleet, job, params=None):
    """Return the failure of an execution and the number of its attempt."""
    done = fleet.until(fleet.submit(job, params), "failed", within=60)
    return done["reason"], done["attempt"]


def test_failures(fleet, site):
    rules_and_budgets(fleet, site)
    timeouts(fleet)
    poison(fleet)
    pauses(fleet)
    dead_letters(fleet)


def rules_and_budgets(fleet, site):
    """Check which failures are retried, how often, and when."""
    rules = ("--retries", "1", "--retry-delay", "50ms", "--give-up-on", "exit:64-78", "--budget", "timeout=0")
    horae(fleet, "jobs", "create", "codes", "--command", "sh -c 'exit ${params.code}'", *rules, "--timeout", "10s")
    assert ends(fleet, "codes", {"code": 1}) == ("retries", 2)
    assert ends(fleet, "codes", {"code": 65}) == ("permanent", 1)
    retry = {"delay": "1h", "retryOn": ["http:5xx"]}
    fleet.post("/jobs", {"name": "busy", "http": site, "retries": 1, "retry": retry})
    assert fleet.until(fleet.submit("busy"), "success")["attempt"] == 2, "it was asked to come again in a second"


def timeouts(fleet):
    """Check that each kind of timeout is named as the reason."""
    retry = {"delay": "50ms", "budgets": {"timeout": 1}}
    jobs = {
        "queueTimeout": {"timeouts": {"queue": "1s"}, "needs": ["nobody"]},
        "runTimeout": {"timeouts": {"run": "300ms"}, "retry": retry},
        "heartbeatTimeout": {"timeouts": {"heartbeat": "300ms"}, "retry": {"budgets": {"timeout": 0}}},
        "totalTimeout": {"timeouts": {"total": "1s"}, "retries": 1000, "retry": {"delay": "50ms"}},
    }
    for reason, fields in jobs.items():
        fleet.post("/jobs", {"name": reason, "command": ["sleep", "60"], "grace": "100ms", **fields})
    ids = {reason: fleet.submit(reason) for reason in jobs}
    found = {reason: fleet.until(id, "failed", within=60) for reason, id in ids.items()}
    assert {one["reason"] for one in found.values()} == set(jobs)
    assert (found["queueTimeout"]["attempt"], found["runTimeout"]["attempt"]) == (0, 2)
    assert {one["error"]["kind"] for one in found.values()} == {"timeout"}


def poison(fleet):
    """Check that a job may exclude retries after the loss of its worker."""
    args = ["worker", "--server", next(iter(fleet.urls.values())), "--key", KEY, "--app", APP, "--name", "victim"]
    fleet.workers["victim"] = Process(fleet.folder, "victim", [*args, "--label", "victim"], {})
    fields = {"command": ["sleep", "60"], "needs": ["victim"], "retry": {"budgets": {"lost": 0}}}
    fleet.post("/jobs", {"name": "kills", **fields})
    id = fleet.submit("kills")
    fleet.until(id, "running")
    fleet.workers["victim"].kill()
    assert fleet.until(id, "failed", within=60)["reason"] == "poison"


def pauses(fleet):
    """Check that a job that fails repeatedly stops firing until it is resumed."""
    trigger = {"name": "hourly", "every": "1h"}
    fleet.post("/jobs", {"name": "flaky", "command": EXIT, "triggers": [trigger], "pauseAfter": 2})
    for _ in range(2):
        ends(fleet, "flaky", {"code": 9})
    paused = eventually_sync(lambda: horae(fleet, "jobs", "show", "flaky")["autoPaused"], within=30)
    assert (paused["failures"], paused["triggers"]) == (2, ["hourly"])
    said = [one["message"] for one in fleet.get("/jobs/flaky/explain")["blockers"] if one["gate"] == "trigger-paused"]
    assert "failed in a row" in said[0]
    assert horae(fleet, "jobs", "resume", "flaky")["autoPaused"] is None
    assert fleet.get("/jobs/flaky/triggers")["items"][0]["state"] == "active"


def dead_letters(fleet):
    """Check that dead letters are found by filters, edited and replayed at a rate, and link to their replay."""
    letters = horae(fleet, "dlq", "list", "--job", "flaky", "--text", "NO LUCK", "--reason", "retries")["items"]
    assert len(letters) == 2
    first = letters[0]["execution"]["executionId"]
    again = horae(fleet, "dlq", "retry", first, "--param", "code=0")["executionIds"][0]
    assert fleet.until(again, "success")["retryOf"] == first
    assert horae(fleet, "executions", "show", first)["retriedAs"] == again

    for _ in range(3):
        ends(fleet, "flaky", {"code": 9})
    made = horae(fleet, "dlq", "replay", "--job", "flaky", "--rate", "2/1s", "--param", "code=0")
    assert made["total"] == 4
    done = eventually_sync(
        lambda: (r := horae(fleet, "dlq", "replays", "show", made["replayId"]))["state"] == "done" and r, within=60
    )
    assert (done["retried"], done["skipped"]) == (4, 0)
    assert horae(fleet, "dlq", "list", "--job", "flaky")["items"] == []
    rerun = [one for one in fleet.get("/executions?job=flaky&limit=20")["items"] if one["retryOf"]]
    assert len(rerun) == 5
    for one in rerun:
        fleet.until(one["executionId"], "success")
