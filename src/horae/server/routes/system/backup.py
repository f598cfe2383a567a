"""The backup of a SQLite store. The server makes it, because no other process may open the store while it runs."""

from horae.errors import Conflict
from horae.server.access import INSTALLATION
from horae.server.call import ApiCall
from horae.server.reply import Response
from horae.server.route import API, REQUEST, get
from horae.server.scopes import closed
from horae.server.streaming.download import Download


@get(
    f"{API}/backup", "backup.read", bytes,
    access=INSTALLATION, scope=closed, audit=REQUEST, media="application/vnd.sqlite3", refuses=(Conflict,),
)  # fmt: skip
async def read(call: ApiCall) -> Response:
    """Read a copy of the whole SQLite store at one instant; the server continues meanwhile."""
    return Download(await call.node.tenancy.backups.take(), b"application/vnd.sqlite3")
