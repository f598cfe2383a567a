"""Logs over REST: windows, searches, and the whole log as text."""

from collections.abc import AsyncGenerator
from typing import Any

import msgspec

from horae.model.fleet.protocol import PROTOCOL, Answer, Exchange, LogLines
from horae.server.streaming.download import StreamedContent
from tests.server.conftest import Api
from tests.server.test_executions import EXECUTIONS
from tests.server.test_jobs import create

SAID = ["INFO begin", "ERROR Timeout: 5 ms", "caf\u00e9", "WARNING slow", "bye"]


async def test_a_download_ends_with_its_connection_and_lets_others_have_their_turn():
    made, is_closed = 0, False

    async def pieces() -> AsyncGenerator[bytes]:
        nonlocal made, is_closed
        try:
            while made < 1000:
                made += 1
                yield b"x"
        finally:
            is_closed = True

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        """Send without waiting: data for a lost connection is dropped."""

    await StreamedContent(pieces(), b"text/plain")({}, receive, send)
    assert made < 5
    assert is_closed


async def test_a_log_is_read_by_windows_searched_and_downloaded(api: Api, worker: Api):
    await create(api)
    id = (await api.post("/api/v1/jobs/report/trigger")).json()["executionId"]
    session = (await worker.post("/api/v1/sessions", json={"protocol": PROTOCOL, "worker": "w"})).json()
    path = f"/api/v1/sessions/{session['sessionId']}/exchange"
    taken = await worker.post(path, content=msgspec.json.encode(Exchange(channel=0, n=1, free=1)))
    (grant,) = msgspec.json.decode(taken.content, type=Answer).slices
    lines = [(1_800_000_000_000_000 + i, "stdout", text) for i, text in enumerate(SAID)]
    told = LogLines(parcel=grant.parcel, item=grant.lo, attempt=grant.attempt, seq=0, lines=lines)
    sent = await worker.post(path, content=msgspec.json.encode(Exchange(channel=0, n=2, logs=[told])))
    assert sent.status_code == 200

    page = (await api.get(f"{EXECUTIONS}/{id}/logs?after=1&limit=1")).json()
    assert page["items"] == [
        {
            "number": 2, "attempt": 1, "seq": 1, "at": "2027-01-15T08:00:00.000001Z", "stream": "stdout",
            "level": "error", "text": SAID[1],
        }
    ]  # fmt: skip
    assert [page[name] for name in ("totalLines", "from", "to", "more", "ended", "truncated")] == [
        5,
        2,
        2,
        True,
        False,
        None,
    ]
    for query, numbers in {
        "before=3": [1, 2],
        "grep=timeout*MS": [2],
        "grep=re:%5E%5BEW%5D.*(ms%7Cslow)$": [2, 4],
        "level=warning": [2, 4],
        "grep=o&level=warning": [2, 4],
        "tail=1": [5],
    }.items():
        found = (await api.get(f"{EXECUTIONS}/{id}/logs?{query}")).json()["items"]
        assert [line["number"] for line in found] == numbers, query

    whole = await api.get(f"{EXECUTIONS}/{id}/logs/download")
    assert whole.headers["content-type"] == "text/plain; charset=utf-8"
    assert whole.headers["content-disposition"] == f'attachment; filename="{id}.log"'
    assert whole.text == "".join(f"{line}\n" for line in SAID)
    some = await api.get(f"{EXECUTIONS}/{id}/logs/download?timestamps=true&level=error")
    assert some.text == f"2027-01-15T08:00:00.000001Z {SAID[1]}\n"
    for bad in ("grep=re:(a", "level=loud", "after=1&before=3", "after=-1"):
        assert (await api.get(f"{EXECUTIONS}/{id}/logs?{bad}")).status_code == 400, bad
