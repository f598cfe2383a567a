"""Idempotency-Key: a repetition gets the same answer and has no further effect."""

import asyncio

import pytest

from horae.engine.server_node import ServerNode
from horae.engine.tenancy.idempotent_requests import RUNNING_FOR
from horae.env import VirtualClock
from horae.server.idempotency import KEPT_FOR
from horae.server.routes.table import ROUTES
from horae.store.tenancy import keys as moves
from tests.server.conftest import Api, Connect

BODY = {"name": "ci", "role": "worker"}


async def post(api: Api, key: str = "k", **body: str):
    return await api.post("/api/v1/keys", json={**BODY, **body}, headers={"idempotency-key": key})


async def count(node: ServerNode) -> int:
    return len([key for key in await node.tenancy.keys.list(1) if key.name == "ci"])


# The effect of a repeated POST or DELETE. "stored": an Idempotency-Key returns the first answer. "submission": the
# same, in the transaction that submits. Every other route is listed with the reason why a repetition does no harm.
WITHOUT_KEYS = {
    "sessions.exchange": "an exchange has a number; one that was answered is answered again",
    "sessions.reattach": "a session is re-attached once after each failover",
    "sessions.submit": "a child's key is its parent and the number of the call",
    "sessions.remember": "a step has a name and is remembered once",
    "events.send": "an event has an id; one that was kept is answered again and fires nothing",
    "callbacks.receive": "a call of one step's URL counts once",
    "sessions.wait": "a step that waits goes on waiting, or has its result",
    "hooks.receive": "a delivery has an id, or its content is one; a replay fires nothing and says so",
    "me.sign-in": "a code works once; its answer is a secret and never kept",
    "me.sign-in-with-password": "another cookie harms nobody; its answer is a secret and never kept",
    "me.password": "the old password does not work twice",
    "alert-channels.create": "a name is taken once; its answer may be a secret and is never kept",
    "enrolments.create": "another token harms nobody; its answer is a secret and never kept",
    "erasures.create": "what is erased is not found again",
    "namespaces.erase": "what is erased is not found again",
    "enrolments.redeem": "a token works once; its answer is a secret and never kept",
    "sessions.close": "what is closed stays so",
    "me.sign-out": "who is signed out stays so",
    "master-key.rotate": "what is sealed with the first key is left as it is",
    "yaml.read": "it only reads what it is given",
    "me.create-sign-in-code": "another code harms nobody; its answer is a secret and never kept",
}
SUBMISSIONS = {"jobs.trigger", "executions.submit"}


def test_every_post_and_delete_declares_the_effect_of_a_repetition():
    posts = {route.name: route.idempotency for route in ROUTES if route.method in ("POST", "DELETE")}
    kept = {name for name, way in posts.items() if way == "stored"}
    assert {name for name, way in posts.items() if way == "none"} == set(WITHOUT_KEYS)
    assert {name for name, way in posts.items() if way == "submission"} == SUBMISSIONS
    assert kept == posts.keys() - WITHOUT_KEYS.keys() - SUBMISSIONS
    assert [route.name for route in ROUTES if route.method not in ("POST", "DELETE") and route.idempotency] == []


async def test_a_repeated_deletion_is_answered_alike(api: Api):
    job = (await api.post("/api/v1/jobs", json={"name": "old", "command": "true"})).json()
    answers = [await api.delete("/api/v1/jobs/old", headers={"idempotency-key": "k"}) for _ in range(2)]
    assert [(answer.status_code, answer.json()["jobId"]) for answer in answers] == [(200, job["jobId"])] * 2
    assert (await api.delete("/api/v1/jobs/old", headers={"idempotency-key": "another"})).status_code == 404


async def test_a_repeated_repair_is_answered_alike(api: Api, node: ServerNode, monkeypatch):
    repairs = []
    audit = node.work.audit.executions

    async def counted(**named: bool):
        repairs.append(named)
        return await audit(**named)

    monkeypatch.setattr(node.work.audit, "executions", counted)
    answers = [await api.post("/api/v1/audit/executions", headers={"idempotency-key": "k"}) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert repairs == [{"repair": True}]


async def test_signing_out_twice_changes_nothing_more(connect: Connect, node: ServerNode):
    browser = connect()
    code = (await node.tenancy.keys.new_sign_in_code()).text
    csrf = (await browser.post("/api/v1/sign-in", json={"code": code})).json()["csrf"]
    cookie = {"cookie": f"horae={browser.cookies['horae']}", "x-csrf-token": csrf, "idempotency-key": "k"}
    assert (await connect(**cookie).post("/api/v1/sign-out")).status_code == 204
    assert (await connect(**cookie).post("/api/v1/sign-out")).status_code == 401
    assert (await connect().post("/api/v1/sign-in", json={"code": code})).status_code == 401


async def test_a_repetition_is_answered_alike_and_does_nothing(api: Api, node: ServerNode):
    first, second = await post(api), await post(api)
    assert (first.status_code, first.json()["keyId"]) == (second.status_code, second.json()["keyId"])
    assert await count(node) == 1


async def test_another_body_under_the_same_key_is_422(api: Api, node: ServerNode):
    await post(api)
    answer = await post(api, role="admin")
    assert (answer.status_code, answer.json()["type"]) == (422, "urn:horae:key-reused")
    assert await count(node) == 1


async def test_another_key_is_another_request(api: Api, node: ServerNode):
    await post(api, "a")
    await post(api, "b")
    assert await count(node) == 2


async def test_answers_are_stored_for_a_day(api: Api, node: ServerNode, clock: VirtualClock):
    first = await post(api)
    clock.advance(KEPT_FOR - 1)
    assert (await post(api)).json()["keyId"] == first.json()["keyId"]
    clock.advance(1)
    assert (await post(api)).json()["keyId"] != first.json()["keyId"]


async def test_a_repetition_during_the_first_request_is_409(api: Api, node: ServerNode, monkeypatch):
    entered, leave = asyncio.Event(), asyncio.Event()
    create = node.tenancy.keys.create

    async def slow(*args: object, **named: object):
        entered.set()
        await leave.wait()
        return await create(*args, **named)

    monkeypatch.setattr(node.tenancy.keys, "create", slow)
    first = asyncio.ensure_future(post(api))
    await entered.wait()

    second = await post(api)
    leave.set()

    assert (second.status_code, second.headers["retry-after"]) == (409, "1")
    assert (await first).status_code == 201


async def test_a_refused_request_may_be_repeated(api: Api, node: ServerNode):
    body = {**BODY, "expiresAt": "2001-01-01T00:00:00Z"}
    for _ in range(2):
        answer = await api.post("/api/v1/keys", json=body, headers={"idempotency-key": "k"})
        assert answer.status_code == 400
    assert (await post(api)).status_code == 201


async def test_a_reservation_whose_server_died_ends_by_itself(
    api: Api, node: ServerNode, clock: VirtualClock, monkeypatch
):
    async def die(*_: object, **__: object):
        raise KeyboardInterrupt

    def unsaid(*_: object):
        return
        yield

    with monkeypatch.context() as patch:
        patch.setattr(node.tenancy.keys, "create", die)
        patch.setattr(moves, "release", unsaid)
        with pytest.raises(KeyboardInterrupt):
            await post(api)

    assert (await post(api)).status_code == 409
    clock.advance(RUNNING_FOR)
    assert (await post(api)).status_code == 201


async def test_the_key_is_bounded(api: Api):
    answer = await post(api, "k" * 257)
    assert (answer.status_code, answer.json()["field"]) == (400, "Idempotency-Key")
