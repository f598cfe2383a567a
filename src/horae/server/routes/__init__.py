"""The routes, one module per noun; `ROUTES` is all of them. A route parses, calls the engine and renders."""

from horae.server.route import Route
from horae.server.routes import (
    audit,
    backfills,
    backup,
    calendars,
    clock,
    dlq,
    events,
    executions,
    fires,
    health,
    hooks,
    jobs,
    keys,
    me,
    metrics,
    openapi,
    queues,
    servers,
    sessions,
    store,
    stream,
    triggers,
    ui,
    workers,
)

MODULES = (
    health,
    me,
    jobs,
    triggers,
    fires,
    calendars,
    backfills,
    executions,
    events,
    hooks,
    dlq,
    sessions,
    workers,
    queues,
    servers,
    keys,
    store,
    audit,
    backup,
    clock,
    stream,
    metrics,
    openapi,
    ui,
)
ROUTES: tuple[Route, ...] = tuple(
    route for module in MODULES for route in vars(module).values() if isinstance(route, Route)
)
