"""Log lines that wait to be told: in order, and with what has no end yet behind them."""

from uuid import UUID

from horae.worker.logs.log_queue import MAX_LOG_BYTES, Key, LogQueue

KEY: Key = (UUID(int=0), 0, 1)
OTHER: Key = (UUID(int=0), 1, 1)


def line(text: str) -> tuple[int, str, str]:
    return (0, "stdout", text)


def test_a_line_that_came_to_its_end_is_not_shown_without_one():
    queue = LogQueue()
    queue.show(KEY, 0, [line("50%")])
    queue.add(KEY, 0, [line("50% done")])
    (told,), _ = queue.take()
    assert (told.seq, [text for _, _, text in told.lines], told.open) == (0, ["50% done"], None)


def test_what_has_no_end_is_told_behind_the_last_line_that_waits_and_when_the_last_was_heard():
    queue = LogQueue()
    queue.add(KEY, 0, [line("x" * 1000)] * (MAX_LOG_BYTES // 1000))
    queue.show(KEY, MAX_LOG_BYTES // 1000, [line("50%")])
    first, _ = queue.take()
    assert [told.open for told in first] == [None]
    assert queue.take() == ([], 0)
    queue.confirm(first)
    (rest,), _ = queue.take()
    assert (rest.seq + len(rest.lines), rest.open) == (MAX_LOG_BYTES // 1000, [line("50%")])

    queue.show(KEY, MAX_LOG_BYTES // 1000, [line("60%")])
    queue.show(OTHER, 0, [line("?")])
    assert queue.has_news
    (other,), _ = queue.take()
    assert (other.item, other.lines, other.open) == (1, [], [line("?")])
    assert not queue.has_news
    queue.confirm([rest, other])
    assert queue.has_news
    (told,), size = queue.take()
    assert (told.open, size) == ([line("60%")], 0)
    queue.confirm([told])
    assert not queue
