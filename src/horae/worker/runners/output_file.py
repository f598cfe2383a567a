"""HORAE_OUTPUT: the file for messages of a command to its worker, one JSON object per line.

{"progress": 50, "message": "half"}     {"heartbeat": true}     {"checkpoint": {...}}     {"result": {...}}
"""

import os
from pathlib import Path
from typing import Any

import msgspec

from horae.worker.code.execution_requests import ExecutionPort
from horae.worker.runners.checkpoints import CommandCheckpoints

READ = 1024 * 1024
MAX_FILE = 32 * 1024 * 1024  # bytes of the file that are read, about
MAX_LINE = 2 * 1024 * 1024  # bytes
_object = msgspec.json.Decoder(dict[str, Any])


class OutputFile:
    """The reader of a command's messages. The last result counts; an unreadable line becomes a warning."""

    def __init__(self, path: Path, port: ExecutionPort) -> None:
        self.path = path
        self.result: bytes = b"null"
        self.checkpoints = CommandCheckpoints(port)
        self._port = port
        self._offset = 0
        self._partial = b""
        path.touch(0o600)

    def look(self) -> None:
        """Read the lines that were finished since the last call."""
        try:
            if os.stat(self.path).st_size <= self._offset or self._offset > MAX_FILE:
                return
            with self.path.open("rb") as file:
                file.seek(self._offset)
                data = file.read(READ)
        except OSError:
            return  # the command removed it; it may reappear
        self._offset += len(data)
        lines = (self._partial + data).split(b"\n")
        self._partial = lines.pop()[: MAX_LINE + 1]
        for line in lines:
            self._take(line)
        if self._offset > MAX_FILE:
            self._port.log("log", f"WARNING HORAE_OUTPUT has more than {MAX_FILE} bytes; the rest is not read")

    def finish(self) -> None:
        """Read the remaining lines, including an unfinished last line."""
        before = -1
        while before != self._offset:
            before = self._offset
            self.look()
        self._take(self._partial)
        self._partial = b""

    def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            entry = _object.decode(line)
            if "progress" in entry:
                self._port.progress(float(entry["progress"]), str(entry.get("message", "")))
            if entry.get("heartbeat"):
                self._port.heartbeat()
            if "checkpoint" in entry:
                self.checkpoints.take(entry["checkpoint"])
            if "result" in entry:
                self.result = msgspec.json.encode(entry["result"])
        except (msgspec.DecodeError, UnicodeDecodeError, TypeError, ValueError, RecursionError) as error:
            shown = self._port.hide(line.decode(errors="replace"))[:200]
            self._port.log("log", f"WARNING cannot read this line of HORAE_OUTPUT ({error}): {shown}")
