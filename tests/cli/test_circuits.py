"""`horae circuits`, and the option for a job's circuit breaker."""

import json

from tests.cli.fake_api import FakeApi, page, run

OPEN = {
    "jobId": "j1", "job": "pay", "key": None, "state": "open", "forced": True, "cause": "down", "changedBy": "key:1",
    "since": "2027-01-15T07:59:00Z", "until": "2027-01-15T08:30:00Z", "attempts": 4, "failed": 3, "waiting": 7,
    "probes": [],
}  # fmt: skip
CHANGE = {
    "key": None,
    "at": "2027-01-15T07:59:00Z",
    "state": "open",
    "forced": True,
    "cause": "down",
    "changedBy": "key:1",
}
OF_JOB = {"jobId": "j1", "job": "pay", "definition": {}, "circuits": [OPEN], "changes": [CHANGE]}


def test_circuits_are_listed_and_shown_with_their_changes():
    api = FakeApi({"GET /circuits": page(OPEN), "GET /jobs/pay/circuit": OF_JOB})
    row = run(api, "circuits", "list").stdout.splitlines()[1]
    assert row.split() == ["pay", "open", "(by", "hand)", "1m", "ago", "in", "30m", "3/4", "7", "key:1", "down"]
    shown = run(api, "circuits", "show", "pay", "--key", "acme").stdout
    assert "CHANGED" in shown
    assert api.requests[-1].query == {"key": "acme"}
    assert json.loads(run(api, "circuits", "show", "pay", "-o", "json").stdout) == OF_JOB
    empty = run(FakeApi({"GET /circuits": page()}), "circuits", "list")
    assert empty.stdout == "All circuits are closed.\n"


def test_circuits_are_overridden_with_a_reason():
    api = FakeApi({"POST /jobs/pay/circuit/{what}": OPEN})
    said = run(api, "circuits", "open", "pay", "--for", "30m", "--reason", "down").stdout
    assert said == "The circuit of pay is open by hand until 2027-01-15T08:30:00Z; 7 waiting.\n"
    assert api.requests[-1].body == {"reason": "down", "for": "30m"}
    run(api, "circuits", "close", "pay", "--key", "acme")
    run(api, "circuits", "reset", "pay")
    assert [(one.line, one.body) for one in api.requests[1:]] == [
        ("POST /jobs/pay/circuit/close", {"key": "acme"}),
        ("POST /jobs/pay/circuit/reset", {}),
    ]


def test_a_circuit_breaker_is_given_as_a_percentage_or_an_object():
    api = FakeApi({"POST /jobs": {"jobId": "j1", "name": "pay", "version": 1, "status": "idle"}})
    run(api, "jobs", "create", "pay", "--command", "true", "--circuit", "20%")
    run(api, "jobs", "create", "pay", "--command", "true", "--circuit", '{"minimum": 5}')
    assert [one.body["circuit"] for one in api.requests] == [{"failures": "20%"}, {"minimum": 5}]
