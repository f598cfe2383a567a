"""Workflows over HTTP: signals, decisions, reruns, and refusals."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import pytest

from horae.engine.server_node import ServerNode
from horae.errors import BadInput
from horae.store.workflows import by_hand
from horae.store.workflows import cancel as workflow_cancel
from horae.store.workflows import due as workflow_due
from tests.server.conftest import Api, Connect
from tests.server.test_sessions import register

Begin = Callable[..., Awaitable[str]]


@pytest.fixture
def begin(api: Api, node: ServerNode) -> Begin:
    """Define a workflow, submit it, and let it start."""

    async def begin(*steps: dict[str, Any], **params: Any) -> str:
        made = await api.post(
            "/api/v1/jobs", json={"name": "flow", "params": params, "workflow": {"steps": list(steps)}}
        )
        assert made.status_code == 201, made.text
        id = (await api.post("/api/v1/executions", json={"job": "flow"})).json()["executionId"]
        await node.base.directory.step()
        await node.workflows.opener.step()
        return id

    return begin


async def states(api: Api, id: str) -> dict[str, str]:
    answer = await api.get(f"/api/v1/executions/{id}/graph")
    assert answer.status_code == 200, answer.text
    return {one["step"]: one["status"] for one in answer.json()["nodes"]}


async def test_a_step_waits_until_its_url_is_called(api: Api, begin: Begin, connect: Connect):
    id = await begin(
        {"name": "ask", "command": ["ask", "${params.url}"], "params": {"url": "https://here${callbacks.back}"}},
        {"name": "back", "callback": {"timeout": "1h"}},
        {"name": "after", "command": ["true"], "params": {"got": "${steps.back.result.n}"}},
    )
    (ask,) = (await api.get(f"/api/v1/executions?parent={id}")).json()["items"]
    url = ask["params"]["url"].removeprefix("https://here")
    nobody = connect()

    assert (await nobody.post(url[:-1] + ("0" if url[-1] != "0" else "1"), json={})).status_code == 404
    assert (await nobody.post("/api/v1/callbacks/nonsense", json={})).status_code == 404
    assert (await nobody.post(url, content=b"{")).status_code == 400
    answer = await nobody.post(url, json={"n": 7})
    assert (answer.status_code, answer.json()["delivered"]) == (202, True)
    assert (await nobody.post(url, json={"n": 8})).status_code == 202, "again, and it counts once"
    assert await states(api, id) == {"ask": "running", "back": "success", "after": "running"}
    children = (await api.get(f"/api/v1/executions?parent={id}")).json()["items"]
    assert {"got": 7} in [one["params"] for one in children]
    told = await api.post(f"/api/v1/executions/{id}/signals", json={"name": "@callback:back"})
    assert told.status_code == 400


@pytest.mark.parametrize("error", [ValueError, BadInput])
@pytest.mark.parametrize("fails", ["to advance", "to stop"])
async def test_a_faulty_workflow_suspends_no_other(
    api: Api, begin: Begin, node: ServerNode, monkeypatch: pytest.MonkeyPatch, fails: str, error: type[Exception]
):
    faulty = await begin({"name": "work", "command": ["true"]})
    sound = (await api.post("/api/v1/executions", json={"job": "flow"})).json()["executionId"]
    await node.workflows.opener.step()
    await node.workflows.advancer.step()
    for id in (faulty, sound):
        assert (await api.post(f"/api/v1/executions/{id}/cancel")).status_code < 300
    advance, stop = workflow_due.advance_due, workflow_cancel.to_stop

    def advance_due(*given: Any, only: UUID | None = None) -> Any:
        if str(only) in ("None", faulty):
            raise error("it is faulty")
        return advance(*given, only=only)

    def to_stop(execution: UUID) -> Any:
        if str(execution) == faulty:
            raise error("it is faulty")
        return stop(execution)

    if fails == "to advance":
        monkeypatch.setattr(workflow_due, "advance_due", advance_due)
    monkeypatch.setattr(workflow_cancel, "to_stop", to_stop)
    assert await node.workflows.advancer.step() == 1.0, "not at once"
    assert (await states(api, sound), await states(api, faulty)) == ({"work": "cancelled"}, {"work": "running"})
    monkeypatch.undo()
    await node.workflows.advancer.step()
    assert await states(api, faulty) == {"work": "cancelled"}


async def test_answers_and_decisions_by_hand(api: Api, begin: Begin):
    id = await begin(
        {"name": "ok", "approval": {"message": "Shall it?"}},
        {"name": "sure", "approval": {}},
        {"name": "work", "command": ["true"], "after": ["ok"]},
        {"name": "more", "command": ["true"], "after": ["work"], "join": "noneFailed"},
    )
    path = f"/api/v1/executions/{id}"
    first = (await api.get("/api/v1/approvals?limit=1")).json()
    rest = (await api.get(f"/api/v1/approvals?cursor={first['nextCursor']}")).json()
    assert [(one["executionId"], one["step"], one["message"]) for one in [*first["items"], *rest["items"]]] == [
        (id, "ok", "Shall it?"),
        (id, "sure", ""),
    ]
    several = await api.post(f"{path}/approve", json={})
    assert (several.status_code, several.json()["field"]) == (400, "step")
    assert "ok, sure" in several.json()["detail"]
    assert (await api.post(f"{path}/approve", json={"step": "nothing"})).status_code == 404
    early = await api.post(f"{path}/approve", json={"step": "work"})
    assert (early.status_code, early.json()["detail"]) == (409, 'Step "work" waits for no answer.')
    assert (await api.post(f"{path}/approve", json={"step": "ok", "comment": "fine"})).status_code == 200
    twice = await api.post(f"{path}/reject", json={"step": "ok"})
    assert (twice.status_code, twice.json()["detail"]) == (409, 'Step "ok" has ended.')
    assert (await states(api, id))["work"] == "running"
    assert [one["step"] for one in (await api.get("/api/v1/approvals")).json()["items"]] == ["sure"]
    assert (await api.post(f"{path}/steps/work/complete", json={"result": {"rows": 3}})).status_code == 200
    assert (await api.post(f"{path}/steps/work/skip", json={})).status_code == 409
    assert (await api.post(f"{path}/steps/nothing/skip", json={})).status_code == 404
    assert (await api.post(f"{path}/steps/more/skip", json={"reason": "not today"})).status_code == 200
    assert (await api.post(f"{path}/reject", json={"comment": "no"})).status_code == 200
    found = (await api.get(path)).json()
    assert (found["status"], found["error"]["type"]) == ("failed", "Rejected")
    assert (await api.post(f"{path}/approve", json={})).status_code == 409
    assert await states(api, id) == {"ok": "success", "sure": "failed", "work": "success", "more": "skipped"}


async def ask_and_call_back(api: Api, begin: Begin) -> tuple[str, str]:
    """Return a workflow and the URL of a callback for which its step waits only after an approval."""
    id = await begin(
        {"name": "ask", "command": ["ask"], "params": {"url": "https://here${callbacks.back}"}},
        {"name": "ok", "approval": {}},
        {"name": "back", "after": ["ok"], "callback": {}},
    )
    (ask,) = (await api.get(f"/api/v1/executions?parent={id}")).json()["items"]
    return id, ask["params"]["url"].removeprefix("https://here")


async def test_a_callback_is_delivered_whatever_signals_users_have_sent(
    api: Api, begin: Begin, connect: Connect, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(by_hand, "MOST_KEPT", 2)
    id, url = await ask_and_call_back(api, begin)
    path = f"/api/v1/executions/{id}"
    for key in ("@callback:back", "key:@callback:back"):
        sent = await api.post(f"{path}/signals", json={"name": "go"}, headers={"Idempotency-Key": key})
        assert sent.status_code == 202
    assert (await api.post(f"{path}/signals", json={"name": "more"})).status_code == 409

    assert (await connect().post(url, json={"n": 7})).status_code == 202
    assert (await api.post(f"{path}/approve", json={"step": "ok"})).status_code == 200
    assert (await states(api, id))["back"] == "success"


async def test_actions_on_other_executions_than_workflows_are_refused(api: Api, worker: Api):
    await api.post("/api/v1/jobs", json={"name": "plain", "command": "true"})
    id = (await api.post("/api/v1/executions", json={"job": "plain"})).json()["executionId"]
    await register(worker)
    for action in ("approve", "pause", "steps/a/skip"):
        answer = await api.post(f"/api/v1/executions/{id}/{action}", json={})
        assert answer.status_code == 409, action
        assert answer.json()["remedy"]
    assert (await api.get(f"/api/v1/executions/{id}/graph")).status_code == 409
    assert (await api.post(f"/api/v1/executions/{id}/rerun", json={})).status_code == 409, "it has not ended"
    await api.post(f"/api/v1/executions/{id}/cancel", json={})
    assert (await api.post(f"/api/v1/executions/{id}/rerun", json={"from": "failed"})).json()["field"] == "from"
    again = await api.post(f"/api/v1/executions/{id}/rerun", json={})
    assert again.status_code == 202
    found = (await api.get(again.headers["location"])).json()
    assert (found["rerunOf"], found["origin"], found["status"]) == (id, "rerun", "queued")


async def test_a_rerun_from_an_unknown_step_is_refused(api: Api, begin: Begin, node: ServerNode):
    id = await begin({"name": "extract", "command": ["true"]}, {"name": "ok", "after": ["extract"], "approval": {}})
    await api.post(f"/api/v1/executions/{id}/steps/extract/complete", json={"result": 1})
    await api.post(f"/api/v1/executions/{id}/reject", json={})
    wrong = await api.post(f"/api/v1/executions/{id}/rerun", json={"from": "extrakt"})
    assert (wrong.status_code, wrong.json()["field"]) == (400, "from")
    assert "extract" in wrong.json()["remedy"]
    again = (await api.post(f"/api/v1/executions/{id}/rerun", json={"from": "failed"})).json()["executionId"]
    await node.workflows.opener.step()
    assert await states(api, again) == {"extract": "success", "ok": "waiting"}


async def test_a_rerun_uses_its_old_version_unless_the_latest_is_requested(api: Api, begin: Begin, node: ServerNode):
    ok = {"name": "ok", "after": ["a"], "approval": {}}
    a = {"name": "a", "command": ["true"], "params": {"day": "${params.day}"}}
    id = await begin(a, ok, day="one")
    await api.post(f"/api/v1/executions/{id}/steps/a/complete", json={})
    await api.post(f"/api/v1/executions/{id}/reject", json={})
    first = {"name": "first", "command": ["true"]}
    changed = {"params": {"day": "two"}, "workflow": {"steps": [first, {**a, "after": ["first"]}, ok]}}
    assert (await api.patch("/api/v1/jobs/flow", json=changed)).status_code == 200

    async def again(**how: Any) -> str:
        made = (await api.post(f"/api/v1/executions/{id}/rerun", json=how)).json()["executionId"]
        await node.base.directory.step()
        await node.workflows.opener.step()
        return str(made)

    async def given(execution: str) -> list[Any]:
        items = (await api.get(f"/api/v1/executions?parent={execution}")).json()["items"]
        return [one["params"] for one in items]

    same = await again()
    assert (await api.get(f"/api/v1/executions/{same}")).json()["jobVersion"] == 1
    assert (await states(api, same), await given(same)) == ({"a": "running", "ok": "pending"}, [{"day": "one"}])
    latest = await again(latest=True, **{"from": "failed"})
    assert (await api.get(f"/api/v1/executions/{latest}")).json()["jobVersion"] == 2
    assert await states(api, latest) == {"first": "running", "a": "pending", "ok": "pending"}, "a comes after it now"
    wrong = await api.post(f"/api/v1/executions/{id}/rerun", json={"from": "first"})
    assert wrong.status_code == 400
    assert (await states(api, await again(latest=True, **{"from": "first"})))["first"] == "running"


@pytest.mark.parametrize("how", [{}, {"from": "failed"}, {"breakpoints": ["a"]}])
async def test_steps_of_a_job_that_is_no_workflow_any_more_cannot_run_again(api: Api, begin: Begin, how: dict):
    id = await begin({"name": "a", "approval": {}})
    await api.post(f"/api/v1/executions/{id}/reject", json={})
    changed = await api.patch("/api/v1/jobs/flow", json={"workflow": None, "command": "true"})
    assert changed.status_code == 200, changed.text

    for latest in (False, True):
        answer = await api.post(f"/api/v1/executions/{id}/rerun", json={**how, "latest": latest})
        assert answer.status_code == (202 if how == {} and latest else 409), answer.text
    if how:
        assert "no workflow any more" in answer.json()["detail"]


async def test_waiting_steps_show_their_condition(api: Api, begin: Begin):
    id = await begin(
        {"name": "ok", "approval": {"message": "An order of ${params.total}", "roles": ["operator"]}},
        {"name": "go", "signal": {"name": "go-${params.total}"}},
        {"name": "back", "callback": {}},
        total=120,
    )
    nodes = {one["step"]: one for one in (await api.get(f"/api/v1/executions/{id}/graph")).json()["nodes"]}
    assert nodes["ok"]["waitsFor"] == {"message": "An order of 120", "roles": ["operator"]}
    assert nodes["go"]["waitsFor"] == {"name": "go-120"}
    assert nodes["back"]["waitsFor"] == {}
    (why,) = (await api.get(f"/api/v1/executions/{id}/explain")).json()["blockers"]
    assert "ok (for the approval of operator: An order of 120)" in why["message"]
    assert "go (for the signal 'go-120')" in why["message"]
    assert f"horae executions approve {id} ok" in why["opensWhen"]
    for _ in range(2):
        answer = await api.post(f"/api/v1/executions/{id}/approve", json={"comment": "as agreed"})
    assert (answer.status_code, answer.json()["detail"]) == (409, "The workflow waits for no answer.")
    nodes = {one["step"]: one for one in (await api.get(f"/api/v1/executions/{id}/graph")).json()["nodes"]}
    assert "waitsFor" not in nodes["ok"]
    assert nodes["ok"]["reason"] == "approved by a test's admin: as agreed", "who, and why; its end says when"
