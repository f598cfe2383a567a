"""The list of every route: those of the kernel, declared by the modules beside this one, and those of features.

`ROUTES` has all installed routes, for documents and tests. `routes_for` selects the routes of one server.
"""

from collections.abc import Collection, Iterator
from importlib import import_module
from types import ModuleType

from msgspec import structs

from horae.feature import Feature, installed, switched_off
from horae.server.access import ANY_CREDENTIAL
from horae.server.call import ApiCall
from horae.server.reply import Response
from horae.server.route import UNRECORDED, Route
from horae.server.routes import workflows
from horae.server.routes.admission import circuits, holds, queues
from horae.server.routes.definitions import apply, jobs, versions
from horae.server.routes.executions import executions
from horae.server.routes.fleet import autoscale, enrolments, sessions, workers
from horae.server.routes.system import health, installation, openapi, stream, ui
from horae.server.routes.tenancy import keys, master_key, me, namespaces, secrets
from horae.server.routes.triggers import calendars, fires, triggers
from horae.server.scopes import unscoped

KERNEL = (
    health,
    me,
    jobs,
    versions,
    apply,
    triggers,
    fires,
    calendars,
    executions,
    workflows,
    circuits,
    sessions,
    workers,
    autoscale,
    queues,
    holds,
    keys,
    secrets,
    master_key,
    enrolments,
    namespaces,
    installation,
    stream,
    openapi,
    ui,
)


def _composed() -> Iterator[tuple[ModuleType, str]]:
    """Yield each module of routes with the name of its feature, or "" for the kernel.

    The modules of a feature follow the kernel module that they name as `after`.
    """
    rows = [(feature.name, row) for feature in installed() for row in feature.routes]
    for module in KERNEL:
        yield module, ""
        own = module.__name__.rpartition(".")[2]
        for name, row in rows:
            if row.after == own:
                yield import_module(row.module), name


_OWNED = tuple(
    (route, feature) for module, feature in _composed() for route in vars(module).values() if isinstance(route, Route)
)
ROUTES: tuple[Route, ...] = tuple(route for route, _ in _OWNED)


def routes_for(features: Collection[Feature]) -> tuple[list[Route], list[Route]]:
    """Return the routes of a server with these features, and for each route of another feature a refusing route."""
    on = {"", *(feature.name for feature in features)}
    served = [route for route, feature in _OWNED if feature in on]
    return served, [_refusing(route, feature) for route, feature in _OWNED if feature not in on]


def _refusing(route: Route, feature: str) -> Route:
    """Return a route at the same path that answers every caller that its feature is off."""

    async def run(call: ApiCall) -> Response:
        raise switched_off(feature)

    return structs.replace(
        route, run=run, access=route.access if route.is_public else ANY_CREDENTIAL, scope=unscoped, audit=UNRECORDED,
        idempotency=None, body=None, body_type=None, query=None,
    )  # fmt: skip
