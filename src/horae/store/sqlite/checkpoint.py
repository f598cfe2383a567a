"""Checkpoint SQLite's write-ahead log, which copies its pages into the database file, without stopping the writer.

A checkpoint inside a commit stalls the commit (measured: 20 ms). So a first checkpoint runs on a connection and a
thread of its own, and copies nearly all pages while the writer continues. Then the writer itself copies the pages
written meanwhile, after which SQLite restarts the log. Without this second checkpoint, the log would grow for ever
under a steady load.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from horae.store.sqlite.connection import connect

CHANGES = 1000  # changed rows after which a checkpoint begins; they take a few MB in the log


class Checkpoints:
    """Decides after each commit whether to begin or to finish a checkpoint."""

    def __init__(self, path: Path) -> None:
        self._connection = connect(path)
        self._thread = ThreadPoolExecutor(1, "horae-checkpoint")
        self._running: Future[None] | None = None
        self._mark = 0  # the number of changes when the last checkpoint began
        self.pages = 0  # pages in the log at the last checkpoint; they grow in number during a long read

    def due(self, changes: int) -> bool:
        """Begin a checkpoint on the thread if enough rows have changed since the last one began.

        `changes` is the number of rows that the writer has changed so far. Return True when the thread is ready and
        the writer must finish the checkpoint.
        """
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
