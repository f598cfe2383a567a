"""The client's holds against a real server in the same process, with a worker that runs jobs."""

import asyncio

import pytest

from horae.errors import BadInput, NotFound
from tests.client.test_real import embedded


async def test_a_queue_is_held_drained_and_released():
    async with embedded() as client:
        assert (await client.executions.wait((await client.submit("double", {"i": 1})).id, timeout=30)).result == 2
        hold = await client.queues.hold("default", "10m", reason="deploy-123", drain=True)
        looks: list[int] = []
        drained = await asyncio.wait_for(client.queues.drained(hold, lambda one: looks.append(one.running)), 30)
        assert (drained.state, drained.running, looks[-1]) == ("active", 0, 0)

        held = await client.submit("double", {"i": 2})
        shown = await client.executions.get(held.id)
        assert (shown.status, "deploy-123" in (shown.hint or "")) == ("queued", True)
        released = await client.queues.release("default", reason="deploy-123")
        assert [one["holdId"] for one in released.raw["released"]] == [hold.id]
        assert (await client.executions.wait(held.id, timeout=30)).result == 4
        assert [(one.id, one.state) for one in await client.queues.holds(ended=True)] == [(hold.id, "ended")]


async def test_a_hold_ends_by_itself_and_waiting_executions_run():
    async with embedded() as client:
        await client.queues.hold(None, 0.3)
        held = await client.submit("double", {"i": 2})
        assert (await client.executions.get(held.id)).status == "queued"

        assert (await client.executions.wait(held.id, timeout=30)).result == 4
        assert list(await client.queues.holds()) == []


async def test_windows_are_attached_and_removed():
    async with embedded() as client:
        await client.calendars.put("xmas", {"dates": ["12-25"]})
        window = await client.queues.set_window("default", "xmas", reason="closed")
        assert (window.calendar, window.state, window.reason) == ("xmas", "planned", "closed")
        assert [one.id for one in await client.queues.holds("default")] == [window.id]
        await client.queues.remove_window("default", "xmas")
        with pytest.raises(NotFound):
            await client.queues.remove_window("default", "xmas")
        with pytest.raises(BadInput):
            await client.queues.hold("default")
