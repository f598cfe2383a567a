"""Group commit: callers that arrive while a batch runs share the next one."""

import asyncio

import pytest

from horae.engine.batcher import Batcher, fail_together
from horae.errors import StoreUnavailable


class Recorder:
    """A function that returns its items and records its batches. An item `bad` fails its whole batch."""

    def __init__(self):
        self.batches = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def run(self, batch):
        self.batches.append(list(batch))
        await self.gate.wait()
        if "bad" in batch:
            raise ValueError("bad")
        return [word.upper() for word in batch]


async def test_a_lone_caller_is_served_at_once():
    recorder = Recorder()

    assert await Batcher(recorder.run, most=10).do("a") == "A"
    assert recorder.batches == [["a"]]


async def test_concurrent_callers_share_the_next_batch():
    recorder = Recorder()
    batcher = Batcher(recorder.run, most=3)
    recorder.gate.clear()

    asked = [asyncio.create_task(batcher.do(word)) for word in "abcdef"]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    recorder.gate.set()

    assert await asyncio.gather(*asked) == list("ABCDEF")
    assert [len(batch) for batch in recorder.batches] == [3, 3]


async def test_items_of_one_key_are_never_in_two_batches_at_a_time():
    recorder = Recorder()
    batcher = Batcher(recorder.run, most=10, in_flight=2, key=lambda word: word[0])
    recorder.gate.clear()

    asked = [asyncio.create_task(batcher.do("a1"))]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    asked += [asyncio.create_task(batcher.do(word)) for word in ("a2", "b1", "a3", "b2", "a4")]
    for _ in range(5):
        await asyncio.sleep(0)
    assert recorder.batches == [["a1"], ["b1", "b2"]]
    recorder.gate.set()

    assert await asyncio.wait_for(asyncio.gather(*asked), 30) == ["A1", "A2", "B1", "A3", "B2", "A4"]
    assert recorder.batches == [["a1"], ["b1", "b2"], ["a2", "a3", "a4"]]
    assert len(batcher) == 0


async def test_a_caller_at_the_end_of_a_flush_is_served():
    batcher = Batcher(Recorder().run, most=10)

    for _ in range(100):
        assert await asyncio.wait_for(batcher.do("a"), 30) == "A"


async def test_one_failing_item_of_64_fails_alone():
    batcher = Batcher(Recorder().run, most=64)
    words = ["good"] * 63 + ["bad"]

    done = await asyncio.gather(*(batcher.do(word) for word in words), return_exceptions=True)

    assert done[:63] == ["GOOD"] * 63
    assert isinstance(done[63], ValueError)


async def test_a_batch_is_bounded_by_size():
    recorder = Recorder()
    batcher = Batcher(recorder.run, most=100, size=len, most_size=4)

    await asyncio.gather(*(batcher.do(word) for word in ("aa", "bb", "cc", "dddddd", "e")))

    assert recorder.batches == [["aa", "bb"], ["cc"], ["dddddd"], ["e"]]


async def test_close_waits_for_pending_items():
    recorder = Recorder()
    batcher = Batcher(recorder.run, most=10)
    recorder.gate.clear()
    asked = asyncio.create_task(batcher.do("a"))
    await asyncio.sleep(0)
    closing = asyncio.create_task(batcher.close())
    await asyncio.sleep(0)
    assert not closing.done()

    recorder.gate.set()
    await closing

    assert await asked == "A"


async def test_a_cancelled_flush_cancels_waiting_callers():
    recorder = Recorder()
    recorder.gate.clear()
    batcher = Batcher(recorder.run, most=1)
    asked = [asyncio.create_task(batcher.do(word)) for word in "ab"]
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    for flush in list(batcher._flushes):
        flush.cancel()

    for task in asked:
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_flush_that_is_cancelled_while_it_repeats_items_cancels_their_callers():
    repeating = asyncio.Event()

    async def run(batch):
        if len(batch) > 1:
            raise ValueError("bad")
        repeating.set()
        await asyncio.Event().wait()

    batcher = Batcher(run, most=10)
    asked = [asyncio.create_task(batcher.do(word)) for word in "ab"]
    await repeating.wait()
    for flush in list(batcher._flushes):
        flush.cancel()

    for task in asked:
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 30)


async def test_a_batch_with_an_unknown_outcome_is_not_repeated():
    ran = []

    async def run(batch):
        ran.append(list(batch))
        raise StoreUnavailable("The answer to the commit was lost.", unknown=True)

    batcher = Batcher(run, most=10)
    done = await asyncio.gather(*(batcher.do(word) for word in "ab"), return_exceptions=True)

    assert ran == [["a", "b"]]
    assert [type(error) for error in done] == [StoreUnavailable] * 2


async def test_a_read_without_a_store_is_not_repeated_item_by_item():
    tries = []

    async def read(batch):
        tries.append(len(batch))
        await asyncio.sleep(0)
        raise StoreUnavailable("Nobody answers.")

    batcher = Batcher(fail_together(read), most=10)
    answers = await asyncio.gather(*(batcher.do(n) for n in range(5)), return_exceptions=True)

    assert all(isinstance(answer, StoreUnavailable) for answer in answers)
    assert sum(tries) == 5
