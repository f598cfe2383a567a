"""Checkpoint the write-ahead log without stopping the writer.

A checkpoint inside a commit stalls it (measured: 20 ms). So one runs beside the writer, on its own connection and
thread, and copies nearly everything. The writer then copies the rest, after which SQLite restarts its log. Without this
second part the log would grow for ever under a steady load.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from horae.store.sqlite.connection import connect

CHANGES = 1000  # rows changed between two checkpoints: a few MB of log


class Checkpoints:
    """Decides after each commit whether to checkpoint."""

    def __init__(self, path: Path) -> None:
        self._connection = connect(path)
        self._thread = ThreadPoolExecutor(1, "horae-checkpoint")
        self._running: Future[None] | None = None
        self._mark = 0
        self.pages = 0  # pages in the log at the last checkpoint; a long read lets it grow

    def due(self, changes: int) -> bool:
        """Begin a copy when enough rows have changed in all; return True when the writer shall finish it."""
        if self._running is not None:
            if not self._running.done():
                return False
            self._running = None
            return True
        if changes - self._mark >= CHANGES:
            self._mark = changes
            self._running = self._thread.submit(self._copy)
        return False

    def close(self) -> None:
        self._thread.shutdown()
        self._connection.close()

    def _copy(self) -> None:
        _busy, self.pages, _copied = self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
