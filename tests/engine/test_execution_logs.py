"""Logs of executions: followed, read in windows by line number, searched and limited."""

from functools import partial
from typing import Any

import pytest
from msgspec import structs

from horae.errors import BadInput
from horae.features.logs.engine import logs as execution_logs
from horae.features.logs.engine import windows as log_windows
from horae.features.logs.engine.logs import ExecutionLogs, LineSelection
from horae.features.logs.engine.windows import LineRange
from horae.model.definitions.retry import RetryPolicy
from horae.model.fleet.protocol import LogLines
from tests.engine.objects import executions_of
from tests.store_contract.world import NAMESPACE, World, failed, lines, rank, success

AT_ONCE = RetryPolicy(retries=1, delay=0, jitter=0)


@pytest.fixture
def logs(world: World) -> ExecutionLogs:
    return ExecutionLogs(world.store, executions_of(world.store))


def texts(page: Any) -> list[str]:
    return [line.text for line in page.items]


def numbers(page: Any) -> list[int]:
    return [line.number for line in page.items]


@pytest.mark.parametrize("together", [1, 32])
async def test_lines_are_followed_tailed_and_numbered_through(world, logs, together, monkeypatch):
    monkeypatch.setattr(log_windows, "FEW", together)
    monkeypatch.setattr(log_windows, "MANY", together)
    (receipt,) = await world.submit(await world.job(retry=AT_ONCE))
    id = receipt.execution_id
    worker = await world.worker()
    (slice,) = await worker.claim(1)
    await worker.exchange(logs=[lines(slice, 0, 0, "a", "b", "c")])
    await worker.exchange(logs=[lines(slice, 0, 3, "d"), lines(slice, 0, 4, "e", "f")])

    page = await logs.read(NAMESPACE, id, limit=2)
    assert (texts(page), page.ended, page.more, page.total_lines, page.from_, page.to) == (
        ["a", "b"],
        False,
        True,
        6,
        1,
        2,
    )
    page = await logs.read(NAMESPACE, id, cursor=page.next_cursor, limit=3)
    assert texts(page) == ["c", "d", "e"]
    page = await logs.read(NAMESPACE, id, cursor=page.next_cursor)
    assert (texts(page), page.more) == (["f"], False)
    empty = await logs.read(NAMESPACE, id, cursor=page.next_cursor)
    assert (texts(empty), empty.next_cursor) == ([], page.next_cursor)

    await worker.report(failed(slice), policies={(slice.job, 1): AT_ONCE})
    await world.store.promote_due(0, 10, rank)
    (slice,) = await worker.claim(1)
    await worker.exchange(logs=[lines(slice, 0, 0, "g", "h")])
    assert texts(await logs.read(NAMESPACE, id, cursor=empty.next_cursor)) == ["g", "h"]
    tail = await logs.read(NAMESPACE, id, tail=3)
    assert (texts(tail), tail.more, tail.from_, tail.to) == (["f", "g", "h"], True, 6, 8)
    assert [(line.number, line.attempt, line.seq) for line in tail.items] == [(6, 1, 5), (7, 2, 0), (8, 2, 1)]
    assert texts(await logs.read(NAMESPACE, id, cursor=tail.next_cursor)) == []

    assert texts(await logs.read(NAMESPACE, id, LineSelection(attempt=1), tail=1)) == ["f"]
    assert texts(await logs.read(NAMESPACE, id, LineSelection(attempt=1))) == ["a", "b", "c", "d", "e", "f"]
    assert texts(await logs.read(NAMESPACE, id, LineSelection(attempt=2))) == ["g", "h"]
    assert numbers(await logs.read(NAMESPACE, id, after=4, limit=3)) == [5, 6, 7]
    assert numbers(await logs.read(NAMESPACE, id, after=6)) == [7, 8]
    assert numbers(await logs.read(NAMESPACE, id, after=99)) == []
    window = await logs.read(NAMESPACE, id, before=8, limit=3)
    assert (numbers(window), window.more) == ([5, 6, 7], True)
    window = await logs.read(NAMESPACE, id, before=3, limit=3)
    assert (numbers(window), window.more) == ([1, 2], False)
    assert [piece async for piece in await logs.text(NAMESPACE, id)] == [b"a\nb\nc\nd\ne\nf\ng\nh\n"]

    none = await logs.read(NAMESPACE, id, tail=0)
    await worker.exchange(logs=[lines(slice, 0, 2, "i")])
    assert "i" in texts(await logs.read(NAMESPACE, id, cursor=none.next_cursor))
    await worker.report(success(slice))
    assert (await logs.read(NAMESPACE, id)).ended


@pytest.mark.parametrize(
    "bad",
    [{"cursor": "x"}, {"tail": -1}, {"limit": 0}, {"after": 1, "before": 2}, {"wanted": LineSelection(attempt=0)}],
)
async def test_an_invalid_position_is_refused(world, logs, bad):
    (receipt,) = await world.submit(await world.job())
    with pytest.raises(BadInput):
        await logs.read(NAMESPACE, receipt.execution_id, **bad)


async def test_a_search_reads_a_limited_number_of_lines_and_returns_a_cursor(world, logs, monkeypatch):
    monkeypatch.setattr(log_windows, "MOST_SEARCHED", 4)
    (receipt,) = await world.submit(await world.job())
    id = receipt.execution_id
    worker = await world.worker()
    (slice,) = await worker.claim(1)
    said = ["INFO begin", "ERROR Timeout after 12 ms", "fine", "WARNING slow", "timeout of 30ms", "ERROR end"]
    for seq, text in enumerate(said):
        await worker.exchange(logs=[lines(slice, 0, seq, text)])

    page = await logs.read(NAMESPACE, id, LineSelection(grep="TIMEOUT*ms"))
    assert (numbers(page), page.more, page.to) == ([2], True, 4)
    page = await logs.read(NAMESPACE, id, LineSelection(grep="TIMEOUT*ms"), cursor=page.next_cursor)
    assert (numbers(page), page.more) == ([5], False)
    back = await logs.read(NAMESPACE, id, LineSelection(grep="begin"), before=6)
    assert (numbers(back), back.more, back.from_) == ([], True, 2)
    assert numbers(await logs.read(NAMESPACE, id, LineSelection(grep="begin"), before=back.from_)) == [1]
    worse = await logs.read(NAMESPACE, id, LineSelection(level="warning"))
    assert [(line.number, line.level) for line in worse.items] == [(2, "error"), (4, "warning")]
    assert [piece async for piece in await logs.text(NAMESPACE, id, LineSelection(level="error"))] == [
        b"ERROR Timeout after 12 ms\n", b"ERROR end\n",
    ]  # fmt: skip
    assert numbers(await logs.read(NAMESPACE, id, LineSelection(grep=r"re:(?i)timeout .*\d+ ?ms$"), after=1)) == [2, 5]
    # Four lines were read, and none matches.
    assert numbers(await logs.read(NAMESPACE, id, LineSelection(grep="re:^timeout", level="info"))) == []
    monkeypatch.setattr(log_windows, "MOST_BYTES_SEARCHED", 20)
    page = await logs.read(NAMESPACE, id, LineSelection(grep="re:^timeout"))
    assert (numbers(page), page.more, page.to) == ([], True, 2)
    for bad in (LineSelection(grep="re:(?=a)"), LineSelection(grep="**"), LineSelection(attempt=2**40)):
        with pytest.raises(BadInput):
            await logs.read(NAMESPACE, id, bad)


@pytest.mark.parametrize("bytes", [1, 1000, 2300])
async def test_pages_of_long_lines_are_short_and_leave_nothing_out(world, logs, bytes, monkeypatch):
    monkeypatch.setattr(execution_logs, "LineRange", partial(LineRange, bytes=bytes))
    monkeypatch.setattr(execution_logs, "BYTES_TOGETHER", bytes)
    monkeypatch.setattr(log_windows, "READ_TOGETHER", 100)
    (receipt,) = await world.submit(await world.job())
    id = receipt.execution_id
    worker = await world.worker()
    (slice,) = await worker.claim(1)
    said = [letter * 1000 for letter in "abcdefgh"]
    for seq in (0, 3, 6):
        await worker.exchange(logs=[lines(slice, 0, seq, *said[seq : seq + 3])])

    found: list[str] = []
    page = await logs.read(NAMESPACE, id)
    while page.more:
        assert 1 <= len(page.items) <= 2
        assert (page.from_, page.to) == (page.items[0].number, page.items[-1].number)
        found += texts(page)
        page = await logs.read(NAMESPACE, id, cursor=page.next_cursor)
    assert found + texts(page) == said

    page = await logs.read(NAMESPACE, id, tail=5)
    found = texts(page)
    assert numbers(page)[-1] == len(said)
    assert texts(await logs.read(NAMESPACE, id, cursor=page.next_cursor)) == []
    while page.more:
        page = await logs.read(NAMESPACE, id, before=page.from_)
        found = texts(page) + found
    assert found == said
    whole = [piece async for piece in await logs.text(NAMESPACE, id)]
    assert b"".join(whole) == "".join(f"{text}\n" for text in said).encode()
    assert max(map(len, whole)) <= 2100


async def test_an_unfinished_line_is_shown_until_it_ends(world, logs):
    (receipt,) = await world.submit(await world.job(retry=AT_ONCE))
    id = receipt.execution_id
    worker = await world.worker()
    (slice,) = await worker.claim(1)

    def bar(text: str) -> list[tuple[int, str, str]]:
        return [(7, "stderr", text)]

    await worker.exchange(logs=[lines(slice, 0, 0, open=bar("1%"))])
    page = await logs.read(NAMESPACE, id)
    assert (texts(page), page.total_lines, [(line.number, line.text) for line in page.unfinished_lines]) == (
        [],
        0,
        [(1, "1%")],
    )
    for percent in range(2, 9):
        await worker.exchange(logs=[lines(slice, 0, 0, open=bar(f"{percent}%"))])
    await worker.exchange(logs=[lines(slice, 0, 0, "a", "b", open=bar("9%"))])
    page = await logs.read(NAMESPACE, id, tail=1)
    assert (texts(page), page.total_lines, [(line.number, line.text) for line in page.unfinished_lines]) == (
        ["b"],
        2,
        [(3, "9%")],
    )
    assert await world.rows("SELECT seq, count FROM logs ORDER BY seq") == [(0, 2), (2, 0)]
    assert [line.text for line in (await logs.read(NAMESPACE, id, LineSelection(grep="a"))).unfinished_lines] == []
    assert [line.text for line in (await logs.read(NAMESPACE, id, LineSelection(attempt=2))).unfinished_lines] == []
    assert [piece async for piece in await logs.text(NAMESPACE, id)] == [b"a\nb\n", b"9%\n"]

    await worker.exchange(logs=[lines(slice, 0, 0, "a", "b", open=bar("0%")), lines(slice, 0, 1, open=bar("0%"))])
    await worker.exchange(logs=[lines(slice, 0, 0, "a", open=bar("0%"))])
    unfinished = (await logs.read(NAMESPACE, id)).unfinished_lines
    assert [line.text for line in unfinished] == ["9%"], "a late line changes nothing"
    await worker.exchange(logs=[lines(slice, 0, 2, "10%", "done")])
    page = await logs.read(NAMESPACE, id, cursor=page.next_cursor)
    assert ([(line.number, line.text) for line in page.items], page.unfinished_lines) == ([(3, "10%"), (4, "done")], [])
    assert await world.rows("SELECT seq, count FROM logs ORDER BY seq") == [(0, 2), (2, 2)]

    await worker.exchange(logs=[lines(slice, 0, 4, open=bar("last words"))])
    await worker.report(failed(slice), policies={(slice.job, 1): AT_ONCE})
    await world.store.promote_due(0, 10, rank)
    assert [line.text for line in (await logs.read(NAMESPACE, id)).unfinished_lines] == ["last words"]
    (slice,) = await worker.claim(1)
    await worker.exchange(logs=[lines(slice, 0, 0, "again")])
    page = await logs.read(NAMESPACE, id)
    assert ([(line.number, line.text) for line in page.items][-1], page.unfinished_lines) == ((5, "again"), [])
    assert numbers(await logs.read(NAMESPACE, id, before=6, limit=2)) == [4, 5]
    assert numbers(await logs.read(NAMESPACE, id, after=3)) == [4, 5]


@pytest.mark.parametrize("earlier", [True, False])
async def test_a_download_has_no_gap_before_its_unfinished_line(world, logs, earlier, monkeypatch):
    (receipt,) = await world.submit(await world.job())
    worker = await world.worker()
    (slice,) = await worker.claim(1)
    await worker.exchange(logs=[lines(slice, 0, 0, "a", open=[(7, "stderr", "1%")])])

    async def forward(*given: Any) -> Any:
        async def write() -> None:
            await worker.exchange(logs=[lines(slice, 0, 1, "1%", "b", open=[(7, "stderr", "2%")])])

        if earlier:
            await write()
        window = await log_windows.forward(*given)
        if not earlier:
            await write()
        return window

    monkeypatch.setattr(execution_logs, "forward", forward)
    text = b"".join([piece async for piece in await logs.text(NAMESPACE, receipt.execution_id)])
    assert text == (b"a\n1%\nb\n" if earlier else b"a\n1%\n")


async def test_a_truncated_log_says_what_is_missing(world, logs, monkeypatch):
    (receipt,) = await world.submit(await world.job())
    id = receipt.execution_id
    worker = await world.worker()
    (slice,) = await worker.claim(1)
    head = worker.head
    told = LogLines(
        parcel=slice.parcel, item=0, attempt=1, seq=1, lines=[(0, "log", "WARNING left out")], left_out=(70, 9000)
    )
    monkeypatch.setattr(worker, "head", lambda *given, **more: structs.replace(head(*given, **more), log_limit=150))
    await worker.exchange(logs=[lines(slice, 0, 0, "a"), told])
    cut = (await logs.read(NAMESPACE, id)).truncated
    assert (cut.lines, cut.bytes) == (70, 9000)

    await worker.exchange(logs=[lines(slice, 0, 2, "b" * 200)])
    await worker.exchange(logs=[lines(slice, 0, 3, "c")])
    assert (await logs.read(NAMESPACE, id)).total_lines == 3
    small = ExecutionLogs(world.store, executions_of(world.store), most=150)
    cut = (await small.read(NAMESPACE, id)).truncated
    assert (cut.lines, cut.ends) == (70, True)
    assert cut.notice.startswith("70 lines (9000 bytes) were left out")
    assert "The log ends here: 150 bytes" in cut.notice
    assert b"The log ends here" in [piece async for piece in await small.text(NAMESPACE, id)][-1]
