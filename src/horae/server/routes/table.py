"""List every route: `ROUTES` is what all the modules beside this one declare."""

from horae.features.alerts import routes as alerts
from horae.features.artifacts import routes as artifacts
from horae.features.audit_log import routes as audit
from horae.features.backfills import routes as backfills
from horae.features.dead_letters import routes as dlq
from horae.features.erasure import routes as erasures
from horae.features.events import hook_routes as hooks
from horae.features.events import routes as events
from horae.features.rollouts import routes as rollouts
from horae.features.statistics import overview_routes as overview
from horae.features.statistics import routes as statistics
from horae.features.templates import routes as templates
from horae.features.users import routes as users
from horae.features.users import sign_in_routes as sign_in
from horae.server.route import Route
from horae.server.routes.admission import circuits, holds, queues
from horae.server.routes.definitions import apply, jobs, limits, versions, yaml
from horae.server.routes.executions import executions, explain, signals
from horae.server.routes.fleet import autoscale, enrolments, sessions, workers
from horae.server.routes.system import backup, clock, health, metrics, openapi, servers, store, stream, ui
from horae.server.routes.tenancy import keys, me, namespaces, secrets
from horae.server.routes.triggers import calendars, fires, triggers
from horae.server.routes.workflows import steps, workflows

MODULES = (
    health,
    me,
    sign_in,
    overview,
    jobs,
    statistics,
    versions,
    limits,
    rollouts,
    templates,
    apply,
    triggers,
    fires,
    calendars,
    backfills,
    executions,
    erasures,
    artifacts,
    workflows,
    signals,
    steps,
    explain,
    circuits,
    alerts,
    events,
    hooks,
    dlq,
    sessions,
    workers,
    autoscale,
    queues,
    holds,
    servers,
    keys,
    users,
    secrets,
    enrolments,
    namespaces,
    store,
    audit,
    backup,
    clock,
    yaml,
    stream,
    metrics,
    openapi,
    ui,
)
ROUTES: tuple[Route, ...] = tuple(
    route for module in MODULES for route in vars(module).values() if isinstance(route, Route)
)
