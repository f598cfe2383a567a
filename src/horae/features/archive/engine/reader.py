"""Reading and erasing of archived executions."""

from collections.abc import AsyncIterator, Callable
from uuid import UUID

import msgspec
import structlog
from msgspec import Raw, structs

from horae.engine.base.refs import tag_ref
from horae.engine.executions.executions import Count, TimeBound, lowest_parcel, start_place
from horae.engine.storage.file_storage import FileStorage
from horae.env import SECOND, Env, Instant
from horae.errors import Busy
from horae.features.archive.engine.files import DamagedFile, Packer, discard, lines
from horae.features.archive.model import ArchivePage
from horae.features.archive.store import archives
from horae.features.archive.store.archives import ANY, BITS, LAST, Archive, ArchiveQuery
from horae.features.artifacts.store import artifacts
from horae.model.base.cursor import check_limit, make_cursor, read_cursor
from horae.model.base.ids import instant_of
from horae.model.executions.execution_view import ExecutionView
from horae.store.contract import Store

FILES = 20  # files searched for one page
MOST_BYTES = 4 * 1024 * 1024  # of a page; its last execution may exceed it
TOGETHER = 500  # lines read before other tasks get a turn
log = structlog.get_logger("horae.archive")
_NULL = Raw(b"null")
_ERASED = Raw(b'"(erased)"')


class ArchivedView(ExecutionView, frozen=True, kw_only=True):
    """An execution decoded from a line; params and results are any JSON."""

    params: Raw = _NULL
    result: Raw = _NULL


class ArchivedItems(list[ExecutionView]):
    """The executions of a page, with their size in bytes."""

    size = 0


Predicate = Callable[[ExecutionView], bool]
list_of = list  # the class has a method with this name
UNREADABLE = (DamagedFile, OSError, msgspec.DecodeError)  # errors of one file, not of the whole storage
_read = msgspec.json.Decoder(ArchivedView).decode


class ArchiveReader:
    """Lists archived executions, the newest files first."""

    def __init__(self, env: Env, store: Store, place: FileStorage) -> None:
        self._env, self._store, self._place = env, store, place

    async def list(
        self, namespace: int, *, status: str | None = None, job: str | None = None, tag: str | None = None,
        since: TimeBound = None, until: TimeBound = None, limit: int = 50, cursor: str | None = None,
    ) -> ArchivePage:  # fmt: skip
        """List executions of the archive. A page may be short or even empty while `nextCursor` says that there is more.

        A file that cannot be read completely is named in the notes, and the search continues with the next file.
        """
        check_limit(limit)
        low, high = lowest_parcel(since), start_place(until, None)[0]
        named = tag_ref(tag)
        at, skip = read_cursor(cursor, tuple[UUID, Count]) if cursor else (LAST, 0)

        def wanted(view: ExecutionView) -> bool:
            return (
                (status is None or view.status == status)
                and (job is None or job in (view.job_name, str(view.job_id)))
                and (named is None or (named[0] in view.tags and named[1] in (None, view.tags[named[0]])))
                and low <= view.execution_id < high
            )

        query = ArchiveQuery(
            outcomes=ANY if status is None else BITS.get(status, 0),  # type: ignore[call-overload]
            since=instant_of(low) - SECOND, until=instant_of(high), job=job,
        )  # fmt: skip
        found, notes = ArchivedItems(), list[str]()
        files = await self._store.read(lambda: archives.before(namespace, at, FILES + 1, query))
        for archive in files[:FILES]:
            first = skip if archive.id == at else 0
            place = await self._collect(archive, first, wanted, found, limit, notes)
            if place is not None:
                return ArchivePage(items=found, next_cursor=make_cursor((archive.id, place)), notes=notes)
        following = make_cursor((files[FILES].id, 0)) if len(files) > FILES else None
        return ArchivePage(items=found, next_cursor=following, notes=notes)

    async def _collect(
        self, archive: Archive, first: int, wanted: Predicate, found: ArchivedItems, limit: int,
        notes: "list_of[str]",
    ) -> int | None:  # fmt: skip
        """Add matching executions of a file after a line; return the line to continue at if the page is full."""
        number = 0
        try:
            async for view, line in self._views(archive):
                number += 1
                if number > first and wanted(view):
                    found.append(view)
                    found.size += len(line)
                    if len(found) == limit or found.size >= MOST_BYTES:
                        return number
        except UNREADABLE as error:
            current = await self._again(archive)
            if current is not None and current.location != archive.location:  # rewritten meanwhile, with the same lines
                return await self._collect(current, max(first, number), wanted, found, limit, notes)
            notes += [] if current is None else [self._unreadable_note(archive, number, error)]
        except Exception as error:
            raise self._out_of_reach(error) from error
        return None

    def _unreadable_note(self, archive: Archive, number: int, error: Exception) -> str:
        """Log a file that cannot be read completely, and return a note about it."""
        log.error("a file of the archive cannot be read", place=self._place.url, location=archive.location,
                  error=str(error))  # fmt: skip
        where = f"{archive.location}, with {archive.executions} executions,"
        if isinstance(error, FileNotFoundError):
            return f"{where} is not at {self._place.url} any more."
        return f"{where} cannot be read behind line {number}: {error}. Bring it back from a copy of {self._place.url}."

    def _out_of_reach(self, error: Exception) -> Busy:
        log.error("the archive cannot be read", place=self._place.url, error=str(error))
        return Busy(f"The archive at {self._place.url} does not answer.", "Look at the server's log.")

    async def erase(
        self, namespace: int, meant: Predicate, unread: set[str], *, since: Instant = 0
    ) -> set[UUID]:  # fmt: skip
        """Rewrite files that contain a person's data, without that data; return the erased executions.

        Data erased from the store before this call cannot return through a file that is being written meanwhile. Files
        without executions submitted at or after `since` are not searched. Unreadable files stay unchanged and are added
        to `unread`.
        """
        await self._store.write(lambda: archives.spoil(namespace))
        erased, at, query = set[UUID](), LAST, ArchiveQuery(since=max(0, since - SECOND))
        while True:
            files = await self._store.read(lambda: archives.before(namespace, at, FILES + 1, query))  # noqa: B023
            for archive in files[:FILES]:
                erased |= await self._erase_from(archive, meant, unread)
            if len(files) <= FILES:
                return erased
            at = files[FILES].id

    async def _erase_from(self, archive: Archive, meant: Predicate, unread: set[str]) -> set[UUID]:
        """Erase executions from one file, even if a concurrent erasure rewrites and moves it meanwhile."""
        while True:
            problem, erased = None, set[UUID]()
            try:
                async for view, _ in self._views(archive):
                    if view.params != _ERASED and meant(view):
                        erased.add(view.execution_id)
            except UNREADABLE as error:
                problem = error
            else:
                if not erased or await self._rewrite(archive, erased):
                    return erased
            current = await self._again(archive)
            if current is None:  # all its executions are gone
                return set()
            if problem is not None and current.location == archive.location:
                log.error("a file of the archive cannot be read", location=archive.location, error=str(problem))
                unread.add(archive.location)
                return set()
            archive = current

    async def _again(self, archive: Archive) -> Archive | None:
        return await self._store.read(lambda: archives.one(archive.id))

    async def _rewrite(self, archive: Archive, erased: set[UUID]) -> bool:
        """Replace a file by one without these executions; return False if it was replaced concurrently."""
        now, location = self._env.now(), f"archive/{archive.namespace}/{self._env.new_id()}.jsonl.gz"
        await self._store.write(lambda: artifacts.record_location(location, now))
        pieces = _CountedPieces(self._without(archive, erased))
        try:
            await self._place.write(location, pieces)
        except Exception:
            await discard(self._store, self._place, location)
            if await self._again(archive) == archive:
                raise
            return False
        if not await self._store.write(lambda: archives.move(archive, location, pieces.bytes, now)):
            await discard(self._store, self._place, location)
            return False
        await self._place.remove(archive.location)
        return True

    async def _views(self, archive: Archive) -> AsyncIterator[tuple[ArchivedView, bytes]]:
        number = 0
        async for line in lines(self._place, archive.location):
            yield _read(line), line
            number += 1
            if not number % TOGETHER:
                await self._env.clock.sleep(0)  # let other tasks run

    async def _without(self, archive: Archive, erased: set[UUID]) -> AsyncIterator[bytes]:
        """Yield a file without the erased data of these executions."""
        packer = Packer()
        async for view, line in self._views(archive):
            kept = msgspec.json.encode(_erased_view(view)) if view.execution_id in erased else line
            if piece := packer.add([kept]):
                yield piece
        yield packer.end()

    async def drop_some(self, namespace: int, before: Instant) -> tuple[int, bool]:
        """Remove some files with executions submitted before an instant.

        Return the number of removed files and whether there are more.
        """
        files = await self._store.read(lambda: archives.older(namespace, before, FILES))
        for archive in files:
            await self._place.remove(archive.location)
        if files:
            await self._store.write(lambda: archives.drop(files))
        return len(files), len(files) == FILES


class _CountedPieces:
    """Pieces of a file on their way to the storage, with their total size in bytes."""

    def __init__(self, pieces: AsyncIterator[bytes]) -> None:
        self._pieces, self.bytes = pieces, 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._pieces:
            self.bytes += len(piece)
            yield piece


def _erased_view(view: ExecutionView) -> ExecutionView:
    """Clear the data of an execution: its params, messages and result are removed, the fact that it ran stays."""
    return structs.replace(
        view, params=_ERASED, result=_NULL, error=None, error_message=None, message=None, tags={}, key=None
    )
