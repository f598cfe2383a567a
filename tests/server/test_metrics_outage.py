"""Metrics while the store is away: monitoring must notice it soon."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from horae.engine.server_node import ServerNode
from horae.engine.tenancy.keys import CACHED, RECALLED
from horae.env import SECOND, VirtualClock
from horae.errors import Busy, StoreUnavailable
from horae.server import auth
from horae.server.metrics import stored
from tests.server.conftest import Api, Connect
from tests.server.test_metrics import told

DEPTH = 'horae_queued_executions{namespace="default",queue="default"}'


async def refusing(*args: Any, **options: Any) -> Any:
    raise StoreUnavailable("Connection refused.")


async def hanging(*args: Any, **options: Any) -> Any:
    await asyncio.Event().wait()


@contextmanager
def store_that_is(node: ServerNode, how: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        for one in ("read", "write", "change"):
            patch.setattr(node.store.driver, one, how)
        for module, name in ((auth, "SOON"), (stored, "PATIENCE"), (stored, "AWAY_PATIENCE")):
            patch.setattr(module, name, 0.05)
        yield


async def seen(api: Api) -> dict[str, float]:
    answer = await api.get("/metrics")
    assert answer.status_code == 200, answer.text
    return told(answer.text)


@pytest.fixture
async def busy(api: Api) -> Api:
    """Return an administrator who has read the metrics of a server with a queued execution."""
    await api.post("/api/v1/jobs", json={"name": "pay", "command": "true"})
    await api.post("/api/v1/executions", json={"job": "pay"})
    there = await seen(api)
    assert (there["horae_ready"], there["horae_store_scrape_success"], there[DEPTH]) == (1, 1, 1)
    return api


async def test_an_unavailable_store_and_its_return_are_reported(
    busy: Api, node: ServerNode, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
):
    with store_that_is(node, refusing, monkeypatch):
        for _ in range(3):  # longer than a key is cached
            clock.advance(int((RECALLED - 1) * SECOND))
            away = await seen(busy)
            assert (away["horae_ready"], away["horae_store_scrape_success"]) == (0, 0)
            assert away["horae_submitted_executions_total"] == 1
            assert not [name for name in away if name.startswith(("horae_queued", "horae_workers", "horae_failing"))]
        assert (await busy.get("/api/v1/jobs")).status_code == 503

    back = await seen(busy)
    assert (back["horae_ready"], back["horae_store_scrape_success"], back[DEPTH]) == (1, 1, 1)


async def test_a_silent_store_is_neither_waited_for_nor_asked_repeatedly(
    busy: Api, node: ServerNode, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
):
    asked = 0

    async def counting(*args: Any, **options: Any) -> Any:
        nonlocal asked
        asked += 1
        await hanging()

    clock.advance(int(CACHED * SECOND))
    with store_that_is(node, counting, monkeypatch):
        silent = [await seen(busy) for _ in range(3)]
    assert [one["horae_store_scrape_success"] for one in silent] == [0, 0, 0]
    assert asked == 3 + 1  # the key each time, and the figures once


async def test_a_store_that_is_busy_is_there(busy: Api, node: ServerNode, monkeypatch: pytest.MonkeyPatch):
    async def crowded(*args: Any, **options: Any) -> Any:
        raise Busy("The read took too long.")

    with store_that_is(node, crowded, monkeypatch):
        crowd = await seen(busy)
    assert (crowd["horae_ready"], crowd["horae_store_scrape_success"]) == (1, 0)


async def test_only_recently_verified_keys_read_metrics_while_the_store_is_away(
    busy: Api, node: ServerNode, connect: Connect, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
):
    async def reader(name: str, ends: int | None = None) -> tuple[str, Api]:
        made = await node.tenancy.keys.create(1, name, "viewer", ends, permissions=("installation",))
        return made.stored.id, connect(authorization=f"Bearer {made.text}")

    _, stranger = await reader("stranger")
    revoked_id, revoked = await reader("revoked")
    (_, watcher), (_, sleeper) = [await reader(name) for name in ("watcher", "sleeper")]
    _, ending = await reader("ending", node.env.now() + int((RECALLED + CACHED) * SECOND))
    for one in (revoked, watcher, sleeper, ending):
        await seen(one)
    await node.tenancy.keys.revoke(1, revoked_id)
    for one in (watcher, sleeper, ending):
        await seen(one)

    with store_that_is(node, refusing, monkeypatch):
        for one in (stranger, revoked):
            assert (await one.get("/metrics")).status_code == 503
        clock.advance(int((RECALLED - 1) * SECOND))
        await seen(watcher)
        await seen(ending)
        clock.advance(int(CACHED * 2 * SECOND))
        await seen(watcher)
        for one in (sleeper, ending):
            assert (await one.get("/metrics")).status_code == 503
