"""The files of the UI, from the package. Addresses that the UI's page handles itself are answered with that page."""

import hashlib
import zlib
from functools import cache
from importlib.resources import files

from msgspec import Struct

from horae.errors import NotFound
from horae.feature import installed
from horae.server.access import PUBLIC
from horae.server.call import ApiCall
from horae.server.reply import UNCACHED, Header, Response
from horae.server.route import get
from horae.server.scopes import closed
from horae.server.shaping import accepts_gzip

KINDS = {
    "html": b"text/html; charset=utf-8",
    "css": b"text/css; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "svg": b"image/svg+xml",
    "json": b"application/json",
    "txt": b"text/plain; charset=utf-8",
}
# The first parts of addresses that the page itself handles (ui/core/pages.js). They differ from the folders of files.
KERNEL = ("overview", "jobs", "executions", "schedule", "queues", "workers", "audit", "settings", "sign-in")
PAGES = frozenset((*KERNEL, *(page for feature in installed() for page in feature.pages)))


class UiFile(Struct, frozen=True):
    """A file, plain and compressed (`packed`), with its media type and its ETag (`mark`)."""

    content: bytes
    packed: bytes
    kind: bytes
    mark: bytes


def _read(content: bytes, kind: bytes) -> UiFile:
    packer = zlib.compressobj(9, wbits=31)
    packed = packer.compress(content) + packer.flush()
    mark = b'"%b"' % hashlib.sha256(content).hexdigest()[:16].encode()
    return UiFile(content, packed, kind, mark)


@cache
def _files() -> dict[str, UiFile]:
    """Return every file by its path. A path from a client is only looked up here, so it cannot open any other file."""
    found: dict[str, UiFile] = {}
    folders = [("", files("horae.ui"))]
    for prefix, folder in folders:
        for entry in folder.iterdir():
            if entry.is_dir():
                folders.append((f"{prefix}{entry.name}/", entry))
            elif (kind := KINDS.get(entry.name.rpartition(".")[2])) is not None:
                found[prefix + entry.name] = _read(entry.read_bytes(), kind)
    return found


def _file(call: ApiCall, name: str) -> Response:
    file = _files().get(name)
    if file is None:
        if b"text/html" not in call.headers.get(b"accept", b""):
            raise NotFound("There is no such page.", "Begin at /.")
        return Response(404, _files()["index.html"].content, KINDS["html"], [(b"cache-control", b"no-cache")])
    headers: list[Header] = [(b"cache-control", b"no-cache"), (b"etag", file.mark), (b"vary", b"accept-encoding")]
    if not accepts_gzip(call.headers):
        return Response(200, file.content, file.kind, headers)
    return Response(200, file.packed, file.kind, [*headers, (b"content-encoding", b"gzip")])


@get("/", "ui.page", str, access=PUBLIC, scope=closed, media="text/html")
async def page(call: ApiCall) -> Response:
    """Read the UI's page."""
    return _file(call, "index.html")


@get("/ui", "ui.open", {302: None}, access=PUBLIC, scope=closed)
async def begin(_: ApiCall) -> Response:
    """Redirect to the UI's page."""
    return Response(302, headers=((b"location", b"/"), UNCACHED))


@get("/ui/{file}", "ui.file", str, access=PUBLIC, scope=closed, media="*/*", refuses=(NotFound,))
async def file(call: ApiCall) -> Response:
    """Read a file of the UI, or the UI's page for an address that the page itself handles, such as /ui/jobs/nightly.

    A browser that requests an unknown address also gets the page, which shows that the address is unknown.
    """
    name = call.path("file").lstrip("/")
    return _file(call, "index.html" if name.partition("/")[0] in PAGES | {""} else name)
