"""The content of an archive file that is being written, beginning with the newest execution.

Executions are read from the store, compressed and passed to the storage in pieces.
"""

import asyncio
from collections.abc import AsyncIterator
from uuid import UUID

import msgspec

from horae.engine.executions.executions import Executions
from horae.env import Env
from horae.errors import StoreUnavailable
from horae.features.archive.engine.files import Packer
from horae.features.archive.store.archives import BITS, Archive
from horae.model.base.ids import instant_of
from horae.model.executions.execution_view import ExecutionView
from horae.store.contract import Store
from horae.store.executions.reads import execution_reads as reads

# The most executions that one statement reads, and the most bytes, unless the first execution is larger.
TOGETHER, MOST_BYTES = 500, 16 * 1024 * 1024


class Writing:
    """The content of one file, and its row for the archive when it is written."""

    def __init__(self, env: Env, store: Store, executions: Executions, namespace: int, ids: list[UUID]) -> None:
        """Prepare a file of these executions; `ids` begins with the oldest."""
        self._store, self._executions, self._namespace, self._ids = store, executions, namespace, ids
        self._id = env.new_id()
        self._outcomes, self._bytes = 0, 0
        self.location = f"archive/{namespace}/{self._id}.jsonl.gz"
        self.jobs: dict[UUID, tuple[str, int]] = {}  # for each job its name and the bits of its outcomes in the file
        # An error in reading executions. It is stored here because storages wrap it in errors of their own.
        self.broken: Exception | None = None

    @property
    def unavailable(self) -> StoreUnavailable | None:
        """Return the error in reading, if the store was unavailable."""
        return self.broken if isinstance(self.broken, StoreUnavailable) else None

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the pieces of the file. Raises LookupError if an execution cannot be read.

        No execution may be left out, because all of them are deleted afterwards.
        """
        packer, newest_first = Packer(), self._ids[::-1]
        try:
            async for some in self._batches(newest_first):
                views = await self._views(some)
                if piece := await asyncio.to_thread(packer.add, map(msgspec.json.encode, views)):
                    self._bytes += len(piece)
                    yield piece
        except Exception as error:
            self.broken = error
            raise
        last = packer.end()
        self._bytes += len(last)
        yield last

    async def _batches(self, ids: list[UUID]) -> AsyncIterator[list[UUID]]:
        """Split ids into batches, so that one statement reads a limited number of bytes."""
        for at in range(0, len(ids), TOGETHER):
            some = ids[at : at + TOGETHER]
            sizes = await self._store.read(lambda: reads.sizes(some))  # noqa: B023
            batch, total = list[UUID](), 0
            for execution in some:
                total += sizes.get(execution, 0)
                if batch and total > MOST_BYTES:
                    yield batch
                    batch, total = [], sizes.get(execution, 0)
                batch.append(execution)
            yield batch

    async def _views(self, ids: list[UUID]) -> list[ExecutionView]:
        some = [(self._namespace, execution) for execution in ids]
        found = await self._store.read(lambda: reads.by_ids(some))
        if len(found) < len(some):
            raise LookupError(f"{len(some) - len(found)} of {len(some)} executions cannot be read")
        views = await self._executions.views(self._namespace, [found[one] for one in some], brief=False)
        for view in views:
            bit = BITS[view.status]  # type: ignore[index]
            self._outcomes |= bit
            self.jobs[view.job_id] = view.job_name or "", self.jobs.get(view.job_id, ("", 0))[1] | bit
        return views

    def archive(self) -> Archive:
        """Return the row of the file, after it was completely written."""
        return Archive(
            id=self._id, namespace=self._namespace, first_at=instant_of(self._ids[0]),
            last_at=instant_of(self._ids[-1]), executions=len(self._ids), outcomes=self._outcomes, jobs=len(self.jobs),
            bytes=self._bytes, location=self.location,
        )  # fmt: skip
