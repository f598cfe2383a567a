"""The routes of circuit breakers: read, listed, opened, closed and reset, and refused with a remedy."""

from tests.server.conftest import Api

JOB = {"name": "pay", "command": "true", "circuit": {"failures": "20%", "openFor": "1m"}}
URL = "/api/v1/jobs/pay/circuit"


async def test_a_circuit_is_opened_listed_and_reset(api: Api):
    made = (await api.post("/api/v1/jobs", json=JOB)).json()
    assert made["circuit"] == {
        "failures": "20%", "window": "1m", "minimum": 10, "openFor": "1m", "probes": 1, "key": None,
    }  # fmt: skip
    (closed,) = (await api.get(URL)).json()["circuits"]
    assert (closed["state"], closed["forced"], closed["since"], closed["attempts"]) == ("closed", False, None, 0)

    opened = await api.post(f"{URL}/open", json={"reason": "the bank is down", "for": "2h"})
    told = opened.json()
    assert (opened.status_code, told["state"], told["forced"], told["cause"], told["until"]) == (
        200, "open", True, "the bank is down", "2027-01-15T10:00:00Z",
    )  # fmt: skip
    assert told["changedBy"].startswith("key:")
    assert (await api.get("/api/v1/circuits")).json()["items"] == [told]
    metrics = (await api.get("/metrics")).text
    assert 'horae_circuits{job_name="pay",namespace="default",state="open"} 1.0' in metrics
    assert 'horae_circuit_changes_total{state="open"} 1.0' in metrics
    blockers = (await api.get("/api/v1/jobs/pay/explain")).json()["blockers"]
    assert blockers[0]["gate"] == "circuit"
    assert blockers[0]["message"] == (
        'The circuit of "pay" is open by hand until 2027-01-15T10:00:00Z: the bank is down'
    )

    assert (await api.post(f"{URL}/reset", json={"reason": "it is back"})).json()["state"] == "closed"
    assert (await api.get("/api/v1/circuits")).json()["items"] == []
    changes = (await api.get(URL)).json()["changes"]
    assert [(one["state"], one["cause"]) for one in changes] == [("closed", "it is back"), ("open", "the bank is down")]

    closed = (await api.post(f"{URL}/close", json={})).json()
    assert (closed["state"], closed["forced"]) == ("closed", True)


async def test_a_job_without_a_circuit_is_refused(api: Api):
    await api.post("/api/v1/jobs", json={"name": "pay", "command": "true"})
    none = await api.post(f"{URL}/open", json={})
    assert (none.status_code, none.json()["detail"]) == (409, 'Job "pay" has no circuit.')
    assert (await api.get("/api/v1/jobs/nothing/circuit")).status_code == 404
    wrong = await api.post("/api/v1/jobs", json={"name": "x", "command": "true", "circuit": {"failures": "0%"}})
    assert (wrong.status_code, wrong.json()["field"]) == (400, "circuit.failures")
