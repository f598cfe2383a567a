"""The child process of a function, and its handling of requests to stop."""

import asyncio
import socket
from uuid import uuid4

import pytest

from horae.model.definitions.function_signature import signature_of
from horae.worker.code.context import AttemptFacts
from horae.worker.processes import child
from horae.worker.processes.child import ChildRuntime
from horae.worker.processes.frames import EndFrame, OrderFrame, StopFrame

FACTS = AttemptFacts(execution_id=uuid4(), job="j", attempt=1, token=1, failures=0, scheduled_at=0)


class Entry:
    """A registered function that records its start."""

    retry_function = None

    def __init__(self, is_async: bool) -> None:
        self.began = False
        self.function = self._async if is_async else self._sync
        self.signature = signature_of(self.function)

    def _sync(self) -> None:
        self.began = True

    async def _async(self) -> None:
        self.began = True
        await asyncio.Event().wait()


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("way", ["message", "signal"])
def test_a_function_does_not_start_after_a_stop_during_the_import_of_its_module(is_async, way, monkeypatch):
    ours, its = socket.socketpair()
    with ours, its:
        kid, entry = ChildRuntime(its), Entry(is_async)

        def find(*_: str) -> Entry:
            if way == "message":
                kid._handle(StopFrame("timeout"))
            else:
                kid._on_term()
            return entry

        monkeypatch.setattr(child, "load_function", find)
        ended = kid._execute(OrderFrame("module", "function", FACTS, {}))

        assert not entry.began
        assert isinstance(ended, EndFrame)
        assert ended.fate is not None
        assert ended.fate.outcome == "cancelled"
