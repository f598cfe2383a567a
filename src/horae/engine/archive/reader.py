"""Reading the archive back, and erasing from it."""

import asyncio
from collections.abc import Callable
from uuid import UUID

import msgspec
import structlog
from msgspec import Raw, structs

from horae.engine.archive.files import lines, pack, pieces
from horae.engine.artifacts.place import Place
from horae.engine.executions import Bound, Count, low_parcel, start
from horae.engine.refs import tag_ref
from horae.env import SECOND, Env, Instant
from horae.model.cursor import check_limit, make_cursor, read_cursor
from horae.model.execution_view import ExecutionView
from horae.model.ids import first_id_at
from horae.model.view import Page
from horae.store.contract import Store
from horae.store.moves import archives, artifacts
from horae.store.moves.archives import LAST, Archive

FILES = 20  # looked through for one page
TOGETHER = 500  # lines that are read without a pause
log = structlog.get_logger("horae.archive")
_NULL = Raw(b"null")
_ERASED = Raw(b'"(erased)"')


class ArchivedView(ExecutionView, frozen=True, kw_only=True):
    """An execution as it is read from a line: params and results are any JSON."""

    params: Raw = _NULL
    result: Raw = _NULL


Found = list[ExecutionView]
_read = msgspec.json.Decoder(ArchivedView).decode


class ArchiveReader:
    """Lists what was archived, the newest files first."""

    def __init__(self, env: Env, store: Store, place: Place) -> None:
        self._env, self._store, self._place = env, store, place

    async def list(
        self, namespace: int, *, status: str | None = None, job: str | None = None, tag: str | None = None,
        since: Bound = None, until: Bound = None, limit: int = 50, cursor: str | None = None,
    ) -> Page[ExecutionView]:  # fmt: skip
        """Executions of the archive. A page may be short, even empty, while `nextCursor` says there is more."""
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

        found: Found = []
        files = await self._store.read(lambda: archives.before(namespace, at, FILES + 1))
        for archive in files[:FILES]:
            first = skip if archive.id == at else 0
            if first_id_at(archive.last_at + 1_000_000) < low or first_id_at(archive.first_at) > high:
                continue
            place = await self._collect(archive, first, wanted, found, limit)
            if place is not None:
                return Page(items=found, next_cursor=make_cursor((archive.id, place)))
        following = make_cursor((files[FILES].id, 0)) if len(files) > FILES else None
        return Page(items=found, next_cursor=following)

    async def _collect(
        self, archive: Archive, first: int, wanted: Callable[[ExecutionView], bool], found: Found, limit: int,
    ) -> int | None:  # fmt: skip
        """Add what is wanted of a file from a line on; where to go on if the page is full."""
        number = 0
        try:
            async for line in lines(self._place, archive.location):
                number += 1
                if not number % TOGETHER:
                    await self._env.clock.sleep(0)  # others have their turn
                if number <= first:
                    continue
                view = _read(line)
                if wanted(view):
                    found.append(view)
                    if len(found) == limit:
                        return number
        except FileNotFoundError:
            log.warning("a file of the archive is gone", place=self._place.url, location=archive.location)
        return None

    async def erase(self, namespace: int, meant: Callable[[ExecutionView], bool], *, since: Instant = 0) -> set[UUID]:
        """Write files anew in which somebody's data is, without it; which executions were erased.

        Files with nothing that was submitted since an instant are not looked through.
        """
        erased, at = set[UUID](), LAST
        while True:
            files = await self._store.read(lambda: archives.before(namespace, at, FILES + 1))  # noqa: B023
            for archive in files[:FILES]:
                if archive.last_at + SECOND >= since:
                    erased |= await self._erase_from(archive, meant)
            if len(files) <= FILES:
                return erased
            at = files[FILES].id

    async def _erase_from(self, archive: Archive, meant: Callable[[ExecutionView], bool]) -> set[UUID]:
        kept, erased = [], set[UUID]()
        try:
            async for line in lines(self._place, archive.location):
                view = _read(line)
                if view.params != _ERASED and meant(view):
                    erased.add(view.execution_id)
                    line = msgspec.json.encode(_emptied(view))
                kept.append(line)
                if not len(kept) % TOGETHER:
                    await self._env.clock.sleep(0)
        except FileNotFoundError:
            return set()
        if erased:
            now, content = self._env.now(), await asyncio.to_thread(pack, kept)
            location = f"archive/{archive.namespace}/{self._env.new_id()}.jsonl.gz"
            await self._store.write(lambda: artifacts.announce(location, now))
            await self._place.write(location, pieces(content))
            await self._store.write(lambda: archives.move(archive, location, len(content), now))
            await self._place.remove(archive.location)
        return erased

    async def drop_some(self, namespace: int, before: UUID) -> tuple[int, bool]:
        """Remove some files of a namespace that were made before an id; how many, and whether there are more."""
        files = await self._store.read(lambda: archives.before(namespace, before, FILES))
        for archive in files:
            await self._place.remove(archive.location)
        if files:
            await self._store.write(lambda: archives.drop(files, self._env.now()))
        return len(files), len(files) == FILES


def _emptied(view: ExecutionView) -> ExecutionView:
    """That it ran stays; what it was given, said and returned goes."""
    return structs.replace(
        view, params=_ERASED, result=_NULL, error=None, error_message=None, message=None, tags={}, key=None
    )
