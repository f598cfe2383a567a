"""Read and erase archived executions."""

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
from horae.features.archive.store.archives import ANY, BITS, LAST, LATEST, Archive, ArchiveQuery
from horae.features.artifacts.store import artifacts
from horae.model.base.cursor import check_limit, make_cursor, read_cursor
from horae.model.base.ids import instant_of
from horae.model.executions.execution_view import ExecutionView
from horae.store.contract import Store

FILES = 20  # the most files to search for one page
MOST_BYTES = 4 * 1024 * 1024  # a page ends with the execution that reaches this size
TOGETHER = 500  # lines to read before other tasks may run
log = structlog.get_logger("horae.archive")
_NULL = Raw(b"null")
_ERASED = Raw(b'"(erased)"')


class ArchivedView(ExecutionView, frozen=True, kw_only=True):
    """An execution decoded from a line of a file, with params and result as raw JSON."""

    params: Raw = _NULL
    result: Raw = _NULL


class ArchivedItems(list[ExecutionView]):
    """The executions of a page, and their total size in bytes."""

    size = 0


Predicate = Callable[[ExecutionView], bool]
list_of = list  # another name for `list`, because the class has a method `list`
UNREADABLE = (DamagedFile, OSError, msgspec.DecodeError)  # errors of one file, not of the whole storage
_read = msgspec.json.Decoder(ArchivedView).decode


class ArchiveReader:
    """Lists archived executions, beginning with the newest files, and erases them."""

    def __init__(self, env: Env, store: Store, place: FileStorage) -> None:
        self._env, self._store, self._place = env, store, place

    async def list(
        self, namespace: int, *, status: str | None = None, job: str | None = None, tag: str | None = None,
        since: TimeBound = None, until: TimeBound = None, limit: int = 50, cursor: str | None = None,
    ) -> ArchivePage:  # fmt: skip
        """List archived executions. A page may be short or empty although `nextCursor` says that there are more.

        If a file cannot be read completely, the notes name it, and the search continues with the next file.
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
        """Add the matching executions of a file that follow its first `first` lines to `found`.

        If the page becomes full, return the number of lines read, from which the next page continues, else None.
        """
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
            # An erasure may have rewritten the file meanwhile. The new file has as many lines in the same order.
            if current is not None and current.location != archive.location:
                return await self._collect(current, max(first, number), wanted, found, limit, notes)
            notes += [] if current is None else [self._unreadable_note(archive, number, error)]
        except Exception as error:
            raise self._out_of_reach("read", error) from error
        return None

    def _unreadable_note(self, archive: Archive, number: int, error: Exception) -> str:
        """Log a file that cannot be read completely, and return a note about it."""
        log.error("a file of the archive cannot be read", place=self._place.url, location=archive.location,
                  error=str(error))  # fmt: skip
        where = f"{archive.location}, with {archive.executions} executions,"
        if isinstance(error, FileNotFoundError):
            return f"{where} is no longer at {self._place.url}."
        return f"{where} cannot be read after line {number}: {error}. Restore it from a copy of {self._place.url}."

    def _out_of_reach(self, done: str, error: Exception) -> Busy:
        log.error(f"the archive cannot be {done}", place=self._place.url, error=str(error))
        return Busy(f"The archive at {self._place.url} cannot be {done}.", "See the server's log.")

    async def find(self, namespace: int, is_selected: Predicate, unread: set[str]) -> set[UUID]:
        """Return the ids of the executions that `is_selected` accepts, without erasing them. See `erase`."""
        return await self._search(namespace, ArchiveQuery(), is_selected, unread, erases=False)

    async def erase(
        self, namespace: int, is_selected: Predicate, unread: set[str], *, since: Instant = 0, until: Instant = LATEST
    ) -> set[UUID]:
        """Erase the data of the executions that `is_selected` accepts, by rewriting their files; return their ids.

        The ids include those of executions that were erased before. Files that are being written at this time are not
        added to the archive, because they may have data that was already erased in the store. Files with only
        executions submitted before `since` or after `until` are not searched. Unreadable files stay unchanged, and
        their locations are added to `unread`.
        """
        await self._store.write(lambda: archives.exclude_announced(namespace))
        query = ArchiveQuery(since=max(0, since - SECOND), until=until)
        return await self._search(namespace, query, is_selected, unread, erases=True)

    async def _search(
        self, namespace: int, query: ArchiveQuery, is_selected: Predicate, unread: set[str], *, erases: bool
    ) -> set[UUID]:
        found, at = set[UUID](), LAST
        while True:
            files = await self._store.read(lambda: archives.before(namespace, at, FILES + 1, query))  # noqa: B023
            for archive in files[:FILES]:
                found |= await self._search_in(archive, is_selected, unread, erases)
            if len(files) <= FILES:
                return found
            at = files[FILES].id

    async def _search_in(
        self, archive: Archive, is_selected: Predicate, unread: set[str], erases: bool
    ) -> set[UUID]:  # fmt: skip
        """Find or erase the selected executions in one file, even if another erasure replaces the file meanwhile."""
        while True:
            problem = None
            try:
                # for each selected execution, whether its data was erased before
                found = {v.execution_id: is_erased(v) async for v, _ in self._views(archive) if is_selected(v)}
            except UNREADABLE as error:
                problem = error
            except Exception as error:
                raise self._out_of_reach("read", error) from error
            else:
                whole = {one for one, is_done in found.items() if not is_done}
                if not erases or not whole or await self._rewrite(archive, whole):
                    return set(found)
            current = await self._again(archive)
            if current is None:  # the file was removed from the archive
                return set()
            if problem is not None and current.location == archive.location:
                log.error("a file of the archive cannot be read", location=archive.location, error=str(problem))
                unread.add(archive.location)
                return set()
            archive = current

    async def _again(self, archive: Archive) -> Archive | None:
        return await self._store.read(lambda: archives.one(archive.id))

    async def _rewrite(self, archive: Archive, erased: set[UUID]) -> bool:
        """Replace a file by one without the data of these executions; return False if another call replaced it."""
        now, location = self._env.now(), f"archive/{archive.namespace}/{self._env.new_id()}.jsonl.gz"
        await self._store.write(lambda: artifacts.record_location(location, now))
        pieces = _CountedPieces(self._without(archive, erased))
        try:
            await self._place.write(location, pieces)
        except Exception as error:  # storages raise errors of any type
            await discard(self._store, self._place, location)
            if await self._again(archive) == archive:
                raise self._out_of_reach("rewritten", error) from error
            return False
        moved = await self._store.write(lambda: archives.move(archive, location, pieces.bytes))
        await discard(self._store, self._place, archive.location if moved else location)
        return moved

    async def _views(self, archive: Archive) -> AsyncIterator[tuple[ArchivedView, bytes]]:
        number = 0
        async for line in lines(self._place, archive.location):
            yield _read(line), line
            number += 1
            if not number % TOGETHER:
                await self._env.clock.sleep(0)  # let other tasks run

    async def _without(self, archive: Archive, erased: set[UUID]) -> AsyncIterator[bytes]:
        """Yield the compressed pieces of a file without the data of these executions."""
        packer = Packer()
        async for view, line in self._views(archive):
            kept = msgspec.json.encode(_erased_view(view)) if view.execution_id in erased else line
            if piece := packer.add([kept]):
                yield piece
        yield packer.end()

    async def drop_some(self, namespace: int, before: Instant) -> tuple[int, bool]:
        """Remove some files of a namespace whose executions were all submitted before an instant.

        Return the number of removed files, and whether there may be more.
        """
        files = await self._store.read(lambda: archives.older(namespace, before, FILES))
        if files:
            await self._store.write(lambda: archives.drop(files))
        for archive in files:
            await discard(self._store, self._place, archive.location)
        return len(files), len(files) == FILES


class _CountedPieces:
    """The pieces of a file to write; their total size in bytes is counted while they are read."""

    def __init__(self, pieces: AsyncIterator[bytes]) -> None:
        self._pieces, self.bytes = pieces, 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._pieces:
            self.bytes += len(piece)
            yield piece


def is_erased(view: ExecutionView) -> bool:
    """Return whether the data of an archived execution was erased."""
    return view.params == _ERASED


def _erased_view(view: ExecutionView) -> ExecutionView:
    """Remove the params, messages, result, tags and key of an execution; its times and its state stay."""
    return structs.replace(
        view, params=_ERASED, result=_NULL, error=None, error_message=None, message=None, tags={}, key=None
    )
