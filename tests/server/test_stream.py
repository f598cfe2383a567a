"""Server-sent events, over the application itself: httpx's ASGI transport reads answers only to their end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import msgspec
import pytest

from horae.engine.base.hints import MOST_BYTES, MOST_EVENTS, Hint, _fit
from horae.engine.server_node import ServerNode
from horae.env import SECOND, VirtualClock
from horae.model.base.event import ChangeEvent, limit_events
from horae.model.base.ids import execution_id, parcel_of
from horae.model.fleet.submit import Submit
from horae.server.app import Application
from horae.server.streaming import event_feeds as gathering
from horae.server.streaming.event_feeds import HEARTBEAT, MISSED, MOST_PENDING, PACE
from horae.server.streaming.event_feeds import StreamReader as Reading
from tests.waiting import eventually

PARCEL = UUID("0198c5a0-0000-7000-8000-000000000000")


class Reader:
    """One client of the stream."""

    def __init__(self) -> None:
        self.messages: asyncio.Queue[dict] = asyncio.Queue()
        self.gone = asyncio.Event()
        self._events: list[str] = []

    async def receive(self) -> dict:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict) -> None:
        await self.messages.put(message)

    async def next(self) -> str:
        return (await self.messages.get())["body"].decode()

    async def event(self) -> dict:
        self._events = self._events or (await self.next()).strip().split("\n\n")
        lines = dict(line.split(": ", 1) for line in self._events.pop(0).splitlines())
        return {"event": lines["event"], **msgspec.json.decode(lines["data"])}


@asynccontextmanager
async def following(app: Application, node: ServerNode, query: str = "") -> AsyncIterator[Reader]:
    reader = Reader()
    key = (await node.tenancy.keys.create(1, "reader", "admin")).text
    scope = {
        "type": "http", "method": "GET", "path": "/api/v1/stream", "raw_path": b"/api/v1/stream", "root_path": "",
        "query_string": query.encode(), "headers": [(b"authorization", f"Bearer {key}".encode())], "scheme": "http",
        "http_version": "1.1",
    }  # fmt: skip
    running = asyncio.ensure_future(app(scope, reader.receive, reader.send))
    start = await reader.messages.get()
    assert start["status"] == 200
    assert (b"content-type", b"text/event-stream") in start["headers"]
    assert await reader.next() == "retry: 2000\n\n"
    yield reader
    reader.gone.set()
    await running


def tell(node: ServerNode, kind: str = "execution", id: UUID = PARCEL, state: str = "running", **more: object) -> None:
    event = ChangeEvent(kind=kind, id=id, state=state, namespace=more.pop("namespace", 1), at=node.env.now(), **more)
    node.base.hints.send_locally(Hint(events=[event]))


async def some(node: ServerNode) -> UUID:
    """A parcel of ten executions."""
    await node.definitions.jobs.put(1, {"name": "many", "command": "true"})
    receipts, _ = await node.submitter.submit_bulk(1, Submit(job="many"), [b"{}"] * 10, origin="submit")
    return parcel_of(receipts[0].execution_id)


async def test_steps_are_followed_with_their_workflow(app: Application, node: ServerNode):
    parcel = await some(node)
    execution, other = execution_id(parcel, 3), execution_id(parcel, 4)
    async with following(app, node, f"execution={execution}") as reader:
        for id in (other, execution):
            node.base.hints.send(Hint(events=[ChangeEvent("step", id, "running", 1, 0, step="a")]))

        event = await reader.event()
        assert (event["event"], event["id"], event["step"]) == ("step", str(execution), "a")


async def test_events_arrive_as_they_happen(app: Application, node: ServerNode):
    async with following(app, node) as reader:
        tell(node, "job", state="paused")
        told = await reader.event()
    assert told == {
        "event": "job", "kind": "job", "id": str(PARCEL), "state": "paused", "at": "2027-01-15T08:00:00Z",
    }  # fmt: skip


async def test_only_the_requested_topics_and_the_own_namespace(app: Application, node: ServerNode):
    async with following(app, node, "topics=jobs,workers") as reader:
        tell(node, "execution")
        tell(node, "job", namespace=2)
        tell(node, "worker", state="lost")
        assert (await reader.event())["event"] == "worker"


async def test_one_execution_with_its_log(app: Application, node: ServerNode):
    parcel = await some(node)
    wanted = execution_id(parcel, 5)
    async with following(app, node, f"execution={wanted}") as reader:
        tell(node, "execution", execution_id(parcel, 0), count=5)
        tell(node, "execution", execution_id(parcel, 6), count=3)
        tell(node, "job")
        tell(node, "execution", execution_id(parcel, 3), count=4, state="success")
        tell(node, "log", wanted, state="running")
        assert (await reader.event())["state"] == "success"
        assert (await reader.event())["event"] == "log"


async def test_a_quiet_stream_sends_heartbeats(app: Application, node: ServerNode, clock: VirtualClock):
    async with following(app, node) as reader:
        for _ in range(2):
            await eventually(clock.next_wake)
            clock.advance(int(HEARTBEAT * SECOND))
            assert await reader.next() == ": still here\n\n"


async def test_it_ends_when_the_key_is_revoked(app: Application, node: ServerNode, clock: VirtualClock):
    async with following(app, node) as reader:
        (key,) = await node.tenancy.keys.list(1)
        await node.tenancy.keys.revoke(1, key.id)
        await eventually(clock.next_wake)
        clock.advance(int(HEARTBEAT * SECOND))
        assert await reader.next() == ""


async def test_a_busy_one_ends_when_the_key_is_revoked(app: Application, node: ServerNode, clock: VirtualClock):
    """A busy stream has no quiet moment to check the credential."""
    async with following(app, node) as reader:
        tell(node)
        assert (await reader.event())["event"] == "execution"
        (key,) = await node.tenancy.keys.list(1)
        await node.tenancy.keys.revoke(1, key.id)
        tell(node)
        await eventually(clock.next_wake)
        clock.advance(int(PACE * SECOND))
        assert await reader.next() == ""


async def test_it_ends_when_the_server_stops(app: Application, node: ServerNode):
    async with following(app, node) as reader:
        node.base.events.close()
        assert await reader.next() == ""


async def test_it_ends_when_the_client_leaves(app: Application, node: ServerNode):
    async with following(app, node):
        assert node.base.events.wanted
    assert not node.base.events.wanted


async def test_a_slow_listener_is_notified_of_missed_events(app: Application, node: ServerNode):
    async with following(app, node) as reader:
        for _ in range(MOST_PENDING + 2):
            tell(node)
        body = await reader.next()
        assert body.startswith(MISSED.decode())
        assert body.count("event: execution") <= MOST_PENDING


async def test_events_left_out_by_other_servers_are_reported_as_missed(app: Application, node: ServerNode):
    left = limit_events(
        [ChangeEvent("execution", PARCEL, "success", 1, node.env.now()) for _ in range(60)], MOST_EVENTS
    )
    assert (len(left), left[0].kind) == (MOST_EVENTS + 1, "missed")
    async with following(app, node, "topics=jobs") as reader:
        node.base.hints.send_locally(Hint(events=left))
        assert await reader.next() == MISSED.decode()


def test_a_message_to_other_servers_always_fits():
    events = [ChangeEvent("execution", PARCEL, "success", i, 0) for i in range(40)]
    few = msgspec.json.decode(_fit(Hint(events=events)), type=Hint).events
    assert {event.kind for event in few} <= {"execution", "missed"}
    assert len(few) == 40
    many = [ChangeEvent("execution", PARCEL, "success", i, 0) for i in range(400)]
    assert len(_fit(Hint(events=many))) <= MOST_BYTES


async def test_a_listener_that_does_not_read_is_notified_of_missed_events(monkeypatch):
    monkeypatch.setattr(gathering, "MOST_BEHIND", 2)
    reader = Reading()
    for body in (b"a", b"b", b"c"):
        reader.put(body)
    assert [await reader.get(), await reader.get()] == [MISSED, b"c"]


async def test_things_are_counted_for_streams_with_an_interval(app: Application, node: ServerNode, clock: VirtualClock):
    parcel = await some(node)
    one, job = execution_id(parcel, 1), UUID(int=9)
    async with following(app, node, f"topics=executions,jobs&every=250ms&execution={one}") as reader:
        tell(node, "execution", execution_id(parcel, 2), count=5, job=job)
        tell(node, "execution", execution_id(parcel, 7), count=3, job=job)
        tell(node, "execution", one, state="success")
        tell(node, "log", one)
        tell(node, "worker")
        assert [(await reader.event())["event"] for _ in range(2)] == ["execution", "log"]
        told = await reader.event()
        assert (told["event"], told["changes"]) == (
            "changes",
            [
                {"kind": "execution", "state": "running", "jobId": str(job), "count": 8},
                {"kind": "execution", "state": "success", "count": 1},
            ],
        )
        tell(node, "job")
        await eventually(clock.next_wake)
        clock.advance(SECOND // 5)
        assert reader.messages.empty()
        clock.advance(SECOND // 5)
        assert (await reader.event())["changes"] == [{"kind": "job", "state": "running", "count": 1}]


async def test_events_are_encoded_once_for_all_listeners_of_a_filter(app: Application, node: ServerNode):
    async with following(app, node) as one, following(app, node) as another:
        tell(node, "job", state="paused")
        bodies = [(await reader.messages.get())["body"] for reader in (one, another)]
    assert bodies[0] is bodies[1]


@pytest.mark.parametrize("query", ["topics=weather", "execution=x", "colour=red", "every=1ms", "every=x"])
async def test_a_bad_query_is_400(query: str, api):
    assert (await api.get(f"/api/v1/stream?{query}")).status_code == 400
