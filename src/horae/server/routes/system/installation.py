"""The installation: its store, the backup of a SQLite store, and its servers.

The server makes the backup, because no other process may open a SQLite store while it runs.
"""

from typing import Annotated
from uuid import UUID

from msgspec import Meta

from horae.errors import Conflict
from horae.model.base.instant import format_instant
from horae.model.base.store_view import StoreView
from horae.model.base.view import CompleteList, Time, View
from horae.model.fleet.server import KEYLESS, ServerProcess
from horae.server.access import INSTALLATION, OVERSEE
from horae.server.call import ApiCall
from horae.server.reply import Response, ok
from horae.server.route import API, REQUEST, get
from horae.server.scopes import closed
from horae.server.streaming.download import Download


@get(f"{API}/store", "store.get", StoreView, access=OVERSEE, scope=closed)
async def get_store(call: ApiCall) -> Response:
    """Read the store's kind, revision, settings and sealed data, and the problem of the archive, if there is one."""
    return ok(await call.node.report())


@get(
    f"{API}/backup", "backup.read", bytes,
    access=INSTALLATION, scope=closed, audit=REQUEST, media="application/vnd.sqlite3", refuses=(Conflict,),
)  # fmt: skip
async def take_backup(call: ApiCall) -> Response:
    """Read a copy of the whole SQLite store at one instant; the server continues meanwhile."""
    return Download(await call.node.tenancy.backups.take(), b"application/vnd.sqlite3")


class ServerView(View, frozen=True, kw_only=True):
    """A server of this installation."""

    server_id: UUID
    url: str
    host: str
    pid: int
    version: str
    roles: Annotated[tuple[str, ...], Meta(description="The roles of the server: api, gateway, scheduler.")]
    lacks_master_key: Annotated[
        bool, Meta(description="The server cannot decrypt sealed data, and grants no executions that need secrets.")
    ] = False
    started_at: Time
    last_heartbeat: Time

    @classmethod
    def of(cls, server: ServerProcess) -> "ServerView":
        return cls(
            server_id=server.id, url=server.url, host=server.host, pid=server.pid, version=server.version,
            roles=tuple(role for role in server.roles if role != KEYLESS),
            lacks_master_key=KEYLESS in server.roles, started_at=format_instant(server.started_at),
            last_heartbeat=format_instant(server.last_seen),
        )  # fmt: skip


@get(f"{API}/servers", "servers.list", CompleteList[ServerView], access=OVERSEE, scope=closed)
async def list_servers(call: ApiCall) -> Response:
    """List the servers with a recent heartbeat."""
    return ok(CompleteList(items=[ServerView.of(server) for server in await call.node.fleet.presence.servers()]))
