"""Checkpoints of commands: a command writes them as lines of HORAE_OUTPUT.

The next attempt finds the last one in the file named by HORAE_CHECKPOINT.
"""

import asyncio
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from horae.errors import HoraeError
from horae.model.fleet.protocol import MAX_CHECKPOINT
from horae.worker.code.durable import CHECKPOINT
from horae.worker.code.execution_requests import ExecutionPort, RecallSteps, RememberStep


class CommandCheckpoints:
    """Stores a command's checkpoints, one at a time.

    Of the checkpoints that arrive while another one is being stored, only the last is stored.
    """

    def __init__(self, port: ExecutionPort) -> None:
        self._port = port
        self._newest: Raw | None = None
        self._asked: Future[Any] | None = None

    def take(self, state: Any) -> None:
        """Store a state for the next attempt. A state that is too large is not stored, and the log gets a warning."""
        value = Raw(msgspec.json.encode(state))
        if len(bytes(value)) > MAX_CHECKPOINT:
            message = (
                f"WARNING a checkpoint has {len(bytes(value))} bytes and is not stored: {MAX_CHECKPOINT} are allowed"
            )
            self._port.log("log", message)
            return
        self._newest = value
        self._send()

    async def finish(self) -> None:
        """Wait until the last state is stored, or cannot be stored any more."""
        while self._newest is not None or self._asked is not None:
            self._send()
            if self._asked is not None:
                await asyncio.wait([asyncio.wrap_future(self._asked)])
                self._look()

    def _send(self) -> None:
        self._look()
        if self._asked is None and self._newest is not None:
            self._asked, self._newest = self._port.ask(RememberStep(CHECKPOINT, self._newest)), None

    def _look(self) -> None:
        """Forget the request once it is answered, and log a refusal.

        The server refuses a checkpoint if the execution no longer belongs to this worker.
        """
        if self._asked is None or not self._asked.done():
            return
        error = self._asked.exception()
        if error is not None and not isinstance(error, HoraeError):
            raise error
        if error is not None:
            self._port.log("log", f"WARNING a checkpoint was not stored: {error}")
        self._asked = None


async def restore(port: ExecutionPort, attempt: int, path: Path) -> None:
    """Write the last checkpoint of earlier attempts to a file; if there is none, create no file."""
    if attempt == 1:
        return
    known = await asyncio.wrap_future(port.ask(RecallSteps()))
    if CHECKPOINT in known:
        path.write_bytes(bytes(known[CHECKPOINT]))
