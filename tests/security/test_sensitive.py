"""Sensitive jobs: params and results are sealed in the store, and opened for workers and for few users."""

from typing import Any

import msgspec
import pytest

from horae.engine.server_node import ServerNode
from horae.errors import MasterKeyMissing
from horae.store.driver import one
from horae.store.script import Statement
from tests.security.by_hand import WorkerByHand
from tests.security.people import Api, both, client

CANARY, ANSWER = "canary-4711", "result-0815"
JOB = {"name": "pay", "command": ["true"], "sensitive": True, "schema": {"type": "object", "required": ["iban"]}}


@pytest.fixture
async def api(api: Api) -> Api:
    """Yield a client, and a job whose params and results are private."""
    made = await api.post("/api/v1/jobs", json=JOB)
    assert made.status_code == 201, made.text
    return api


class Worker(WorkerByHand):
    """A worker that returns an answer."""

    async def run(self, outcome: str = "success", *, tells: bool = True) -> dict[str, Any]:
        """Claim work and report it; `tells` that its job is sensitive, like the definition."""
        [grant] = (await self.exchange())["slices"]
        place = {name: grant[name] for name in ("parcel", "lo", "hi", "attempt")}
        more: dict[str, Any] = {"results": [{"number": ANSWER}] * (grant["hi"] - grant["lo"]), "sensitive": tells}
        if outcome == "failed":
            more = {"error": {"type": "E", "message": "no", "permanent": True}}
        await self.exchange(outcomes=[{**place, "outcome": outcome, "startedAt": [1], "endedAt": [2], **more}])
        return dict(grant)


async def submit(api: Api, **params: Any) -> str:
    made = await api.post("/api/v1/executions", json={"job": "pay", "params": params})
    assert made.status_code == 201, made.text
    id: str = made.json()["executionId"]
    return id


async def everything(node: ServerNode) -> str:
    tables = ("parcels", "queued", "running", "history", "waiting", "attempts", "audit_log", "idempotency")
    return repr([await node.store.read(one(Statement(f"all {t}", f"SELECT * FROM {t}"))) for t in tables])


@both
async def test_params_and_results_are_sealed_in_the_store_and_open_for_the_worker(node: ServerNode, api: Api):
    id = await submit(api, iban=CANARY)

    grant = await Worker(api).run()

    assert grant["items"] == [{"iban": CANARY}]
    held = await everything(node)
    assert CANARY not in held
    assert ANSWER not in held
    shown = (await api.get(f"/api/v1/executions/{id}")).json()
    assert (shown["params"], shown["result"], shown["sensitive"]) == ({"iban": CANARY}, {"number": ANSWER}, True)


@both
async def test_results_are_sealed_even_if_the_worker_does_not_mark_them(node: ServerNode, api: Api):
    id = await submit(api, iban=CANARY)
    await Worker(api).run(tells=False)
    assert ANSWER not in await everything(node)
    assert (await api.get(f"/api/v1/executions/{id}")).json()["result"] == {"number": ANSWER}


async def test_users_without_the_permission_see_only_that_values_are_sealed(node: ServerNode, api: Api):
    id = await submit(api, iban=CANARY)
    await Worker(api).run()
    for role in ("viewer", "operator", "editor"):
        key = (await api.post("/api/v1/keys", json={"name": role, "role": role})).json()["key"]
        async with client(node, key) as other:
            shown = (await other.get(f"/api/v1/executions/{id}")).json()
            assert (shown["params"], shown["result"]) == ("(sealed)", "(sealed)")
            assert CANARY not in (await other.get("/api/v1/executions")).text
    body = {"name": "auditor", "role": "viewer", "permissions": ["sensitive"]}
    key = (await api.post("/api/v1/keys", json=body)).json()["key"]
    async with client(node, key) as auditor:
        assert (await auditor.get(f"/api/v1/executions/{id}")).json()["params"] == {"iban": CANARY}


async def test_params_are_checked_before_they_are_sealed(api: Api):
    refused = await api.post("/api/v1/executions", json={"job": "pay", "params": {}})
    assert refused.status_code == 400


async def test_bulk_items_are_sealed_one_by_one(node: ServerNode, api: Api):
    items = [{"iban": f"{CANARY}-{n}"} for n in range(3)]
    made = await api.post("/api/v1/executions", json={"job": "pay", "items": items})
    assert made.status_code in (200, 201), made.text
    assert CANARY not in await everything(node)
    granted = [item for grant in (await Worker(api).exchange())["slices"] for item in grant["items"]]
    assert granted == [{"iban": f"{CANARY}-{n}"} for n in range(3)]


async def test_a_dead_letter_is_replayed_with_its_sealed_params(node: ServerNode, api: Api):
    id = await submit(api, iban=CANARY)
    worker = Worker(api)
    await worker.run("failed")
    assert (await api.get(f"/api/v1/dlq/{id}")).json()["execution"]["params"] == {"iban": CANARY}
    assert (await api.post("/api/v1/dlq/retry", json={"ids": [id], "params": {"iban": "x"}})).status_code == 400
    assert (await api.post("/api/v1/dlq/retry", json={"ids": [id]})).status_code == 200
    assert (await worker.run())["items"] == [{"iban": CANARY}]
    assert CANARY not in await everything(node)


async def test_without_the_key_no_execution_starts_and_the_reason_is_shown(node: ServerNode, api: Api):
    await submit(api, iban=CANARY)
    node.base.execution_sealer._sealer._keys.clear()
    [grant] = (await Worker(api).exchange())["slices"]
    assert grant["items"] == [{}]
    assert "key" in grant["problem"]


async def test_a_key_lost_during_a_run_causes_no_rerun_and_no_open_result(node: ServerNode, api: Api):
    id = await submit(api, iban=CANARY)
    worker = Worker(api)
    [grant] = (await worker.exchange())["slices"]
    node.base.sealer._refusal = MasterKeyMissing("gone", "give it")
    place = {name: grant[name] for name in ("parcel", "lo", "hi", "attempt")}
    ended = {**place, "outcome": "success", "startedAt": [1], "endedAt": [2], "sensitive": True}
    await worker.exchange(outcomes=[{**ended, "results": [{"number": ANSWER}]}])
    shown = (await api.get(f"/api/v1/executions/{id}")).json()
    assert (shown["status"], list(shown["result"])) == ("success", ["$notKept"])
    assert ANSWER not in await everything(node)


async def test_a_sealed_text_of_another_job_is_refused(node: ServerNode, api: Api):
    id = await submit(api, iban=CANARY)
    rows = await node.store.read(one(Statement("items", "SELECT items FROM parcels")))
    sealed = msgspec.json.decode(bytes(rows[0][0]))
    await api.post("/api/v1/jobs", json={"name": "other", "command": ["true"]})
    stolen = await api.post("/api/v1/executions", json={"job": "other", "params": sealed})
    assert stolen.status_code in (400, 409), stolen.text
    odd = await api.post("/api/v1/executions", json={"job": "other", "params": {"$sealed": "no"}})
    assert odd.status_code in (400, 409)
    assert id


@pytest.mark.parametrize(
    "more",
    [
        {"batch": {"size": 3, "wait": "1s"}}, {"debounce": {"wait": "1s"}}, {"cache": {"ttl": "1m"}},
        {"triggers": [{"name": "e", "event": "upload"}]}, {"triggers": [{"name": "w", "webhook": True}]},
        {"command": None, "workflow": {"steps": [{"name": "a", "job": "pay"}]}}, {"sensitive": "yes"},
    ],
    ids=["batch", "debounce", "cache", "event", "webhook", "workflow", "no-boolean"],
)  # fmt: skip
async def test_features_that_read_params_in_the_store_are_refused(api: Api, more: dict[str, Any]):
    refused = await api.post("/api/v1/jobs", json={**JOB, "name": "x", **more})
    assert (refused.status_code, refused.json()["field"]) == (400, "sensitive"), refused.text


async def test_a_workflow_does_not_run_a_sensitive_job(api: Api):
    step = {"name": "a", "job": "pay", "params": {"iban": "1"}}
    flow = {"name": "flow", "workflow": {"steps": [step]}}
    assert (await api.post("/api/v1/jobs", json=flow)).status_code == 400
    await api.patch("/api/v1/jobs/pay", json={"sensitive": False})
    made = await api.post("/api/v1/jobs", json=flow)
    assert made.status_code == 201, made.text
    again = await api.patch("/api/v1/jobs/pay", json={"sensitive": True})
    assert again.status_code == 400
    assert "flow" in again.json()["detail"]


async def test_users_without_the_permission_cannot_unseal_by_a_retry(node: ServerNode, api: Api):
    """If the job were no longer sensitive, a retry would open its params to all users."""
    for more in ([], ["commands"]):
        key = (await api.post("/api/v1/keys", json={"name": "e", "role": "editor", "permissions": more})).json()["key"]
        async with client(node, key) as editor:
            refused = await editor.patch("/api/v1/jobs/pay", json={"sensitive": False})
            assert refused.status_code == 403
            refused = await editor.put("/api/v1/jobs/pay", json={**JOB, "sensitive": False})
            assert refused.status_code == 403
    assert (await api.patch("/api/v1/jobs/pay", json={"sensitive": False})).status_code == 200


async def test_lists_and_single_reads_hide_the_same(node: ServerNode, api: Api):
    """Lists do not show the sealed text either: sent back as params, it would be opened."""
    id = await submit(api, iban=CANARY)
    await Worker(api).run("failed")
    key = (await api.post("/api/v1/keys", json={"name": "v", "role": "viewer"})).json()["key"]
    async with client(node, key) as viewer:
        for path in ("executions", "jobs/pay/executions", "dlq", f"dlq/{id}"):
            shown = await viewer.get(f"/api/v1/{path}")
            assert "(sealed)" in shown.text, path
            assert "$sealed" not in shown.text
    assert CANARY not in (await api.get("/api/v1/executions")).text  # one by one, for who may


async def test_a_result_that_only_looks_sealed_does_not_hide_its_execution(node: ServerNode, api: Api):
    id, worker = await submit(api, iban=CANARY), Worker(api)
    [grant] = (await worker.exchange())["slices"]
    place = {name: grant[name] for name in ("parcel", "lo", "hi", "attempt")}
    told = {"outcome": "success", "startedAt": [1], "endedAt": [2], "results": [{"$sealed": "no"}]}
    await worker.exchange(outcomes=[{**place, **told}])
    shown = await api.get(f"/api/v1/executions/{id}")
    assert (shown.status_code, shown.json()["params"]) == (200, {"iban": CANARY})
