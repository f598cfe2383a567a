"""Artifacts: files that an execution produces. They are stored outside the database, which only records them."""

import hashlib
import re
from urllib.parse import quote
from uuid import UUID

import msgspec
from msgspec import Struct, field

from horae.env import Instant
from horae.errors import BadInput

RESULT = ":result"  # the artifact of a result that is too large for the store; no other name begins with a colon
REFERENCE = b'{"$artifact":'  # prefix of the JSON that refers to such a result
MAX_RESULT_FILE = 64 * 1024 * 1024  # bytes of a result that is stored as an artifact
MOST_NAME = 255  # bytes
MOST_ARTIFACTS = 1000  # artifacts of one execution
DEFAULT_TYPE = "application/octet-stream"
_REMEDY = 'Name it as a file below a folder, such as "report.html" or "plots/daily.png".'
_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,127}/[A-Za-z0-9!#$&^_.+-]{1,127}(?:; ?[A-Za-z0-9-]+=[\"A-Za-z0-9._ -]+)*")


class Artifact(Struct, frozen=True, kw_only=True):
    """A file of an execution: its name, size, type, digest and location."""

    name: str
    attempt: int
    size: int
    type: str
    sha256: str  # in hexadecimal digits
    location: str  # path below the root of all artifacts
    at: Instant


def url_of(execution: UUID, name: str) -> str:
    """Return the URL of an artifact's content."""
    return f"/api/v1/executions/{execution}/artifacts/{quote(name)}"


class _Content(Struct, frozen=True):
    size: int
    sha256: str


class _Reference(Struct, frozen=True):
    content: _Content = field(name="$artifact")


_reference = msgspec.json.Decoder(_Reference)


def size_of_reference(result: bytes) -> int | None:
    """Return the size of the file to which a result refers; None when the result is inline."""
    found = _referred(result)
    return None if found is None else found.size


def is_content_of(content: bytes, result: bytes) -> bool:
    """Return whether this is the content to which a result refers."""
    found = _referred(result)
    return found is not None and found.size == len(content) and found.sha256 == hashlib.sha256(content).hexdigest()


def _referred(result: bytes) -> _Content | None:
    if not result.startswith(REFERENCE):
        return None
    try:
        return _reference.decode(result).content
    except msgspec.DecodeError:  # a function's own result that only begins like a reference
        return None


def check_name(name: str) -> str:
    """Return a name that is a relative path on any system, or raise BadInput."""
    parts = name.split("/")
    if not name or len(name.encode(errors="replace")) > MOST_NAME:
        raise BadInput(f"An artifact's name has 1 to {MOST_NAME} bytes.", _REMEDY, field="name")
    if any(part in ("", ".", "..") for part in parts) or "\\" in name or not name.isprintable():
        raise BadInput(f"{name[:60]!r} is not an artifact's name.", _REMEDY, field="name")
    if name.startswith(":") and name != RESULT:
        raise BadInput(f"{name[:60]!r} begins with a colon.", _REMEDY, field="name")
    return name


def check_type(media_type: str) -> str:
    """Return a media type that is valid in a header, or raise BadInput."""
    if len(media_type) > MOST_NAME or not _TYPE.fullmatch(media_type):
        raise BadInput(f"{media_type[:60]!r} is not a media type.", 'Write one such as "text/html".', field="type")
    return media_type
