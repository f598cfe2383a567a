"""Watched folders: a thread lists the files below a path, without following links."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import islice

from horae.errors import BadInput
from horae.features.events.engine.watching.object_versions import ObjectVersion

PAGE = 1000


class PartlyUnreadable(Exception):
    """Raised after the last page if some folders could not be read."""


async def pages(path: str, roots: Sequence[str]) -> AsyncIterator[list[ObjectVersion]]:
    """Yield the files below a folder, page by page.

    Raises BadInput if it is outside the allowed folders, and PartlyUnreadable.
    """
    await asyncio.to_thread(refuse_outside, path, roots)
    unreadable: list[OSError] = []
    files = _walk(os.fsencode(path), unreadable)
    while page := await asyncio.to_thread(lambda: list(islice(files, PAGE))):
        yield page
    if unreadable:
        first, more = unreadable[0], len(unreadable) - 1
        where = os.fsdecode(first.filename or path).encode(errors="replace").decode()
        raise PartlyUnreadable(f"{where}: {first.strerror}" + (f", and {more:,} more folders." if more else "."))


def refuse_outside(path: str, roots: Sequence[str]) -> None:
    """Raise BadInput for a path outside the allowed folders; links in the path are resolved first."""
    real = os.path.realpath(path)
    if not any(os.path.commonpath([real, root]) == root for root in map(os.path.realpath, roots)):
        raise BadInput(f"{path} is outside the places that this server may watch.", "See HORAE_WATCH_ROOTS.")


def _walk(root: bytes, unreadable: list[OSError]) -> Iterator[ObjectVersion]:
    """Yield every regular file; files that vanish meanwhile are left out. Only one folder is open at a time.

    `unreadable` gets an error for each folder below the root that cannot be read.
    """
    folders = [root]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    elif entry.is_file(follow_symlinks=False) and (listed := _listed(entry, root)) is not None:
                        yield listed
        except OSError as error:
            if folder == root:
                raise
            if not isinstance(error, FileNotFoundError):
                unreadable.append(error)


def _listed(entry: "os.DirEntry[bytes]", root: bytes) -> ObjectVersion | None:
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None
    raw = os.path.relpath(entry.path, root)
    return ObjectVersion(
        key=raw.decode(errors="replace"),
        raw=raw,
        version=f"{status.st_mtime_ns}-{status.st_size}",
        size=status.st_size,
        modified=status.st_mtime_ns // 1000,
    )
