"""Waiting, following and the stream."""

import asyncio

import pytest

from horae.client.kernel.executions import LOOKS
from horae.client.transport.transport import ApiRequest, ApiResponse
from horae.errors import NotFound
from tests.client.fakes import client_of, ok, problem


def execution(status: str) -> ApiResponse:
    return ok({"executionId": "e", "status": status, "startedAt": "2026-11-15T08:00:00Z", "ofANewerServer": 1})


async def test_waiting_continues_until_the_end():
    client, server, clock = client_of(execution("queued"), execution("running"), execution("success"))
    final = await client.executions.wait("e")
    assert final.status == "success"
    assert final.is_final
    assert len(server.calls) == 3
    assert clock.slept == [0.02, 0.04]


async def test_waiting_ends_with_its_timeout_and_one_more_check():
    client, _, clock = client_of(execution("running"))
    with pytest.raises(TimeoutError, match="still running after 3 s"):
        await client.executions.wait("e", timeout=3)
    assert sum(clock.slept) == pytest.approx(3)

    client, _, _ = client_of(execution("running"), execution("success"))
    assert (await client.executions.wait("e", timeout=0.01)).is_final


async def test_many_are_waited_for_together():
    client, _, _ = client_of(execution("queued"), execution("success"))
    assert [one.status for one in await client.executions.wait_all(["e", "f"])] == ["success", "success"]


async def test_only_some_of_many_are_checked_at_the_same_time():
    client, server, _ = client_of(execution("success"))
    asked, most = 0, 0
    send = server.send

    async def counted(call: ApiRequest) -> ApiResponse:
        nonlocal asked, most
        asked += 1
        most = max(most, asked)
        await asyncio.sleep(0)
        asked -= 1
        return await send(call)

    server.send = counted  # type: ignore[method-assign]
    await client.executions.wait_all([str(n) for n in range(4 * LOOKS)])
    assert most == LOOKS


async def test_an_error_ends_the_wait_for_all():
    client, server, _ = client_of(
        lambda call: problem(404, "not-found") if call.path.endswith("/f") else execution("queued")
    )
    with pytest.raises(NotFound):
        await client.executions.wait_all(["e", "f"])
    asked = len(server.calls)
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(server.calls) == asked


def lines(cursor: str, *texts: str, ended: bool = False) -> ApiResponse:
    return ok({"items": [{"text": text, "stream": "stdout"} for text in texts], "nextCursor": cursor, "ended": ended})


async def test_a_log_is_read_to_its_end():
    client, server, _ = client_of(lines("1", "a", "b"), lines("2", "c"), lines("2"))
    assert [line.text async for line in client.executions.logs("e")] == ["a", "b", "c"]
    assert [call.path.partition("?")[2] for call in server.calls] == ["", "cursor=1&limit=5000", "cursor=2&limit=5000"]


async def test_a_log_is_searched_to_its_end_and_reports_lost_lines():
    found, nothing, end = lines("1", "a"), lines("2"), lines("3")
    more = ApiResponse(status=200, body=nothing.body.replace(b'"ended":false', b'"ended":false,"more":true'))
    cut = ApiResponse(
        status=200,
        body=end.body.replace(b'"ended":false', b'"ended":true,"truncated":{"lines":3,"ends":true,"notice":"cut"}'),
    )
    client, server, _ = client_of(found, more, cut)
    told = [line.text async for line in client.executions.logs("e", grep="a b*c", level="warning")]
    assert told == ["a", "cut"]
    assert all("grep=a%20b%2Ac&level=warning" in call.path.replace("+", "%20") for call in server.calls)


async def test_all_last_lines_are_read_from_short_pages():
    first, older, oldest = lines("9", "d"), lines("7", "b", "c"), lines("5", "a")
    more = [
        ApiResponse(
            status=200, body=page.body.replace(b'"ended":false', b'"ended":true,"more":true,"from":%d' % number)
        )
        for page, number in ((first, 8), (older, 3), (oldest, 2))
    ]
    client, server, _ = client_of(*more, lines("9", ended=True))
    assert [line.text async for line in client.executions.logs("e", tail=4)] == list("abcd")
    queries = [call.path.partition("?")[2] for call in server.calls]
    assert queries == ["tail=4", "before=8&limit=3", "before=3&limit=1", "cursor=9&limit=5000"]


async def test_a_log_is_followed_until_the_execution_ends():
    client, _, clock = client_of(
        lines("1", "a"), lines("1"), lines("1"), lines("2", "b", ended=True), lines("2", ended=True)
    )
    assert [line.text async for line in client.executions.logs("e", follow=True)] == ["a", "b"]
    assert len(clock.slept) == 2


async def test_lines_without_an_end_are_shown_while_they_grow_and_at_the_end():
    def bar(page: ApiResponse, text: str) -> ApiResponse:
        open = b'"unfinishedLines":[{"text":"%s","stream":"stdout"}],' % text.encode()
        return ApiResponse(status=200, body=page.body.replace(b'"ended"', open + b'"ended"'))

    client, _, _ = client_of(
        lines("1", "a"), bar(lines("1"), "1%"), bar(lines("1"), "2%"), lines("1"), bar(lines("1", ended=True), "lost")
    )
    shown: list[list[str]] = []
    pages = client.executions.log_pages(
        "e", follow=True, on_open=lambda some: shown.append([line.text for line in some])
    )
    assert [line.text async for page in pages for line in page] == ["a", "lost"]
    assert shown == [["1%"], ["2%"], []]


async def test_events_are_parsed_from_any_chunks():
    body = b'retry: 2000\n\n: still here\n\nevent: execution\ndata: {"kind": "execution", "id": "e"}\r\n\n'
    body += b'event: missed\ndata: {}\n\nevent: job\ndata: {"kind":\ndata: "job"}\n\ndata: cut off'

    client, server, _ = client_of(ApiResponse(status=200, body=body))

    assert [(event.kind, event.id) async for event in client.stream("executions", "jobs")] == [
        ("execution", "e"),
        ("missed", None),
        ("job", None),
    ]
    call: ApiRequest = server.calls[0]
    assert call.path == "/api/v1/stream?topics=executions%2Cjobs"
    assert call.headers["accept"] == "text/event-stream"


async def test_an_answer_keeps_unknown_fields():
    client, _, _ = client_of(execution("queued"))
    found = await client.executions.get("e")
    assert found.raw["ofANewerServer"] == 1
    assert found.started_at is not None
    assert "raw" not in repr(found)


async def test_a_result_is_fetched_from_its_artifact():
    far = {"$artifact": {"name": ":result", "url": "/u", "size": 7}}
    client, server, _ = client_of(ok({"executionId": "e", "status": "success", "result": far}), ok([1, 2, 3]))
    final = await client.executions.wait("e")
    assert await client.executions.result(final) == [1, 2, 3]
    assert server.calls[-1].path == "/api/v1/executions/e/artifacts/%3Aresult"
    for own in ({"rows": 1}, {"$artifact": "a"}, {"$artifact": {"name": "a"}}):
        client, _, _ = client_of(ok({"executionId": "e", "status": "success", "result": own}))
        assert await client.executions.result(await client.executions.get("e")) == own
