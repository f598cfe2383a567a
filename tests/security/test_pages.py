"""A page of a list takes little memory, whatever the size of its executions' params and errors."""

import tracemalloc

import pytest

from horae.engine.server_node import ServerNode
from horae.model.fleet.protocol import Failure
from tests.security.people import Api, both, done
from tests.server.working import HandWorker

MIB = 1 << 20
MANY = 40


async def peak_of(api: Api, path: str) -> tuple[int, list[dict[str, object]]]:
    """Return the peak memory of reading a list, and its items."""
    await done(api.get(path))  # warm up, so that one-time allocations do not count
    tracemalloc.start()
    try:
        page = await done(api.get(path))
        return tracemalloc.get_traced_memory()[1], page["items"]
    finally:
        tracemalloc.stop()


@both
async def test_lists_of_executions_with_large_params_take_little_memory(node: ServerNode, api: Api):
    await done(api.post("/api/v1/jobs", json={"name": "large", "http": "https://a.example"}))
    for _ in range(MANY):
        await done(api.post("/api/v1/executions", json={"job": "large", "params": {"x": "x" * (MIB - 100)}}))

    peak, items = await peak_of(api, "/api/v1/executions?limit=1000")

    assert len(items) == MANY
    assert "params" not in items[0]
    assert peak < 8 * MIB


@pytest.mark.parametrize("path", ["/api/v1/executions?limit=1000&status=failed", "/api/v1/dlq?limit=1000"])
async def test_lists_of_failed_executions_continue_after_a_full_page(node: ServerNode, api: Api, path: str):
    await done(api.post("/api/v1/jobs", json={"name": "fails", "http": "https://a.example", "retries": 0}))
    worker = await HandWorker.register(api, concurrency=1000)
    for _ in range(4):
        await done(api.post("/api/v1/executions", json={"job": "fails", "items": [{}] * 250}))
    grants = await worker.take(1000)
    while sum(grant.hi - grant.lo for grant in grants) < 1000:
        grants += await worker.take(1000)
    await worker.report(grants, error=Failure(type="Boom", message="m" * 16_000, permanent=True))

    sizes, cursor = [], ""
    while cursor is not None:
        answer = await api.get(path + (f"&cursor={cursor}" if cursor else ""))
        sizes.append((len(answer.content), len(answer.json()["items"])))
        cursor = answer.json()["nextCursor"]
    assert sum(count for _, count in sizes) == 1000
    assert max(size for size, _ in sizes) < 12 * MIB


@both
async def test_lists_of_large_events_and_jobs_take_little_memory(node: ServerNode, api: Api):
    for i in range(MANY):
        await done(api.post("/api/v1/events", json={"name": "large", "payload": "x" * (MIB // 4 - 100)}))
        body = {"name": f"large-{i}", "http": "https://a.example", "params": {"x": "x" * (MIB // 4 - 3000)}}
        await done(api.post("/api/v1/jobs", json=body))

    peak, events = await peak_of(api, "/api/v1/events?limit=1000")
    assert len(events) == MANY
    assert "payload" not in events[0]
    assert peak < 4 * MIB

    names, cursor = [], ""
    while cursor is not None:
        answer = await api.get(f"/api/v1/jobs?limit=1000{cursor and f'&cursor={cursor}'}")
        assert len(answer.content) < 5 * MIB
        names += [job["name"] for job in answer.json()["items"]]
        cursor = answer.json()["nextCursor"]
    assert sorted(names) == sorted({f"large-{i}" for i in range(MANY)})
