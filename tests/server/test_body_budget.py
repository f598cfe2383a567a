"""Large bodies of one namespace use a limited part of the server's memory, and do not delay other namespaces."""

import asyncio
from typing import Any

import pytest

from horae.engine.server_node import ServerNode
from horae.env import system_env
from horae.server.app import Application
from horae.server.body_budget import SMALL, BodyBudget, large_body_size
from horae.server.routes.table import ROUTES

ALPHA, BETA = 7, 8
BULK = next(route for route in ROUTES if route.name == "executions.submit")


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_bodies_of_a_namespace_wait_for_room_in_order():
    room, entered = BodyBudget(100), []

    async def enter(size: int, namespace: int = ALPHA) -> None:
        await room.enter(namespace, size)
        entered.append((namespace, size))

    await enter(60)
    waiting = [asyncio.create_task(enter(size)) for size in (50, 30, 90)]
    await settle()
    await enter(100, BETA)
    assert entered == [(ALPHA, 60), (BETA, 100)]

    room.leave(ALPHA, 60)
    await settle()
    assert entered[2:] == [(ALPHA, 50), (ALPHA, 30)]
    for size in (50, 30):
        room.leave(ALPHA, size)
    await asyncio.gather(*waiting)
    for namespace, size in ((ALPHA, 90), (BETA, 100)):
        room.leave(namespace, size)
    assert not room._held
    assert not room._waiting


async def test_a_body_larger_than_all_room_is_read_alone():
    room = BodyBudget(100)
    await room.enter(ALPHA, 500)
    second = asyncio.create_task(room.enter(ALPHA, 1))
    await settle()
    assert not second.done()
    room.leave(ALPHA, 500)
    await second


@pytest.mark.parametrize("freed", [False, True])
async def test_a_request_that_ends_while_it_waits_takes_no_room(freed: bool):
    room = BodyBudget(100)
    await room.enter(ALPHA, 100)
    gone, next_one = (asyncio.create_task(room.enter(ALPHA, size)) for size in (80, 90))
    await settle()
    if freed:
        room.leave(ALPHA, 100)
        gone.cancel()
    else:
        gone.cancel()
        await settle()
        room.leave(ALPHA, 100)
    await next_one
    room.leave(ALPHA, 90)
    assert gone.cancelled()
    assert not room._held


@pytest.mark.parametrize(
    ("headers", "size"),
    [
        ({}, 0),
        ({b"content-length": b"%d" % SMALL}, 0),
        ({b"content-length": b"%d" % (SMALL + 1)}, SMALL + 1),
        ({b"content-length": b"999999999999"}, BULK.limit),
        ({b"transfer-encoding": b"chunked"}, BULK.limit),
    ],
)
def test_room_is_taken_for_as_much_as_a_body_may_have(headers: dict[bytes, bytes], size: int):
    assert large_body_size(BULK, headers) == size


async def test_a_body_is_not_read_before_there_is_room_for_it():
    node = await ServerNode.open(system_env(), "sqlite://")
    await node.start()
    key = await node.tenancy.keys.ensure_admin_key()
    assert key is not None
    application = Application(node)
    application.body_budget = BodyBudget(300_000)
    read: list[int] = []
    gate = asyncio.Event()

    async def send(number: int) -> int:
        async def receive() -> dict[str, Any]:
            read.append(number)
            await gate.wait()
            return {"type": "http.request", "body": b"x" * 200_000, "more_body": False}

        headers = [(b"authorization", f"Bearer {key}".encode()), (b"content-length", b"200000")]
        scope = {"type": "http", "method": "POST", "path": "/api/v1/executions", "raw_path": b"", "query_string": b""}
        reply = await application.answer({**scope, "headers": headers, "client": ("", 0), "scheme": "http"}, receive)
        return reply.status

    requests = [asyncio.create_task(send(number)) for number in range(3)]
    await settle()
    assert read == [0]
    gate.set()
    assert await asyncio.gather(*requests) == [400, 400, 400]
    assert read == [0, 1, 2]
    assert not application.body_budget._held
    await node.stop()
