"""Artifacts: files that an execution leaves behind, kept beside the store and named by it."""

import re

from msgspec import Struct

from horae.env import Instant
from horae.errors import BadInput

RESULT = ":result"  # the name of a result that is too large to travel with its report; nobody else's begins so
MAX_BROUGHT = 64 * 1024 * 1024  # bytes of such a result
MOST_NAME = 255  # bytes
MOST_ARTIFACTS = 1000  # of one execution
DEFAULT_TYPE = "application/octet-stream"
_REMEDY = 'Name it as a file below a folder, such as "report.html" or "plots/daily.png".'
_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,127}/[A-Za-z0-9!#$&^_.+-]{1,127}(?:; ?[A-Za-z0-9-]+=[\"A-Za-z0-9._ -]+)*")


class Artifact(Struct, frozen=True, kw_only=True):
    """A file of an execution: what it is called, what is in it, and where its content lies."""

    name: str
    attempt: int
    size: int
    type: str
    sha256: str  # in hexadecimal digits
    location: str  # below the place of all artifacts
    at: Instant


def check_name(name: str) -> str:
    """A name that is a path below a folder, whatever the system; refused is what leads elsewhere."""
    parts = name.split("/")
    if not name or len(name.encode(errors="replace")) > MOST_NAME:
        raise BadInput(f"An artifact's name has 1 to {MOST_NAME} bytes.", _REMEDY, field="name")
    if any(part in ("", ".", "..") for part in parts) or "\\" in name or not name.isprintable():
        raise BadInput(f"{name[:60]!r} is not an artifact's name.", _REMEDY, field="name")
    if name.startswith(":") and name != RESULT:
        raise BadInput(f"{name[:60]!r} begins with a colon.", _REMEDY, field="name")
    return name


def check_type(type: str) -> str:
    """A media type as a header may carry it."""
    if len(type) > MOST_NAME or not _TYPE.fullmatch(type):
        raise BadInput(f"{type[:60]!r} is not a media type.", 'Write one such as "text/html".', field="type")
    return type
