"""Generated parts of docs/: `python -m tests.docs.tables` writes them into their pages.

A part is between `<!-- begin NAME -->` and `<!-- end NAME -->`; the text around it is written by hand.
"""

import asyncio
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, get_origin

from prometheus_client import CollectorRegistry

from horae.config.server_settings import DurationSetting, Secret
from horae.config.settings import TABLE, Setting
from horae.config.show import plain
from horae.engine.server_node import ServerNode
from horae.env import system_env
from horae.feature import installed
from horae.model.executions.gates import GATES, About
from horae.model.tenancy.principal import ROLES
from horae.server.access import ANY_CREDENTIAL, PUBLIC
from horae.server.metrics.exposition import Metrics
from horae.server.openapi import build
from horae.server.route import Route
from horae.server.routes.table import ROUTES
from horae.server.scopes import closed
from tests.docs.field_tables import (
    defaults_of_jobs,
    fields_of_alert_rules,
    fields_of_backfills,
    fields_of_calendars,
    fields_of_jobs,
    fields_of_namespaces,
    fields_of_queues,
    fields_of_quotas,
    fields_of_rollouts,
    fields_of_steps,
    fields_of_submissions,
    fields_of_templates,
    fields_of_workflows,
    kinds_of_alert_rules,
    kinds_of_channels,
    kinds_of_policies,
    kinds_of_steps,
    kinds_of_triggers,
    rules_of_triggers,
)

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MODULES = tuple(dict.fromkeys(sys.modules[route.run.__module__] for route in ROUTES))
SUCCESS = range(200, 300)
COMMON = {400, 401, 403, 413, 422, 429, 500, 503}  # statuses of nearly every route, listed once above the tables


def routes() -> str:
    """Return every route by noun, from the OpenAPI document."""
    operations = build(ROUTES)["paths"]
    parts = []
    for module in MODULES:
        own = [route for route in ROUTES if route.run.__module__ == module.__name__]
        noun = _noun(module.__name__)
        about = (module.__doc__ or "").partition("\n")[0]
        rows = [_route(route, operations[route.path][route.method.lower()]) for route in own]
        head = "| route | what it does | parameters | answers | for |\n|---|---|---|---|---|"
        parts.append("\n".join([f"### {noun}\n", f"{about}\n", head, *rows, ""]))
    return "\n".join(parts)


def _noun(module: str) -> str:
    """Return the heading of a module's routes: the feature's name, and `hooks` for webhooks."""
    *_, room, name = module.split(".")
    return room if name == "routes" else name.removesuffix("_routes")


def _route(route: Route, operation: dict[str, object]) -> str:
    parameters = [p["name"] for p in operation["parameters"] if p["in"] in ("query", "header")]  # type: ignore[attr-defined]
    statuses = [int(status) for status in operation["responses"]]  # type: ignore[attr-defined]
    good = ", ".join(f"**{status}**" for status in statuses if status in SUCCESS)
    own = {429} & {error.status for error in route.refuses}  # for another reason than the rate of a key
    left_out = COMMON.union(SUCCESS) - own
    bad = ", ".join(str(status) for status in statuses if status not in left_out)
    cells = [
        f"`{route.method} {route.path}`",
        route.summary,
        ", ".join(f"`{name}`" for name in parameters),
        f"{good}; {bad}" if bad else good,
        _roles(route),
    ]
    return f"| {' | '.join(cells)} |"


def _roles(route: Route) -> str:
    may = route.access
    if may in (PUBLIC, ANY_CREDENTIAL):
        return "everybody" if may is PUBLIC else "any credential"
    return f"{may.least}, `{may.permission}`" if may.permission else may.least


def metrics() -> str:
    """Return every metric of a server."""
    return "\n".join(["| metric | type | labels | meaning |", "|---|---|---|---|", *_metrics()])


def _metrics() -> Iterator[str]:
    rows = {}
    for collector in asyncio.run(_registry())._collector_to_names:
        for family in collector.collect():
            name = f"{family.name}_total" if family.type == "counter" else family.name
            labels = getattr(collector, "_labelnames", None) or getattr(family, "_labelnames", ())
            own = ", ".join(f"`{label}`" for label in labels)
            rows[name] = f"| `{name}` | {family.type} | {own} | {family.documentation} |"
    yield from (rows[name] for name in sorted(rows))


async def _registry() -> CollectorRegistry:
    """Create a server and return its metrics."""
    node = await ServerNode.open(system_env(), "sqlite://")
    try:
        return Metrics(node).registry
    finally:
        await node.stop()


def gates(about: About) -> str:
    """Return every gate of executions, or of jobs, in the order in which it is checked."""
    rows = [f"| `{gate.name}` | {gate.means} | {gate.opens} |" for gate in GATES if about in gate.about]
    return "\n".join(["| gate | closed when | what opens it |", "|---|---|---|", *rows])


def access() -> str:
    """Return every route with its roles and its scope."""
    parts = []
    for module in MODULES:
        own = [route for route in ROUTES if route.run.__module__ == module.__name__]
        noun = _noun(module.__name__)
        head = f"| method | path | {' | '.join(ROLES)} | with a scope |\n|---|---|{'---|' * (len(ROLES) + 1)}"
        parts.append("\n".join([f"### {noun}\n", head, *map(_access, own), ""]))
    return "\n".join(parts)


def _access(route: Route) -> str:
    may = route.access
    if may is PUBLIC:
        cells = ["public"] * len(ROLES)
    else:
        word = f"`{may.permission}`" if may.permission else "yes"
        cells = [word if role in may.roles else "" for role in ROLES]
    scope = "" if route.scope is closed else (route.scope.__doc__ or "").partition(".")[0]
    return f"| {' | '.join([route.method, f'`{route.path}`', *cells, scope])} |"


def features() -> str:
    """Return every feature, with the features that it needs."""
    rows = [
        f"| `{one.name}` | {one.about} | {'' if one.required else f'`-{one.name}`'} |"
        f" {', '.join(f'`{needed}`' for needed in one.needs)} |"
        for one in sorted(installed(), key=lambda one: one.name)
    ]
    return "\n".join(["| feature | what it does | switched off by | needs |", "|---|---|---|---|", *rows])


def settings() -> str:
    """Return every setting with its variable, type, default and meaning."""
    lines = ["| setting | variable | type | default | meaning |", "|---|---|---|---|---|"]
    for setting in TABLE.values():
        default = f"`{_value(setting.default)}`" if _value(setting.default) else ""
        cells = f"`{setting.name}`", f"`{setting.variable}`", _type(setting), default, setting.meaning
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _value(value: Any) -> str:
    """Return a setting's value in the form of an environment variable, with secrets masked."""
    shown = plain(value)
    if isinstance(shown, dict):
        return ",".join(f"{key}={item}" for key, item in shown.items())
    return ",".join(shown) if isinstance(shown, list) else str(shown)


def _type(setting: Setting) -> str:
    """Return a setting's type in a word or two."""
    if get_origin(getattr(setting.type, "__origin__", setting.type)) is Literal:
        return "one of a few words"
    kinds = {
        DurationSetting: "duration",
        Secret: "secret text",
        bool: "yes or no",
        int: "number",
        tuple: "list",
        dict: "pairs",
    }
    kinds[type(Path())] = "path"
    return kinds.get(type(setting.default), "text")


PARTS: dict[str, tuple[str, Callable[[], str]]] = {
    "fields of a job": ("rest.md", fields_of_jobs),
    "fields of a submission": ("rest.md", fields_of_submissions),
    "fields of a workflow": ("workflows.md", fields_of_workflows),
    "what a step does": ("workflows.md", kinds_of_steps),
    "fields of a step": ("workflows.md", fields_of_steps),
    "fields of a queue": ("queues.md", fields_of_queues),
    "kinds of policies": ("queues.md", kinds_of_policies),
    "fields of a backfill": ("backfills.md", fields_of_backfills),
    "fields of a template": ("templates.md", fields_of_templates),
    "fields of a rollout": ("versions.md", fields_of_rollouts),
    "fields of a namespace": ("namespaces.md", fields_of_namespaces),
    "defaults of jobs": ("namespaces.md", defaults_of_jobs),
    "fields of a quota": ("quotas.md", fields_of_quotas),
    "fields of a calendar": ("calendars.md", fields_of_calendars),
    "kinds of triggers": ("triggers.md", kinds_of_triggers),
    "rules of triggers": ("triggers.md", rules_of_triggers),
    "fields of alert rules": ("alerts.md", fields_of_alert_rules),
    "kinds of alert rules": ("alerts.md", kinds_of_alert_rules),
    "kinds of channels": ("alerts.md", kinds_of_channels),
    "routes": ("rest.md", routes),
    "access": ("access.md", access),
    "metrics": ("metrics.md", metrics),
    "features": ("configuration.md", features),
    "settings": ("configuration.md", settings),
    "gates of executions": ("explain.md", lambda: gates("execution")),
    "gates of jobs": ("explain.md", lambda: gates("job")),
}


def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- begin {name} -->\n)(.*?)(<!-- end {name} -->)", re.DOTALL)


def written(name: str) -> str:
    """Return the present content of a part."""
    page, _ = PARTS[name]
    found = _pattern(name).search((DOCS / page).read_text())
    assert found, f"docs/{page} lacks <!-- begin {name} --> and <!-- end {name} -->."
    return found[2].strip("\n")


def write(name: str) -> None:
    """Write a part into its page."""
    page, make = PARTS[name]
    path = DOCS / page
    path.write_text(_pattern(name).sub(lambda found: f"{found[1]}\n{make().strip()}\n\n{found[3]}", path.read_text()))


if __name__ == "__main__":
    for part in PARTS:
        write(part)
