"""An administrator's client of a server in memory."""

from tests.server.conftest import api, app, clock, connect, env, node, tracer

__all__ = ["api", "app", "clock", "connect", "env", "node", "tracer"]
