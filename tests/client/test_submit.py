"""Submission: the requests, their number, and the results."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from uuid import UUID

import msgspec
import pytest

from horae.client.bulk import MOST_BYTES, chunks
from horae.client.transport.transport import ApiRequest, ApiResponse
from horae.errors import BadInput, NotFound, TooLarge
from tests.client.fakes import client_of, ok, problem


class Colour(Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    day: date


def accept(call: ApiRequest) -> ApiResponse:
    """Accept every item; return its params in the id."""
    body = msgspec.json.decode(call.body)
    items = [{"executionId": str(item["i"]), "status": "queued", "deduplicated": False} for item in body["items"]]
    return ok({"items": items, "accepted": len(items), "refused": 0}, 201)


async def test_a_submission_sends_the_given_options_only():
    client, server, _ = client_of(ok({"executionId": "e", "status": "queued", "deduplicated": True}))

    execution = await client.submit(
        "digest",
        {"point": Point(1, date(2026, 11, 15)), "colour": Colour.RED, "id": UUID(int=1)},
        delay=timedelta(minutes=10),
        key="k",
        priority=9,
    )

    assert server.calls[0].path == "/api/v1/executions"
    assert msgspec.json.decode(server.calls[0].body) == {
        "job": "digest",
        "delay": "10m",
        "key": "k",
        "priority": 9,
        "params": {
            "point": {"x": 1, "day": "2026-11-15"},
            "colour": "red",
            "id": "00000000-0000-0000-0000-000000000001",
        },
    }
    assert (execution.id, execution.status, execution.deduplicated) == ("e", "queued", True)


async def test_a_time_needs_its_zone():
    client, server, _ = client_of(ok({"executionId": "e"}))
    await client.submit("a", at=datetime(2026, 11, 15, 8, tzinfo=UTC))
    assert msgspec.json.decode(server.calls[0].body)["at"] == "2026-11-15T08:00:00+00:00"
    with pytest.raises(BadInput, match="has no time zone"):
        await client.submit("a", at=datetime(2026, 11, 15, 8))


async def test_values_without_a_json_form_are_refused_before_sending():
    client, server, _ = client_of(ok({}))
    with pytest.raises(BadInput, match="cannot be sent: object"):
        await client.submit("a", {"x": object()})
    with pytest.raises(BadInput, match="cannot be sent"):
        await client.submit_many("a", [{"x": object()}], atomic=True)
    assert server.calls == []


async def test_many_are_sent_a_thousand_per_request_and_answered_in_order():
    client, server, _ = client_of(accept)

    done = await client.submit_many("a", ({"i": i} for i in range(5_500)), priority=2)

    assert [int(one.execution_id or "") for one in done] == list(range(5_500))
    bodies = [msgspec.json.decode(call.body) for call in server.calls]
    assert [len(body["items"]) for body in bodies] == [1000] * 5 + [500]
    assert {(body["job"], body["priority"]) for body in bodies} == {("a", 2)}
    assert len({call.headers["idempotency-key"] for call in server.calls}) == 6


def test_large_items_are_sent_in_smaller_requests():
    items = [{"i": i, "text": "x" * 100_000} for i in range(200)]

    bodies = list(chunks({"job": "a"}, items, {}))

    assert max(map(len, bodies)) <= MOST_BYTES + 100
    assert [item["i"] for body in bodies for item in msgspec.json.decode(body)["items"]] == list(range(200))


async def test_refused_items_carry_their_error():
    refused = {"error": {"type": "urn:horae:bad-input", "detail": "i is missing."}}
    client, _, _ = client_of(ok({"items": [{"executionId": "e", "status": "queued"}, refused]}, 207))
    good, bad = await client.submit_many("a", [{"i": 1}, {}])
    assert good.error is None
    assert bad.execution_id is None
    assert bad.error == refused["error"]


async def test_items_without_a_json_form_are_refused_beside_the_others():
    client, server, _ = client_of(accept)

    done = await client.submit_many("a", ({"i": object() if i in (7, 2_500, 2_999) else i} for i in range(3_500)))

    assert [i for i, one in enumerate(done) if one.error] == [7, 2_500, 2_999]
    assert "cannot be sent: object" in done[7].error["detail"]
    assert [int(one.id) for one in done if one.id] == [i for i in range(3_500) if i not in (7, 2_500, 2_999)]
    assert len(server.calls) == 4
    assert (await client.submit_many("a", [{"i": object()}]))[0].error["type"] == "urn:horae:bad-input"
    assert len(server.calls) == 4


async def test_all_or_nothing_is_one_request():
    client, server, _ = client_of(accept)
    await client.submit_many("a", [{"i": i} for i in range(3_000)], atomic=True)
    assert len(server.calls) == 1
    assert msgspec.json.decode(server.calls[0].body)["atomic"] is True
    with pytest.raises(TooLarge, match="do not fit into one request"):
        await client.submit_many("a", [{"text": "x" * MOST_BYTES}, {}], atomic=True)


async def test_a_refused_request_ends_the_submission():
    client, server, _ = client_of(accept, problem(404, "not-found", "No job."))
    with pytest.raises(NotFound):
        await client.submit_many("a", ({"i": i} for i in range(20_000)))
    assert len(server.calls) < 10


async def test_nothing_to_submit_sends_nothing():
    client, server, _ = client_of(accept)
    assert await client.submit_many("a", []) == []
    assert server.calls == []
