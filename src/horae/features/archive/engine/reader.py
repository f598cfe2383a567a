"""Reading the archive back, and erasing from it."""

from collections.abc import AsyncIterator, Callable
from uuid import UUID

import msgspec
import structlog
from msgspec import Raw, structs

from horae.engine.base.refs import tag_ref
from horae.engine.executions.executions import Bound, Count, low_parcel, start
from horae.engine.storage.file_storage import FileStorage
from horae.env import SECOND, Env, Instant
from horae.errors import Busy
from horae.features.archive.engine.files import Damaged, Packer, discard, lines
from horae.features.archive.model import ArchivePage
from horae.features.archive.store import archives
from horae.features.archive.store.archives import ANY, BITS, LAST, Archive, Sought
from horae.features.artifacts.store import artifacts
from horae.model.base.cursor import check_limit, make_cursor, read_cursor
from horae.model.base.ids import instant_of
from horae.model.executions.execution_view import ExecutionView
from horae.store.contract import Store

FILES = 20  # looked through for one page
MOST_BYTES = 4 * 1024 * 1024  # of a page, give or take its last execution
TOGETHER = 500  # lines that are read without a pause
log = structlog.get_logger("horae.archive")
_NULL = Raw(b"null")
_ERASED = Raw(b'"(erased)"')


class ArchivedView(ExecutionView, frozen=True, kw_only=True):
    """An execution as it is read from a line: params and results are any JSON."""

    params: Raw = _NULL
    result: Raw = _NULL


class Found(list[ExecutionView]):
    """The executions of a page, and how many bytes they have."""

    size = 0


Meant = Callable[[ExecutionView], bool]
list_of = list  # the class has a method of that name
UNREADABLE = (Damaged, OSError, msgspec.DecodeError)  # one file, not the place it is at
_read = msgspec.json.Decoder(ArchivedView).decode


class ArchiveReader:
    """Lists what was archived, the newest files first."""

    def __init__(self, env: Env, store: Store, place: FileStorage) -> None:
        self._env, self._store, self._place = env, store, place

    async def list(
        self, namespace: int, *, status: str | None = None, job: str | None = None, tag: str | None = None,
        since: Bound = None, until: Bound = None, limit: int = 50, cursor: str | None = None,
    ) -> ArchivePage:  # fmt: skip
        """Executions of the archive. A page may be short, even empty, while `nextCursor` says there is more.

        A file that cannot be read, or not to its end, is named in the notes, and those behind it are read.
        """
        check_limit(limit)
        low, high = low_parcel(since), start(until, None)[0]
        named = tag_ref(tag)
        at, skip = read_cursor(cursor, tuple[UUID, Count]) if cursor else (LAST, 0)

        def wanted(view: ExecutionView) -> bool:
            return (
                (status is None or view.status == status)
                and (job is None or job in (view.job_name, str(view.job_id)))
                and (named is None or (named[0] in view.tags and named[1] in (None, view.tags[named[0]])))
                and low <= view.execution_id < high
            )

        sought = Sought(
            outcomes=ANY if status is None else BITS.get(status, 0),  # type: ignore[call-overload]
            since=instant_of(low) - SECOND, until=instant_of(high), job=job,
        )  # fmt: skip
        found, notes = Found(), list[str]()
        files = await self._store.read(lambda: archives.before(namespace, at, FILES + 1, sought))
        for archive in files[:FILES]:
            first = skip if archive.id == at else 0
            place = await self._collect(archive, first, wanted, found, limit, notes)
            if place is not None:
                return ArchivePage(items=found, next_cursor=make_cursor((archive.id, place)), notes=notes)
        following = make_cursor((files[FILES].id, 0)) if len(files) > FILES else None
        return ArchivePage(items=found, next_cursor=following, notes=notes)

    async def _collect(
        self, archive: Archive, first: int, wanted: Meant, found: Found, limit: int,
        notes: "list_of[str]",
    ) -> int | None:  # fmt: skip
        """Add what is wanted of a file from a line on; where to go on if the page is full."""
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
            now = await self._again(archive)
            if now is not None and now.location != archive.location:  # written anew meanwhile, line by line
                return await self._collect(now, max(first, number), wanted, found, limit, notes)
            notes += [] if now is None else [self._told(archive, number, error)]
        except Exception as error:
            raise self._out_of_reach(error) from error
        return None

    def _told(self, archive: Archive, number: int, error: Exception) -> str:
        """What to say of a file that cannot be read to its end."""
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
        self, namespace: int, meant: Meant, unread: set[str], *, since: Instant = 0
    ) -> set[UUID]:  # fmt: skip
        """Write files anew in which somebody's data is, without it; which executions were erased.

        What was erased in the store before does not come back by a file that was being written then. Files with
        nothing that was submitted since an instant are not looked through. Those that cannot be read stay as they are,
        and are added to `unread`.
        """
        await self._store.write(lambda: archives.spoil(namespace))
        erased, at, sought = set[UUID](), LAST, Sought(since=max(0, since - SECOND))
        while True:
            files = await self._store.read(lambda: archives.before(namespace, at, FILES + 1, sought))  # noqa: B023
            for archive in files[:FILES]:
                erased |= await self._erase_from(archive, meant, unread)
            if len(files) <= FILES:
                return erased
            at = files[FILES].id

    async def _erase_from(self, archive: Archive, meant: Meant, unread: set[str]) -> set[UUID]:
        """Erase from one file, wherever others who erase from it put it meanwhile."""
        while True:
            problem, erased = None, set[UUID]()
            try:
                async for view, _ in self._views(archive):
                    if view.params != _ERASED and meant(view):
                        erased.add(view.execution_id)
            except UNREADABLE as error:
                problem = error
            else:
                if not erased or await self._write_anew(archive, erased):
                    return erased
            now = await self._again(archive)
            if now is None:  # all that was in it is gone
                return set()
            if problem is not None and now.location == archive.location:
                log.error("a file of the archive cannot be read", location=archive.location, error=str(problem))
                unread.add(archive.location)
                return set()
            archive = now

    async def _again(self, archive: Archive) -> Archive | None:
        return await self._store.read(lambda: archives.one(archive.id))

    async def _write_anew(self, archive: Archive, erased: set[UUID]) -> bool:
        """Put a file without these executions in its place; false when somebody else put another there meanwhile."""
        now, location = self._env.now(), f"archive/{archive.namespace}/{self._env.new_id()}.jsonl.gz"
        await self._store.write(lambda: artifacts.announce(location, now))
        anew = _Counted(self._without(archive, erased))
        try:
            await self._place.write(location, anew)
        except Exception:
            await discard(self._store, self._place, location)
            if await self._again(archive) == archive:
                raise
            return False
        if not await self._store.write(lambda: archives.move(archive, location, anew.bytes, now)):
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
                await self._env.clock.sleep(0)  # others have their turn

    async def _without(self, archive: Archive, erased: set[UUID]) -> AsyncIterator[bytes]:
        """A file with what of these executions is erased gone."""
        packer = Packer()
        async for view, line in self._views(archive):
            kept = msgspec.json.encode(_emptied(view)) if view.execution_id in erased else line
            if piece := packer.add([kept]):
                yield piece
        yield packer.end()

    async def drop_some(self, namespace: int, before: Instant) -> tuple[int, bool]:
        """Remove some files of what a namespace submitted before an instant; how many, and whether there are more."""
        files = await self._store.read(lambda: archives.older(namespace, before, FILES))
        for archive in files:
            await self._place.remove(archive.location)
        if files:
            await self._store.write(lambda: archives.drop(files))
        return len(files), len(files) == FILES


class _Counted:
    """Pieces on their way, and how many bytes they were."""

    def __init__(self, pieces: AsyncIterator[bytes]) -> None:
        self._pieces, self.bytes = pieces, 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._pieces:
            self.bytes += len(piece)
            yield piece


def _emptied(view: ExecutionView) -> ExecutionView:
    """That it ran stays; what it was given, said and returned goes."""
    return structs.replace(
        view, params=_ERASED, result=_NULL, error=None, error_message=None, message=None, tags={}, key=None
    )
