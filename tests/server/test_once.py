"""Idempotency-Key: a repetition is answered alike and does nothing again."""

import asyncio

import pytest

from horae.engine.node import Node
from horae.env import VirtualClock
from horae.server.once import KEPT_FOR, RUNNING_FOR
from horae.store.moves import keys as moves
from tests.server.conftest import Api

BODY = {"name": "ci", "role": "worker"}


async def post(api: Api, key: str = "k", **body: str):
    return await api.post("/api/v1/keys", json={**BODY, **body}, headers={"idempotency-key": key})


async def count(node: Node) -> int:
    return len([key for key in await node.keys.list(1) if key.name == "ci"])


async def test_a_repetition_is_answered_alike_and_does_nothing(api: Api, node: Node):
    first, second = await post(api), await post(api)
    assert (first.status_code, first.json()["keyId"]) == (second.status_code, second.json()["keyId"])
    assert await count(node) == 1


async def test_another_body_under_the_same_key_is_422(api: Api, node: Node):
    await post(api)
    answer = await post(api, role="admin")
    assert (answer.status_code, answer.json()["type"]) == (422, "urn:horae:key-reused")
    assert await count(node) == 1


async def test_another_key_is_another_request(api: Api, node: Node):
    await post(api, "a")
    await post(api, "b")
    assert await count(node) == 2


async def test_answers_are_kept_for_a_day(api: Api, node: Node, clock: VirtualClock):
    first = await post(api)
    clock.advance(KEPT_FOR - 1)
    assert (await post(api)).json()["keyId"] == first.json()["keyId"]
    clock.advance(1)
    assert (await post(api)).json()["keyId"] != first.json()["keyId"]


async def test_while_the_first_is_under_way_the_second_is_409(api: Api, node: Node, monkeypatch):
    entered, leave = asyncio.Event(), asyncio.Event()
    create = node.keys.create

    async def slow(*args: object, **named: object):
        entered.set()
        await leave.wait()
        return await create(*args, **named)

    monkeypatch.setattr(node.keys, "create", slow)
    first = asyncio.ensure_future(post(api))
    await entered.wait()

    second = await post(api)
    leave.set()

    assert (second.status_code, second.headers["retry-after"]) == (409, "1")
    assert (await first).status_code == 201


async def test_a_refused_request_may_be_repeated(api: Api, node: Node):
    body = {**BODY, "expiresAt": "2001-01-01T00:00:00Z"}
    for _ in range(2):
        answer = await api.post("/api/v1/keys", json=body, headers={"idempotency-key": "k"})
        assert answer.status_code == 400
    assert (await post(api)).status_code == 201


async def test_a_reservation_whose_server_died_ends_by_itself(api: Api, node: Node, clock: VirtualClock, monkeypatch):
    async def die(*_: object, **__: object):
        raise KeyboardInterrupt

    def unsaid(*_: object):
        return
        yield

    with monkeypatch.context() as patch:
        patch.setattr(node.keys, "create", die)
        patch.setattr(moves, "release", unsaid)
        with pytest.raises(KeyboardInterrupt):
            await post(api)

    assert (await post(api)).status_code == 409
    clock.advance(RUNNING_FOR)
    assert (await post(api)).status_code == 201


async def test_the_key_is_bounded(api: Api):
    answer = await post(api, "k" * 257)
    assert (answer.status_code, answer.json()["field"]) == (400, "Idempotency-Key")
