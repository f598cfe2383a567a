"""The client's events against a real server in the same process; a webhook is called as its sender would."""

import pytest

from horae.env import SECOND, system_env
from horae.errors import BadInput, Conflict, NotFound
from horae.model.base.webhook_signature import sign
from tests.client.test_real import embedded


async def test_events_are_sent_once_and_start_jobs():
    async with embedded() as client:
        trigger = {"name": "doubled", "event": "number", "params": {"i": "${event.payload.n}"}}
        await client.jobs.edit("double", triggers=[trigger])

        sent = await client.events.send("number", {"n": 4}, id="e1")
        again = await client.events.send("number", {"n": 4}, id="e1")
        done = await client.executions.wait(sent.fired[0]["executionId"], timeout=30)

        assert (done.result, done.raw["event"], done.raw["origin"]) == (8, "e1", "event")
        assert (again.repeated, again.fired) == (True, sent.fired)
        with pytest.raises(Conflict):
            await client.events.send("number", {"n": 5}, id="e1")
        many = await client.events.send_many([{"name": "number", "payload": {"n": n}} for n in range(3)])
        assert [len(one.fired) for one in many] == [1, 1, 1]
        assert len(await client.events.list(name="number")) == 4
        assert (await client.events.send("unheard")).note


async def test_a_webhook_is_created_called_and_deleted():
    async with embedded() as client:
        await client.jobs.edit(
            "double", triggers=[{"name": "hook", "webhook": True, "params": {"i": "${event.payload.n}"}}]
        )
        made = (await client.events.create_webhook("double", "hook")).raw
        path = made["url"][made["url"].index("/api/") :]
        at = system_env().now() // SECOND
        signature = sign(made["secret"], "m1", at, b'{"n":3}')
        headers = {"webhook-id": "m1", "webhook-timestamp": str(at), "webhook-signature": signature}

        call = client._caller._call("POST", path, b'{"n":3}', headers)
        call.headers.pop("authorization", None)
        assert (await client._caller.ask(call)).status == 202
        (event,) = await client.events.list()
        done = await client.executions.wait(event.fired[0]["executionId"], timeout=30)

        assert done.result == 6
        assert "secret" not in (await client.events.webhook("double", "hook")).raw
        await client.events.delete_webhook("double", "hook")
        with pytest.raises(NotFound):
            await client._caller.ask(call)
        with pytest.raises(BadInput):
            await client.events.create_webhook("double", "hook", secret="short")
