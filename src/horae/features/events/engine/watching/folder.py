"""Watched folders: a thread lists the files below a path, without following links."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import islice

from horae.errors import BadInput
from horae.features.events.engine.watching.object_versions import ObjectVersion

PAGE = 1000


async def pages(path: str, roots: Sequence[str]) -> AsyncIterator[list[ObjectVersion]]:
    """Yield the files below a folder, page by page. Raises BadInput if it is outside the allowed folders."""
    await asyncio.to_thread(refuse_outside, path, roots)
    files = _walk(os.fsencode(path))
    while page := await asyncio.to_thread(lambda: list(islice(files, PAGE))):
        yield page


def refuse_outside(path: str, roots: Sequence[str]) -> None:
    """Raise BadInput for a path outside the allowed folders; links in the path are resolved first."""
    real = os.path.realpath(path)
    if not any(os.path.commonpath([real, root]) == root for root in map(os.path.realpath, roots)):
        raise BadInput(f"{path} is outside the places that this server may watch.", "See HORAE_WATCH_ROOTS.")


def _walk(root: bytes) -> Iterator[ObjectVersion]:
    """Yield every regular file; files that vanish meanwhile are left out. Only one folder is open at a time."""
    folders = [root]
    while folders:
        folder = folders.pop()
        try:
            entries = os.scandir(folder)
        except FileNotFoundError:
            if folder == root:
                raise
            continue
        with entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.is_file(follow_symlinks=False) and (listed := _listed(entry, root)) is not None:
                    yield listed


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
