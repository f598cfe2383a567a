"""Files of executions, prepared for the upload to a server."""

import asyncio
import mimetypes
import os
import stat
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from horae.model.executions.output.artifact import DEFAULT_TYPE, MOST_ARTIFACTS, check_name, check_type
from horae.worker.code.execution_requests import UploadArtifact

PIECE = 256 * 1024
Content = str | os.PathLike[str] | bytes


@contextmanager
def upload_request(name: str, content: Content, media: str | None = None) -> Iterator[UploadArtifact]:
    """Yield a request to upload `content`, the path of a file or bytes, under a name.

    Bytes are written to a temporary file, which is deleted at the end of the block.
    """
    kind = check_type(media or guess_type(name))
    check_name(name)
    if not isinstance(content, bytes):
        path = Path(content).absolute()
        if not path.is_file():
            raise FileNotFoundError(f"there is no file {path} to store as {name!r}")
        yield UploadArtifact(name, str(path), kind)
        return
    descriptor, written = tempfile.mkstemp(prefix="horae-artifact-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        yield UploadArtifact(name, written, kind)
    finally:
        Path(written).unlink(missing_ok=True)


def guess_type(name: str) -> str:
    """Guess the media type from the ending of a name."""
    return mimetypes.guess_type(name)[0] or DEFAULT_TYPE


def files_in(folder: Path, owner: int | None = None) -> list[UploadArtifact]:
    """Return upload requests for the plain files in a folder, named by their paths relative to it.

    `owner` is the user id that must own each file when it is read, or None. There is at most one request more than an
    execution may have artifacts: the server refuses it, so that the excess is reported.
    """
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    names = [(path.relative_to(folder).as_posix(), path) for path in files[: MOST_ARTIFACTS + 1]]
    return [UploadArtifact(name, str(path), guess_type(name), owner) for name, path in names]


def open_plain_file(path: str, owner: int | None) -> BinaryIO:
    """Open a plain file that the user id `owner` owns, or any user if `owner` is None. Raises PermissionError.

    The check is made on the opened file: since the path was listed, the command may have replaced the file, for
    example by a link to a file of another user.
    """
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    found = os.fstat(file.fileno())
    if not stat.S_ISREG(found.st_mode) or owner not in (None, found.st_uid):
        file.close()
        raise PermissionError(f"{path} is not a plain file of the user that the command ran as")
    return file


async def read_pieces(upload: UploadArtifact) -> AsyncIterator[bytes]:
    """Yield the content of a file in pieces, up to the length that it has when it is opened."""
    with await asyncio.to_thread(open_plain_file, upload.path, upload.owner) as file:
        left = os.fstat(file.fileno()).st_size
        while left > 0 and (piece := await asyncio.to_thread(file.read, min(PIECE, left))):
            left -= len(piece)
            yield piece
