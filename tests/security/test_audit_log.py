"""The audit log: every change is recorded with actor, action, time and address; tampering with the store is found."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest

from horae.engine.server_node import ServerNode
from horae.engine.settings import EngineSettings
from horae.env import virtual_env
from horae.errors import MasterKeyMissing, StoreUnavailable
from horae.features.audit_log.engine import MOST_DENIED_OF_ONE
from horae.features.audit_log.part import AuditLogPart
from horae.model.tenancy.principal import Principal
from horae.server.app import Application
from horae.store.driver import one
from horae.store.script import Statement
from tests.security.people import KEY, Api, both, prepared

JOB = {"name": "etl", "command": ["true"]}


async def rows(api: Api, **query: Any) -> list[dict[str, Any]]:
    answer = await api.get("/api/v1/audit/log", params=query)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


async def verdict(api: Api) -> dict[str, Any]:
    found: dict[str, Any] = (await api.get("/api/v1/audit/log/verdict")).json()
    return found


async def fails(entry: object) -> int:
    raise StoreUnavailable("no", "later")


async def do(node: ServerNode, text: str) -> None:
    await node.store.write(one(Statement("tamper", text)))


@both
async def test_a_change_is_recorded_with_actor_address_before_and_after(api: Api):
    await api.post("/api/v1/jobs", json=JOB)
    await api.patch("/api/v1/jobs/etl", json={"priority": 7})

    edit, made = await rows(api)
    assert (edit["action"], edit["target"], edit["outcome"]) == ("jobs.edit", "jobs/etl", "done")
    assert edit["detail"]["changed"]["priority"] == [4, 7]
    assert edit["address"] == "10.1.2.3"
    assert edit["actor"].startswith("key:")
    assert edit["actorName"] == "first administrator"
    assert (made["action"], made["detail"]["request"]["name"]) == ("jobs.create", "etl")


async def test_a_refused_change_is_recorded_with_the_reason(api: Api):
    await api.patch("/api/v1/jobs/none", json={"priority": 7})
    [row] = await rows(api)
    assert (row["outcome"], row["detail"]["status"]) == ("refused", 404)


@both
async def test_repeated_denials_are_recorded_once_in_a_while(api: Api, node: ServerNode):
    made = (await api.post("/api/v1/keys", json={"name": "w", "role": "worker"})).json()
    for _ in range(3):
        denied = await api.post("/api/v1/jobs", json=JOB, headers={"authorization": f"Bearer {made['key']}"})
        assert denied.status_code == 403
    found = [row for row in await rows(api) if row["outcome"] == "denied"]
    assert [row["action"] for row in found] == ["jobs.create"]
    assert found[0]["actorName"] == "w"


async def test_a_denial_that_could_not_be_recorded_is_recorded_by_the_next_one(
    api: Api, node: ServerNode, monkeypatch: pytest.MonkeyPatch
):
    made = (await api.post("/api/v1/keys", json={"name": "w", "role": "worker"})).json()
    with monkeypatch.context() as patch:
        patch.setattr(node.part(AuditLogPart).audit_log, "append", fails)
        await api.post("/api/v1/jobs", json=JOB, headers={"authorization": f"Bearer {made['key']}"})
    await api.post("/api/v1/jobs", json=JOB, headers={"authorization": f"Bearer {made['key']}"})
    assert [row["action"] for row in await rows(api) if row["outcome"] == "denied"] == ["jobs.create"]


async def test_reads_and_submissions_are_not_recorded(api: Api):
    await api.post("/api/v1/jobs", json=JOB)
    await api.get("/api/v1/jobs")
    await api.post("/api/v1/executions", json={"job": "etl"})
    await api.post("/api/v1/jobs/etl/trigger")
    assert [row["action"] for row in await rows(api)] == ["jobs.create"]


async def test_a_repeated_request_is_recorded_once(api: Api):
    for _ in range(2):
        await api.post("/api/v1/jobs", json=JOB, headers={"idempotency-key": "k"})
    assert len(await rows(api)) == 1


@both
async def test_filters_find_actors_and_actions(api: Api):
    await api.post("/api/v1/jobs", json=JOB)
    await api.post("/api/v1/jobs/etl/pause")
    [first, _] = await rows(api)
    assert [row["action"] for row in await rows(api, target="jobs/etl")] == ["jobs.pause", "jobs.create"]
    assert len(await rows(api, actor=first["actor"])) == 2
    assert await rows(api, actor="key:nobody") == []
    assert [row["action"] for row in await rows(api, action="jobs.pause")] == ["jobs.pause"]
    assert len(await rows(api, action="jobs.")) == 2
    for action in ("jobs", "job_.", "jobs_pause", "%pause", "%."):
        assert await rows(api, action=action) == []
    assert len(await rows(api, limit=1)) == 1


@both
async def test_changes_of_an_object_are_found_by_its_name(api: Api):
    made = (await api.post("/api/v1/jobs", json=JOB)).json()
    await api.post("/api/v1/jobs", json={**JOB, "name": "etl-2"})
    await api.post("/api/v1/jobs/etl/triggers", json={"name": "nightly", "every": "1h"})
    await api.post(f"/api/v1/jobs/{made['jobId']}/pause")
    await api.post(f"/api/v1/jobs/{made['jobId']}/triggers/nightly/pause")
    await api.delete("/api/v1/jobs/etl")
    await api.post(f"/api/v1/jobs/{made['jobId']}/restore")

    found = await rows(api, target="jobs/etl")
    told = ["jobs.restore", "jobs.delete", "triggers.pause", "jobs.pause", "triggers.add", "jobs.create"]
    assert [row["action"] for row in found] == told
    assert {row["target"] for row in found} == {"jobs/etl", "jobs/etl/triggers/nightly"}
    assert found[3]["detail"]["path"] == f"/api/v1/jobs/{made['jobId']}/pause"
    assert found[-1]["detail"]["created"] == made["jobId"]
    assert [row["action"] for row in await rows(api, target="jobs/etl/triggers/nightly")] == told[2:5:2]
    assert len(await rows(api, target="jobs")) == 7


@both
async def test_filters_are_combined_and_pages_follow_one_another(api: Api):
    for n in range(3):
        await api.patch("/api/v1/queues/reports", json={"concurrency": n + 1})
    [first, *_] = await rows(api)
    for target in ("queues", "queues/reports"):
        assert await rows(api, target=target, actor="key:nobody") == []
        assert await rows(api, target=target, action="jobs.") == []
        page = (
            await api.get("/api/v1/audit/log", params={"target": target, "actor": first["actor"], "limit": 2})
        ).json()
        rest = await rows(api, target=target, cursor=page["nextCursor"])
        assert [row["seq"] for row in [*page["items"], *rest]] == [6, 4, 2]


async def test_changes_by_id_are_recorded_by_id_and_refusals_by_requested_name(api: Api):
    key = (await api.post("/api/v1/keys", json={"name": "w", "role": "worker"})).json()
    await api.delete(f"/api/v1/keys/{key['keyId']}")
    await api.post("/api/v1/jobs", json={"name": "etl", "command": []})
    await api.post("/api/v1/users", json={"name": "my password is 1234", "password": "x", "role": "viewer"})
    told = [(row["target"], row["outcome"]) for row in await rows(api)]
    own = (f"keys/{key['keyId']}", "done")
    assert told == [("users", "refused"), ("jobs/etl", "refused"), own, own]


@both
async def test_a_denied_request_with_an_unstorable_name_is_recorded(api: Api):
    made = (await api.post("/api/v1/keys", json={"name": "v", "role": "viewer"})).json()
    denied = await api.delete("/api/v1/jobs/a%00b", headers={"authorization": f"Bearer {made['key']}"})
    assert denied.status_code == 403
    assert (await rows(api))[0]["target"] == "jobs/a\N{REPLACEMENT CHARACTER}b"


async def test_a_change_that_cannot_be_recorded_does_not_start(
    api: Api, node: ServerNode, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as patch:
        patch.setattr(node.part(AuditLogPart).audit_log, "append", fails)
        assert (await api.post("/api/v1/jobs", json=JOB)).status_code == 503
    assert (await api.get("/api/v1/jobs/etl")).status_code == 404


async def test_changes_begun_by_a_dead_server_are_shown(api: Api, node: ServerNode, monkeypatch: pytest.MonkeyPatch):
    written, append = [], node.part(AuditLogPart).audit_log.append

    async def once(entry: Any) -> int:
        if written:
            raise StoreUnavailable("gone", "later")
        written.append(entry)
        return await append(entry)

    with monkeypatch.context() as patch:
        patch.setattr(node.part(AuditLogPart).audit_log, "append", once)
        assert (await api.post("/api/v1/jobs", json=JOB)).status_code == 201
    [row] = await rows(api)
    assert (row["action"], row["outcome"]) == ("jobs.create", "begun")


TAMPERING = {
    "DELETE FROM audit_log WHERE seq = 3": 3,
    "UPDATE audit_log SET actor_name = 'eve' WHERE seq = 3": 3,
    "UPDATE audit_log SET detail = '{}' WHERE seq = 4": 4,
    "DELETE FROM audit_log WHERE seq >= 5": 5,
    "UPDATE audit_log SET seq = 100 WHERE seq = 2": 2,
    "UPDATE audit_log SET outcome = 'refused', begun = NULL WHERE seq = 6": 6,
}


@both
async def test_tampering_is_found_and_the_first_broken_row_named(api: Api, node: ServerNode):
    for name in ("a", "b", "c"):
        await api.post("/api/v1/jobs", json={**JOB, "name": name})
    assert (await verdict(api))["broken"] is None
    await do(node, "CREATE TABLE kept AS SELECT * FROM audit_log")

    for tampering, first in TAMPERING.items():
        await do(node, tampering)
        assert (await verdict(api))["broken"]["seq"] == first, tampering
        await do(node, "DELETE FROM audit_log")
        await do(node, "INSERT INTO audit_log SELECT * FROM kept")
        assert (await verdict(api))["broken"] is None


async def test_later_entries_do_not_hide_a_truncation(api: Api, node: ServerNode):
    for name in ("a", "b", "c"):
        await api.post("/api/v1/jobs", json={**JOB, "name": name})
    await do(node, "DELETE FROM audit_log WHERE seq >= 5")
    await api.post("/api/v1/jobs", json={**JOB, "name": "d"})
    assert (await verdict(api))["broken"]["seq"] == 5


@both
@pytest.mark.parametrize("more", ["", ", signature = substr(signature, 1, 0)"])
async def test_a_truncation_with_a_forged_head_is_found_by_its_signature(api: Api, node: ServerNode, more: str):
    for name in ("a", "b"):
        await api.post("/api/v1/jobs", json={**JOB, "name": name})
    found = await verdict(api)
    assert (found["signed"], found["broken"]) == (True, None)
    await do(node, "DELETE FROM audit_log WHERE seq > 2")
    await do(node, f"UPDATE audit_head SET seq = 2, hash = (SELECT hash FROM audit_log WHERE seq = 2){more}")
    assert "signed" in (await verdict(api))["broken"]["reason"]
    for name in ("c", "d"):
        await api.post("/api/v1/jobs", json={**JOB, "name": name})
        assert "signed" in (await verdict(api))["broken"]["reason"]


@both
async def test_rows_of_a_server_without_the_key_do_not_break_the_log(
    api: Api, node: ServerNode, monkeypatch: pytest.MonkeyPatch
):
    await api.post("/api/v1/jobs", json={**JOB, "name": "a"})
    with monkeypatch.context() as patch:
        patch.setattr(node.base.sealer, "_keys", {})
        patch.setattr(node.base.sealer, "_refusal", MasterKeyMissing("gone", "give it"))
        for name in ("b", "c"):
            await api.post("/api/v1/jobs", json={**JOB, "name": name})
    found = await verdict(api)
    assert (found["signed"], found["broken"]) == (False, None)
    await do(node, "CREATE TABLE kept AS SELECT * FROM audit_log")
    await do(node, "DELETE FROM audit_log WHERE seq > 1")
    await do(node, "UPDATE audit_head SET seq = 1, hash = (SELECT hash FROM audit_log WHERE seq = 1) WHERE id = 1")
    assert "signed" in (await verdict(api))["broken"]["reason"]
    await do(node, "INSERT INTO audit_log SELECT * FROM kept WHERE seq > 1")
    await do(node, "UPDATE audit_head SET seq = 6, hash = (SELECT hash FROM audit_log WHERE seq = 6) WHERE id = 1")
    await api.post("/api/v1/jobs", json={**JOB, "name": "d"})
    found = await verdict(api)
    assert (found["signed"], found["broken"]) == (True, None)
    assert len(await node.store.read(one(Statement("heads", "SELECT id FROM audit_head")))) == 1


async def test_a_log_without_signatures_is_signed_when_the_store_gets_its_first_key(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/horae.db"
    for keys in ("", KEY, KEY):
        async with prepared(url, virtual_env(), EngineSettings(master_keys=keys)) as node:
            log = node.part(AuditLogPart).audit_log
            if not keys:
                await log.note(Principal(key="a", namespace=1, role="admin", name="ada"), "10.1.2.3", "jobs.edit")
            found = await log.verify()
            assert (found.rows, found.signed, found.broken) == (1, bool(keys), None)


@both
async def test_the_chain_is_valid_with_many_writers(api: Api, node: ServerNode):
    await asyncio.gather(*(api.post("/api/v1/jobs", json={**JOB, "name": f"j{n}"}) for n in range(20)))
    found = await verdict(api)
    assert (found["broken"], found["rows"]) == (None, 40)


async def test_sign_ins_sign_outs_and_backups_are_recorded(api: Api, node: ServerNode):
    code = (await api.post("/api/v1/sign-in/codes")).json()["code"]
    own = httpx2.ASGITransport(app=Application(node))
    async with Api(transport=own, base_url="http://horae.test") as browser:
        csrf = (await browser.post("/api/v1/sign-in", json={"code": code})).json()["csrf"]
        await browser.post("/api/v1/sign-out", headers={"x-csrf-token": csrf})
    await api.get("/api/v1/backup")
    told = [row["action"] for row in await rows(api)]
    assert told == ["backup.read", "me.sign-out", "me.sign-in", "me.create-sign-in-code"]
    assert code not in str(await rows(api))


async def test_a_thousand_denials_do_not_fill_the_log(api: Api):
    made = (await api.post("/api/v1/keys", json={"name": "v", "role": "viewer"})).json()
    for n in range(3 * MOST_DENIED_OF_ONE):
        await api.delete(f"/api/v1/jobs/{n}", headers={"authorization": f"Bearer {made['key']}"})
    found = [row for row in await rows(api, limit=200) if row["outcome"] == "denied"]
    assert len(found) == MOST_DENIED_OF_ONE


async def test_params_are_recorded_nowhere(api: Api):
    trigger = {"name": "nightly", "every": "1h", "params": {"iban": "canary-4711"}}
    made = await api.post("/api/v1/jobs", json={**JOB, "params": {"iban": "canary-4711"}, "triggers": [trigger]})
    assert made.status_code == 201, made.text
    changed = await api.patch("/api/v1/jobs/etl", json={"params": {"iban": "canary-0815"}, "triggers": [trigger]})
    assert changed.status_code == 200, changed.text
    told = await rows(api)
    assert "canary" not in str(told)
    assert "params" in told[0]["detail"]["changed"]  # the change itself is recorded


async def test_a_request_of_any_depth_is_recorded(api: Api):
    """An entry is built from the request, and nothing in the request may prevent the entry."""
    deep = '{"name": "etl", "command": ["true"], "steps": ' + "[" * 400 + "]" * 400 + "}"
    assert (await api.post("/api/v1/jobs", content=deep)).status_code == 400
    assert [row["outcome"] for row in await rows(api)] == ["refused"]
