"""Servers: the processes that answer, schedule and hand out work."""

from horae.engine.presence import SILENT
from horae.model.view import Page
from horae.server.call import Call
from horae.server.reply import Reply, ok
from horae.server.route import API, get
from horae.server.views import ServerView
from horae.store.moves import sessions


@get(f"{API}/servers", "servers.list", Page[ServerView])
async def list_servers(call: Call) -> Reply:
    """List the servers that were heard of lately."""
    since = call.node.env.now() - SILENT
    servers = await call.node.store.read(lambda: sessions.servers(since))
    return ok(Page(items=[ServerView.of(server) for server in servers]))
