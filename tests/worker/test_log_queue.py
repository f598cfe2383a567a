"""The queue of unsent log lines: in order, with unfinished lines at the end."""

from uuid import UUID

from horae.worker.logs.log_queue import MAX_LOG_BYTES, Key, LogQueue

KEY: Key = (UUID(int=0), 0, 1)
OTHER: Key = (UUID(int=0), 1, 1)


def line(text: str) -> tuple[int, str, str]:
    return (0, "stdout", text)


def test_a_finished_line_is_not_shown_as_unfinished():
    queue = LogQueue()
    queue.show(KEY, 0, [line("50%")])
    queue.add(KEY, 0, [line("50% done")])
    (told,), _ = queue.take()
    assert (told.seq, [text for _, _, text in told.lines], told.open) == (0, ["50% done"], None)


def test_unfinished_lines_are_sent_after_all_finished_ones():
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
