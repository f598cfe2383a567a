"""The worker's calls over HTTP."""

from contextlib import suppress
from random import Random
from uuid import UUID

import msgspec
import pytest
from msgspec import Raw, structs

from horae.env import SECOND, VirtualClock, system_env
from horae.errors import (
    BadInput,
    Busy,
    Conflict,
    Forbidden,
    HoraeError,
    NotFound,
    ProtocolMismatch,
    SessionEnded,
    StoreUnavailable,
    TooLarge,
    Unauthorized,
)
from horae.model.fleet.protocol import Answer, Await, Exchange, Register, Registered, Remember, Step
from horae.model.fleet.submit import ChildSubmit, Submit
from horae.worker import http_transport
from horae.worker.http_transport import AWAY, HttpTransport
from tests.worker.web import web

ID = system_env().new_id()
REGISTERED = Registered(session_id=ID, namespace="default", session_timeout=15, heartbeat=5, now=1)


def ok(body, status=200):
    return lambda asked: (status, {"content-type": "application/json"}, msgspec.json.encode(body))


def problem(status, slug, headers=None):
    document = {
        "type": f"urn:horae:{slug}",
        "title": "t",
        "status": status,
        "detail": "It is so.",
        "remedy": "Do this.",
    }
    return lambda asked: (status, headers or {}, msgspec.json.encode(document))


async def test_it_registers_with_its_key():
    async with web(ok(REGISTERED, 201)) as site:
        transport = HttpTransport([site.url + "/"], "the-key", rng=Random(1))
        registered = await transport.register(Register(protocol=1, worker="w"))
        asked = site.asked[0]

        assert registered == REGISTERED
        assert (asked.method, asked.path) == ("POST", "/api/v1/sessions")
        assert asked.headers["authorization"] == "Bearer the-key"
        assert msgspec.json.decode(asked.body)["worker"] == "w"
        await transport.close()


async def test_every_call_has_its_route():
    answers = {
        "exchange": Answer(now=1),
        "executions": {"items": [{"executionId": ID, "deduplicated": True, "status": "queued"}]},
        "steps": {"steps": [{"result": 5, "known": True}]},
        f"steps?parcel={ID}&item=3": {"steps": {"a": {"b": 1}}, "next": "a b"},
        f"steps?parcel={ID}&item=3&after=a%20b": {"steps": {}},
        "awaits": {"deadline": 7},
        str(ID): {},
    }
    async with web(lambda asked: ok(answers[asked.path.rpartition("/")[2]])(asked)) as site:
        transport = HttpTransport([site.url], "k", rng=Random(1))
        assert await transport.exchange(ID, Exchange(channel=0, n=1)) == Answer(now=1)
        children = ChildSubmit(parcel=ID, item=0, attempt=1, call="1", submissions=[Submit(job="j")])
        assert (await transport.submit_children(ID, children))[0].deduplicated
        remembered = await transport.remember(ID, Remember(steps=[Step(parcel=ID, item=0, attempt=1, name="a")]))
        assert bytes(remembered.steps[0].result) == b"5"
        page = await transport.known_steps(ID, ID, 3, "")
        assert ({n: bytes(r) for n, r in page.steps.items()}, page.next) == ({"a": b'{"b":1}'}, "a b")
        assert (await transport.known_steps(ID, ID, 3, "a b")).next is None
        body = Await(parcel=ID, item=0, attempt=1, step="@wait:a", signal="a")
        assert (await transport.wait_for_signal(ID, body)).deadline == 7
        await transport.close_session(ID)

        assert [asked.method for asked in site.asked] == ["POST", "POST", "POST", "GET", "GET", "POST", "DELETE"]
        assert site.connections == 1, "connections are kept"
        await transport.close()


@pytest.mark.parametrize(
    ("status", "slug", "kind"),
    [
        (400, "bad-input", BadInput),
        (401, "unauthorized", Unauthorized),
        (403, "forbidden", Forbidden),
        (404, "not-found", NotFound),
        (409, "session-ended", SessionEnded),
        (409, "conflict", Conflict),
        (413, "too-large", TooLarge),
        (418, "teapot", BadInput),
        (426, "protocol-mismatch", ProtocolMismatch),
        (500, "internal", HoraeError),
        (503, "store-unavailable", StoreUnavailable),
    ],
)
async def test_errors_are_rebuilt_with_their_class(status, slug, kind):
    async with web(problem(status, slug)) as site:
        transport = HttpTransport([site.url], "k", rng=Random(1))
        with pytest.raises(kind) as raised:
            await transport.exchange(ID, Exchange(channel=0, n=1))

        assert type(raised.value) is kind
        assert str(raised.value) == "It is so. Do this."
        await transport.close()


async def test_an_answer_that_is_no_problem_document_is_still_an_error():
    async with web(lambda asked: (502, {}, b"<html>bad gateway</html>")) as site:
        transport = HttpTransport([site.url], "k", rng=Random(1))
        with pytest.raises(HoraeError, match="502"):
            await transport.exchange(ID, Exchange(channel=0, n=1))
        await transport.close()


async def test_the_next_server_is_used_if_one_does_not_answer():
    async with web(ok(Answer(now=7))) as site:
        transport = HttpTransport(["http://127.0.0.1:1", site.url], "k", rng=Random(1))
        with pytest.raises(Busy, match=r"127\.0\.0\.1:1"):
            await transport.exchange(ID, Exchange(channel=0, n=1))

        assert (await transport.exchange(ID, Exchange(channel=0, n=1))).now == 7
        assert transport.servers[0] == site.url
        await transport.close()


async def test_workers_of_a_dead_server_spread_over_the_others_and_try_none_twice():
    urls = [f"http://127.0.0.1:{port}" for port in range(1, 5)]
    asked = []
    for seed in range(40):
        transport = HttpTransport(urls, "k", rng=Random(seed))
        asked.append([])
        for _ in urls:
            asked[-1].append(transport.servers[0])
            with pytest.raises(Busy):
                await transport.exchange(ID, Exchange(channel=0, n=1))

    assert all(sorted(one) == urls for one in asked)
    assert {one[1] for one in asked} == set(urls[1:])


async def test_it_learns_of_other_servers():
    transport = HttpTransport(["http://a:1"], "k", rng=Random(1))
    transport.add_servers(["http://b:1/", "http://a:1", "ftp://c"])

    assert transport.servers == ["http://a:1", "http://b:1"]


async def test_announced_servers_are_used_only_while_configured_ones_do_not_answer():
    clock, up = VirtualClock(), [True]

    def named(asked):
        return ok(Answer(now=1))(asked) if up[0] else (502, {}, b"")

    async with web(ok(Answer(now=7))) as told, web(named) as site:
        transport = HttpTransport([site.url], "k", rng=Random(1), clock=clock)
        transport.add_servers([told.url])

        async def answered() -> int:
            for _ in range(2):
                with suppress(HoraeError):
                    return (await transport.exchange(ID, Exchange(channel=0, n=1))).now
            raise AssertionError("nobody answered")

        assert [await answered() for _ in range(5)] == [1] * 5
        up[0] = False
        assert [await answered() for _ in range(5)] == [7] * 5
        up[0] = True
        assert await answered() == 7
        clock.advance(round(AWAY * SECOND))
        assert [await answered() for _ in range(3)] == [1] * 3
        await transport.close()


async def test_a_worker_names_its_installation_and_leaves_servers_of_others():
    ours = UUID(int=7)
    registered = structs.replace(REGISTERED, installation=ours)
    asked = []

    def answer(request):
        asked.append(request.headers.get("horae-installation"))
        return ok(registered)(request) if request.path.endswith("/sessions") else ok(Answer(now=7))(request)

    async with web(answer) as site, web(problem(421, "misdirected")) as other:
        transport = HttpTransport([site.url], "k", rng=Random(1))
        await transport.register(Register(protocol=1, worker="w"))
        await transport.exchange(ID, Exchange(channel=0, n=1))
        await transport.register(Register(protocol=1, worker="w"))
        assert asked == [None, str(ours), str(ours)]
        transport.add_servers([other.url])
        transport._at = 1
        with pytest.raises(Busy, match="not a server of this worker"):
            await transport.register(Register(protocol=1, worker="w"))
        assert transport.servers[0] == site.url
        await transport.close()


async def test_a_worker_needs_a_server():
    with pytest.raises(BadInput):
        HttpTransport([], "k", rng=Random(1))


async def test_an_idle_connection_that_was_closed_is_replaced():
    async with web(ok(Answer(now=1))) as site:
        transport = HttpTransport([site.url], "k", rng=Random(1))
        await transport.exchange(ID, Exchange(channel=0, n=1))
        site.drop()

        assert (await transport.exchange(ID, Exchange(channel=0, n=2))).now == 1
        assert site.connections == 2
        await transport.close()


async def test_a_silent_server_is_left_after_its_timeout(monkeypatch):
    monkeypatch.setattr(http_transport, "SLACK", 0.1)
    async with web(lambda asked: None) as site:
        transport = HttpTransport([site.url], "k", rng=Random(1))
        with pytest.raises(Busy):
            await transport.exchange(ID, Exchange(channel=0, n=1, wait=SECOND // 10))
        await transport.close()


async def test_a_request_with_an_unreadable_answer_is_repeated():
    async with web(ok({"slices": 5})) as site:
        transport = HttpTransport([site.url], "k", rng=Random(1))
        with pytest.raises(Busy):
            await transport.exchange(ID, Exchange(channel=0, n=1))
        await transport.close()


async def test_large_bodies_are_sent_whole():
    big = Answer(now=1, jobs={"a": Raw(b'"' + b"x" * 3_000_000 + b'"')})
    async with web(ok(big)) as site:
        transport = HttpTransport([site.url], "k", rng=Random(1))
        answer = await transport.exchange(ID, Exchange(channel=0, n=1))

        assert len(bytes(answer.jobs["a"])) == 3_000_002
        await transport.close()
