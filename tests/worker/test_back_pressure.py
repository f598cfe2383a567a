"""Back pressure: a writer waits for slow servers, and no line is lost."""

import sys

import pytest

from horae.model.definitions.tasks import CommandTask, PythonTask
from horae.worker.code.context import current
from horae.worker.logs import lines, log_queue
from horae.worker.runners import process
from tests.waiting import eventually
from tests.worker.local import Jobs, LocalTransport, shop

COUNT, TEXT = 6000, "x" * 100
SMALL = 128 * 1024


def chatter() -> None:
    for number in range(COUNT):
        current().log("%d %s", number, TEXT)


PRINTS = f"for number in range({COUNT}): print('INFO', number, '{TEXT}')"
TASKS = {
    "thread": PythonTask(function="chatter", isolation="thread"),
    "process": PythonTask(function="chatter", isolation="process"),
    "command": CommandTask(argv=(sys.executable, "-c", PRINTS)),
}


@pytest.mark.parametrize("kind", TASKS)
async def test_a_writer_waits_for_servers_and_nothing_is_lost(kind, monkeypatch):
    for module in (log_queue, lines, process):
        monkeypatch.setattr(module, "BACKLOG", SMALL)
    monkeypatch.setattr(log_queue, "LOW", SMALL // 2)
    async with shop(Jobs(chatter)) as it:
        deaf = Deaf(it.transport)
        monkeypatch.setattr(it.transport, "exchange", deaf.exchange)
        parcel = it.submit(TASKS[kind])
        await eventually(lambda: deaf.held and it.worker.session.outbox.logs.bytes > SMALL)
        session = it.worker.session
        assert it.gateway.running
        assert session.outbox.logs.bytes < SMALL + 2 * 64 * 1024 + 200_000
        assert session.stock.running()

        deaf.listens = True
        assert (await it.outcome(parcel)).outcome == "success"
        told = it.gateway.lines(parcel, 0)
        assert [int(line.split()[1]) for line in told] == list(range(COUNT))


class Deaf:
    """A server that answers no exchange with log lines until it is allowed to."""

    def __init__(self, transport: LocalTransport) -> None:
        self._exchange = transport.exchange
        self.listens = False
        self.held = 0

    async def exchange(self, session, body):
        if body.logs and not self.listens:
            self.held += 1
            await eventually(lambda: self.listens)
        return await self._exchange(session, body)
