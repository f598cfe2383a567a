"""The UI's files, as they lie in the package."""

from functools import cache
from importlib.resources import files

from horae.errors import NotFound
from horae.server.call import Call
from horae.server.reply import Reply
from horae.server.route import get

KINDS = {
    "html": b"text/html; charset=utf-8",
    "css": b"text/css; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "svg": b"image/svg+xml",
    "json": b"application/json",
}
FRESH = ((b"cache-control", b"no-cache"),)


@cache
def _files() -> dict[str, bytes]:
    """Every file there is, by its path: what a client names is looked up here and never opened."""
    found: dict[str, bytes] = {}
    folders = [("", files("horae.ui"))]
    for prefix, folder in folders:
        for entry in folder.iterdir():
            if entry.is_dir():
                folders.append((f"{prefix}{entry.name}/", entry))
            elif entry.name.rpartition(".")[2] in KINDS:
                found[prefix + entry.name] = entry.read_bytes()
    return found


def _file(name: str) -> Reply:
    content = _files().get(name)
    if content is None:
        raise NotFound("There is no such page.", "Begin at /.")
    return Reply(200, content, KINDS[name.rpartition(".")[2]], FRESH)


@get("/", "ui.page", str, media="text/html")
async def page(call: Call) -> Reply:
    """Read the UI's page."""
    return _file("index.html")


@get("/ui/{file}", "ui.file", str, media="*/*", refuses=(NotFound,))
async def file(call: Call) -> Reply:
    """Read a file of the UI."""
    return _file(call.path("file").lstrip("/"))
