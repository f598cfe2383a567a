"""An attempt's log: bounded, with its first and last lines, and a note about the dropped lines between them."""

import threading
from contextlib import suppress
from contextvars import copy_context
from typing import Any

from horae.model.definitions.tasks import PythonTask
from horae.worker.attempt_log import AttemptLog
from horae.worker.code.context import current
from tests.waiting import eventually
from tests.worker.local import Jobs, shop

COUNT = 2000


def chatter() -> None:
    for number in range(COUNT):
        current().log("line %d", number)


async def test_a_log_that_is_too_long_keeps_its_first_and_last_lines():
    async with shop(Jobs(chatter)) as it:
        session = await eventually(lambda: it.worker.session)
        session.log_limit = 8000
        parcel = it.submit(PythonTask(function="chatter", isolation="thread"))
        assert (await it.outcome(parcel)).outcome == "success"
        lines = it.gateway.lines(parcel, 0)

    cut = next(i for i, line in enumerate(lines) if "the log is cut here: an attempt may write 8000 bytes" in line)
    assert lines[:cut] == [f"INFO line {i}" for i in range(cut)]
    left = int(lines[cut + 1].split()[1])
    assert "were left out here" in lines[cut + 1]
    last = lines[cut + 2 :]
    assert last == [f"INFO line {i}" for i in range(COUNT - len(last), COUNT)]
    assert cut + left + len(last) == COUNT
    assert sum(len(line) + 24 for line in lines) < 8000 + 300


async def test_a_text_of_several_lines_that_crosses_the_bound_is_cut_between_them():
    def speech() -> None:
        current().log("\n".join(f"line {i}" for i in range(COUNT)))

    async with shop(Jobs(speech)) as it:
        session = await eventually(lambda: it.worker.session)
        session.log_limit = 8000
        parcel = it.submit(PythonTask(function="speech", isolation="thread"))
        assert (await it.outcome(parcel)).outcome == "success"
        lines = it.gateway.lines(parcel, 0)
    assert lines[0] == "INFO line 0"
    assert lines[-1] == f"line {COUNT - 1}"
    (left,) = [int(line.split()[1]) for line in lines if "were left out here" in line]
    assert left + len(lines) - 2 == COUNT


async def test_threads_of_one_execution_write_one_log(monkeypatch):
    ready = threading.Barrier(2)
    made = AttemptLog.__init__

    def slowly(self: AttemptLog, *given: Any) -> None:
        with suppress(threading.BrokenBarrierError):
            ready.wait(0.2)  # concurrently, without a lock
        made(self, *given)

    def say(name: str) -> None:
        for number in range(100):
            current().log("%s %d", name, number)

    def pair() -> None:
        other = threading.Thread(target=copy_context().run, args=(say, "b"))
        other.start()
        say("a")
        other.join()

    monkeypatch.setattr(AttemptLog, "__init__", slowly)
    async with shop(Jobs(pair)) as it:
        parcel = it.submit(PythonTask(function="pair", isolation="thread"))
        assert (await it.outcome(parcel)).outcome == "success"
        lines = it.gateway.lines(parcel, 0)
    for name in "ab":
        assert [line for line in lines if line.startswith(f"INFO {name}")] == [f"INFO {name} {i}" for i in range(100)]


async def test_logging_while_a_line_is_written_does_not_block(monkeypatch):
    """A finaliser runs in any thread that created garbage."""
    add, within = AttemptLog._add, iter(["within"])

    def interrupted(self: AttemptLog, *given: Any) -> None:
        for text in within:
            current().log(text)
        add(self, *given)

    monkeypatch.setattr(AttemptLog, "_add", interrupted)
    async with shop(Jobs(chatter)) as it:
        parcel = it.submit(PythonTask(function="chatter", isolation="thread"))
        assert (await it.outcome(parcel)).outcome == "success"
        lines = it.gateway.lines(parcel, 0)
    assert lines[:2] == ["INFO within", "INFO line 0"]
