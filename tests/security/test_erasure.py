"""Erasure: a person's data is deleted from history, logs and files, with a receipt; the record of the runs stays."""

from pathlib import Path
from typing import Any

import pytest

from horae.engine.server_node import ServerNode
from horae.errors import MasterKeyMissing
from horae.features.artifacts.part import ArtifactsPart
from horae.store.driver import one
from horae.store.script import Statement
from tests.security.by_hand import WorkerByHand
from tests.security.people import Api, both

CANARY = "canary-4711"
TABLES = (
    *("parcels", "history", "attempts", "logs", "progress", "artifacts", "unique_keys", "meetings", "steps", "signals"),
    "blobs",
)
RULES = {
    "unique": {"key": "${params.to}", "for": "24h"},
    "cache": {"key": "${params.to}", "ttl": "24h"},
    "limits": [{"key": "${params.to}", "concurrency": 1}],
}


@pytest.fixture
async def api(api: Api) -> Api:
    """Yield a client, and a job that sends mail."""
    assert (await api.post("/api/v1/jobs", json={"name": "mail", "command": ["true"]})).status_code == 201
    return api


class Worker(WorkerByHand):
    """A worker that leaves traces."""

    async def run(self, ends: str = "success") -> None:
        """Claim work, write a log and a file, and finish it."""
        for grant in (await self.exchange())["slices"]:
            place = {name: grant[name] for name in ("parcel", "attempt")}
            for item in range(grant["lo"], grant["hi"]):
                line = [1, "stdout", f"to {CANARY}"]
                await self.exchange(free=0, logs=[{**place, "item": item, "seq": 0, "lines": [line]}])
                query = {"parcel": grant["parcel"], "item": item, "attempt": grant["attempt"]}
                url = f"/api/v1/sessions/{self.session}/artifacts/letter.txt"
                assert (await self.api.put(url, params=query, content=CANARY)).status_code in (200, 201)
            more: dict[str, Any] = {"results": [{"to": CANARY}] * (grant["hi"] - grant["lo"])}
            if ends == "failed":
                more = {"error": {"type": "Bounced", "message": CANARY, "traceback": CANARY, "permanent": True}}
            outcome = {**place, "lo": grant["lo"], "hi": grant["hi"], "outcome": ends, "startedAt": [1], "endedAt": [2]}
            await self.exchange(free=0, outcomes=[{**outcome, **more}])


async def submit(api: Api, **said: Any) -> str:
    made = await api.post("/api/v1/executions", json={"job": "mail", **said})
    assert made.status_code == 201, made.text
    id: str = made.json()["executionId"]
    return id


async def erase(api: Api, **where: Any) -> dict[str, Any]:
    answer = await api.post("/api/v1/erasures", json={"where": where})
    assert answer.status_code == 200, answer.text
    done: dict[str, Any] = answer.json()
    return done


async def held(node: ServerNode) -> str:
    return repr([await node.store.read(one(Statement(f"all {t}", f"SELECT * FROM {t}"))) for t in TABLES])


@both
@pytest.mark.parametrize("ends", ["success", "failed"])
async def test_the_data_of_an_execution_is_erased_and_its_record_stays(
    api: Api, node: ServerNode, ends: str, tmp_path: Path
):
    assert (await api.patch("/api/v1/jobs/mail", json=RULES)).status_code == 200
    id = await submit(api, params={"to": CANARY}, tags={"customer": CANARY}, key=CANARY)
    await Worker(api).run(ends)
    assert CANARY in await held(node)

    done = await erase(api, params={"to": CANARY})

    assert (done["erased"], done["notEnded"]) == (1, [])
    assert CANARY not in await held(node)
    shown = (await api.get(f"/api/v1/executions/{id}")).json()
    assert shown["status"] == ends
    assert shown["completedAt"]
    assert shown["params"] == {"$erased": True}
    assert (await api.get(f"/api/v1/executions/{id}/logs")).json()["items"] == []
    assert (await api.get(f"/api/v1/executions/{id}/artifacts")).json()["items"] == []
    await node.part(ArtifactsPart).sweeper.step()
    files = [path.read_text() for path in (tmp_path / "artifacts").rglob("*") if path.is_file()]
    assert CANARY not in "".join(files)
    assert (await erase(api, params={"to": CANARY}))["erased"] == 0
    assert await submit(api, params={"to": CANARY}) != id


@both
async def test_keys_of_a_parcel_stay_until_its_last_item_has_ended(api: Api, node: ServerNode):
    await api.patch("/api/v1/jobs/mail", json={"limits": RULES["limits"]})
    items = [{"to": CANARY}, {"to": CANARY}]
    assert (await api.post("/api/v1/executions", json={"job": "mail", "items": items})).status_code == 201
    worker = Worker(api)
    await worker.run()
    first = await erase(api, params={"to": CANARY})
    assert (first["erased"], len(first["notEnded"])) == (1, 1)
    await worker.run()
    assert (await erase(api, params={"to": CANARY}))["erased"] == 1
    assert CANARY not in await held(node)


@pytest.mark.parametrize(("sent", "wanted"), [({}, 0), ({"to": True}, 0), ({"to": 1}, 1), ({"to": 1.0}, 1)])
async def test_only_equal_params_are_selected(api: Api, sent: dict[str, Any], wanted: int):
    await submit(api, params=sent)
    await Worker(api).run()
    assert (await erase(api, params={"to": 1}))["erased"] == wanted


@pytest.mark.parametrize("where", [{"tag": "customer=a"}, {"key": "a"}, {"params": {"to": "a"}}])
async def test_only_selected_items_of_a_parcel_are_erased(api: Api, where: dict[str, Any]):
    items = [{"to": "a"}, {"to": "b"}, {"to": "c"}]
    lot = await api.post("/api/v1/executions", json={"job": "mail", "items": items})
    assert lot.status_code == 201
    mine = await submit(api, params={"to": "a"}, tags={"customer": "a"}, key="a")
    await Worker(api).run()
    await erase(api, **where)
    shown = {each["executionId"]: each for each in (await api.get("/api/v1/executions")).json()["items"]}
    assert shown[mine]["params"] == {"$erased": True}
    others = sorted(str(each.get("params")) for id, each in shown.items() if id != mine)
    gone = "{'$erased': True}" if "params" in where else "{'to': 'a'}"
    assert others == sorted([gone, "{'to': 'b'}", "{'to': 'c'}"])


async def test_unfinished_executions_are_reported_and_kept(api: Api):
    id = await submit(api, params={"to": CANARY})
    assert await erase(api, params={"to": CANARY}) == {
        "examined": 1,
        "erased": 0,
        "notEnded": [id],
        "undecryptable": [],
        "unreadableFiles": [],
        "nextCursor": None,
    }
    assert (await api.get(f"/api/v1/executions/{id}")).json()["params"] == {"to": CANARY}


async def test_unreadable_executions_are_reported_and_kept(api: Api, node: ServerNode):
    await api.post("/api/v1/jobs", json={"name": "pay", "command": ["true"], "sensitive": True})
    made = await api.post("/api/v1/executions", json={"job": "pay", "params": {"to": CANARY}})
    assert made.status_code == 201, made.text
    await Worker(api).run()
    node.base.sealer._keys.clear()
    node.base.sealer._refusal = MasterKeyMissing("gone", "give it")
    done = await erase(api, params={"to": CANARY})
    assert (done["erased"], done["undecryptable"]) == (0, [made.json()["executionId"]])


async def test_the_receipt_in_the_audit_log_contains_no_personal_data(api: Api):
    await submit(api, params={"to": CANARY})
    await Worker(api).run()
    await erase(api, params={"to": CANARY})
    rows = (await api.get("/api/v1/audit/log", params={"action": "erasures."})).json()["items"]
    assert [row["action"] for row in rows] == ["erasures.create", "erasures.receipt"]
    assert rows[1]["detail"]["erased"] == 1
    assert rows[1]["detail"]["where"].startswith("sha256:")
    assert CANARY not in str(rows)


@pytest.mark.parametrize("where", [{}, {"job": "mail"}, {"params": {"to": None}}])
async def test_an_erasure_without_a_selection_is_refused(api: Api, where: dict[str, Any]):
    assert (await api.post("/api/v1/erasures", json={"where": where})).status_code == 400


async def test_only_administrators_erase(api: Api):
    key = (await api.post("/api/v1/keys", json={"name": "e", "role": "editor"})).json()["key"]
    body = {"where": {"tag": "a"}}
    refused = await api.post("/api/v1/erasures", json=body, headers={"authorization": f"Bearer {key}"})
    assert refused.status_code == 403
