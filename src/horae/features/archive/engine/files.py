"""Files of the archive: one JSON line per execution, as the API shows it, compressed with gzip.

A file that is being written begins with the newest execution. Executions are read from the store, compressed and passed
to the storage in pieces.
"""

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterable
from uuid import UUID

import msgspec
import structlog

from horae.engine.executions.executions import Executions
from horae.engine.storage.file_storage import FileStorage
from horae.env import Env
from horae.errors import StoreUnavailable
from horae.features.archive.store.archives import BITS, Archive
from horae.features.artifacts.store import artifacts
from horae.model.base.ids import instant_of
from horae.model.executions.execution_view import ExecutionView
from horae.store.contract import Store
from horae.store.executions.reads import execution_reads as reads

PIECE = 1 << 20  # the most bytes to decompress at once
_GZIP = 31  # zlib's `wbits` for the gzip format
# The most executions that one statement reads, and the most bytes, unless the first execution is larger.
TOGETHER, MOST_BYTES = 500, 16 * 1024 * 1024
log = structlog.get_logger("horae.archive")


class DamagedFile(Exception):
    """An error for a file that is truncated or corrupt."""


class Packer:
    """Compresses lines incrementally."""

    def __init__(self) -> None:
        self._packer = zlib.compressobj(6, wbits=_GZIP)

    def add(self, lines: Iterable[bytes]) -> bytes:
        """Add lines, and return the compressed data that is ready, which may be empty."""
        return b"".join(self._packer.compress(line + b"\n") for line in lines)

    def end(self) -> bytes:
        return self._packer.flush()


async def lines(place: FileStorage, location: str) -> AsyncIterator[bytes]:
    """Yield the lines of a file; only a part of it is in memory at a time.

    Raises FileNotFoundError, or DamagedFile after the last readable line.
    """
    opener, rest = zlib.decompressobj(wbits=_GZIP), b""
    async for piece in place.read(location):
        data = _opened(opener, piece)
        while data or opener.unconsumed_tail:
            *whole, rest = (rest + data).split(b"\n")
            for line in whole:
                yield line
            data = _opened(opener, opener.unconsumed_tail)
    *whole, rest = (rest + opener.flush()).split(b"\n")
    for line in whole:
        yield line
    if rest or not opener.eof:
        raise DamagedFile("the file is incomplete")


def _opened(opener: "zlib._Decompress", piece: bytes) -> bytes:
    try:
        return opener.decompress(piece, PIECE)
    except zlib.error as error:
        raise DamagedFile(str(error)) from None


async def discard(store: Store, place: FileStorage, location: str) -> None:
    """Remove a file, complete or not, that is recorded as litter because no row in the archive has its location."""
    try:
        await place.remove(location)
    except Exception as left:  # the sweep of litter removes it later
        log.warning("a file that is not part of the archive cannot be removed", location=location, error=str(left))
    else:
        await store.write(lambda: artifacts.forget_deleted_locations([location]))


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
