"""Servers: the processes that answer, schedule and hand out work."""

from typing import Annotated
from uuid import UUID

from msgspec import Meta

from horae.engine.base.presence import SILENT
from horae.model.base.instant import format_instant
from horae.model.base.view import Time, View, Whole
from horae.server.access import OVERSEE
from horae.server.call import Call
from horae.server.reply import Reply, ok
from horae.server.route import API, get
from horae.server.scopes import closed
from horae.store.fleet import sessions
from horae.store.fleet.sessions import Server


class ServerView(View, frozen=True, kw_only=True):
    """A server of this installation."""

    server_id: UUID
    url: str
    host: str
    pid: int
    version: str
    parts: Annotated[tuple[str, ...], Meta(description="What it runs: api, gateway, scheduler.")]
    lacks_master_key: Annotated[
        bool, Meta(description="It cannot open what is sealed here, and hands out no work that needs secrets.")
    ] = False
    started_at: Time
    last_heartbeat: Time

    @classmethod
    def of(cls, server: Server) -> "ServerView":
        return cls(
            server_id=server.id, url=server.url, host=server.host, pid=server.pid, version=server.version,
            parts=tuple(part for part in server.parts if part != sessions.KEYLESS),
            lacks_master_key=sessions.KEYLESS in server.parts, started_at=format_instant(server.started_at),
            last_heartbeat=format_instant(server.last_seen),
        )  # fmt: skip


@get(f"{API}/servers", "servers.list", Whole[ServerView], access=OVERSEE, scope=closed)
async def list_servers(call: Call) -> Reply:
    """List the servers that were heard of lately."""
    since = call.node.env.now() - SILENT
    servers = await call.node.store.read(lambda: sessions.servers(since))
    return ok(Whole(items=[ServerView.of(server) for server in servers]))
