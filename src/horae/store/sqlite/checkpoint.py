"""Moving the log into the file without stopping the writer.

A checkpoint inside a commit stalls it (measured: 20 ms). So one runs beside the writer, on its own connection and
thread, and copies nearly everything; the writer then copies the little that came meanwhile, after which SQLite starts
its log anew. Without that second part a steady load would let the log grow for ever.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from horae.store.sqlite.connection import connect

CHANGES = 1000  # rows changed between two checkpoints: a few MB of log


class Checkpoints:
    """Decides after each commit what is to be done about the log."""

    def __init__(self, path: Path) -> None:
        self._connection = connect(path)
        self._thread = ThreadPoolExecutor(1, "horae-checkpoint")
        self._running: Future[None] | None = None
        self._mark = 0
        self.pages = 0  # in the log at the last look; a long reader lets it grow

    def due(self, changes: int) -> bool:
        """Told of the rows changed so far, begin a copy when there is enough; true when the writer shall finish it."""
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
