"""HTTP jobs."""

import msgspec
import pytest

from horae.env import SECOND
from horae.model.definitions.tasks import HttpTask
from horae.outbound.allow import AllowedAddresses
from tests.waiting import eventually
from tests.worker.local import result, shop
from tests.worker.web import web

NEAR = AllowedAddresses.read(["127.0.0.1"])
JSON = {"content-type": "application/json"}


def said(status=200, headers=None, body=b""):
    return lambda asked: (status, headers or {}, body)


async def test_params_are_the_body_and_json_is_the_result():
    async with web(said(200, JSON, b'{"rows": 3}')) as site, shop(outbound=NEAR) as it:
        parcel = it.submit(HttpTask(url=site.url + "/x"), {"day": "2026-11-15"}, params={"n": 1})

        assert result(await it.outcome(parcel)) == {"rows": 3}
        asked = site.asked[0]
        assert (asked.method, asked.path) == ("POST", "/x")
        assert msgspec.json.decode(asked.body) == {"n": 1, "day": "2026-11-15"}
        assert asked.headers["content-type"] == "application/json"
        assert asked.headers["idempotency-key"] == str(parcel)


async def test_everything_can_be_filled_from_params():
    task = {"method": "PUT", "headers": {"X-Day": "${params.day}"}, "body": {"n": "${params.n}", "t": "n=${params.n}"}}
    async with web(said()) as site, shop(outbound=NEAR) as it:
        await it.run(HttpTask(url=site.url + "/${params.day}", **task), {"day": "monday", "n": 3})
        asked = site.asked[0]

        assert (asked.method, asked.path, asked.headers["x-day"]) == ("PUT", "/monday", "monday")
        assert msgspec.json.decode(asked.body) == {"n": 3, "t": "n=3"}


async def test_a_text_body_is_sent_as_it_is():
    async with web(said()) as site, shop(outbound=NEAR) as it:
        await it.run(HttpTask(url=site.url, body="hello ${params.x}", headers={"Content-Type": "text/csv"}), {"x": "ü"})

        assert site.asked[0].body == "hello ü".encode()
        assert site.asked[0].headers["content-type"] == "text/csv"


async def test_a_get_has_no_body():
    async with web(said(200, {}, b"plain")) as site, shop(outbound=NEAR) as it:
        outcome = await it.run(HttpTask(url=site.url, method="GET"), {"x": 1})

        assert site.asked[0].body == b""
        assert result(outcome) == {"status": 200, "body": "plain"}


@pytest.mark.parametrize(
    ("status", "expect", "outcome"),
    [
        (204, ("2xx",), "success"),
        (404, ("2xx",), "failed"),
        (404, ("2xx", "404"), "success"),
        (302, ("2xx",), "failed"),
    ],
)
async def test_the_status_decides(status, expect, outcome):
    async with web(said(status, {"location": "http://127.0.0.1:1/"})) as site, shop(outbound=NEAR) as it:
        assert (await it.run(HttpTask(url=site.url, expect=expect))).outcome == outcome
        assert len(site.asked) == 1, "redirects are not followed"


async def test_an_unexpected_status_is_reported_with_its_body_and_retry_after():
    async with web(said(503, {"retry-after": "7"}, b"overloaded")) as site, shop(outbound=NEAR) as it:
        error = (await it.run(HttpTask(url=site.url + "/a?token=secret"))).error

        assert (error.type, error.retry_after, error.permanent) == ("HttpStatus", 7 * SECOND, False)
        assert (error.kind, error.status) == ("error", 503)
        assert "503" in error.message
        assert "overloaded" in error.message
        assert "secret" not in error.message


async def test_a_long_answer_is_cut():
    async with web(said(200, JSON, b'"' + b"x" * 200_000 + b'"')) as site, shop(outbound=NEAR) as it:
        kept = result(await it.run(HttpTask(url=site.url)))

        assert (kept["truncated"], len(kept["body"])) == (True, 64 * 1024)


@pytest.mark.parametrize(
    ("task", "type"),
    [
        (HttpTask(url="ftp://example.com/"), "BadParams"),
        (HttpTask(url="http://"), "BadParams"),
        (HttpTask(url="${params.url}"), "BadParams"),
        (HttpTask(url="http://127.0.0.1:1/", headers={"X": "${params.lines}"}), "BadParams"),
        (HttpTask(url="http://127.0.0.1:1/${params.none}"), "BadParams"),
    ],
)
async def test_an_invalid_request_is_a_permanent_failure(task, type):
    async with shop(outbound=NEAR) as it:
        error = (await it.run(task, {"url": "file:///etc/passwd", "lines": "a\r\nb: c"})).error

        assert (error.type, error.permanent) == (type, True)


async def test_a_server_that_is_not_there_is_a_failure():
    async with shop(outbound=NEAR) as it:
        error = (await it.run(HttpTask(url="http://127.0.0.1:1/"))).error

        assert (error.type, error.permanent) == ("ConnectError", False)


async def test_a_silent_server_runs_into_the_timeout():
    async with web(lambda asked: None) as site, shop(outbound=NEAR) as it:
        assert (await it.run(HttpTask(url=site.url), timeout=SECOND // 5)).error.type == "RunTimeout"


async def test_a_request_can_be_cancelled():
    async with web(lambda asked: None) as site, shop(heartbeat=1.0, outbound=NEAR) as it:
        parcel = it.submit(HttpTask(url=site.url))
        await eventually(lambda: site.asked)
        it.gateway.ask(parcel, 0, "cancel")

        assert (await it.outcome(parcel)).outcome == "cancelled"
