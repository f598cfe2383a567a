"""The sockets of a feature: everything by which it joins the kernel, declared once in the feature's `__init__`.

Targets are named as "module:object" and imported when they are needed, so that a list of features costs no start-up.

*Installed is not enabled.* The setting `features` switches features off, as `["-alerts"]`. What a feature keeps goes by
what is installed: its tables, and with them backups, moves, deletions and erasures of namespaces, and re-sealing. So do
the documents and the commands. What a feature does goes by what is on: its part, sweep, routes, metrics and pages.

| socket | what hangs in it |
|---|---|
| `part` | A `Part` made with the node: objects, services, subscribers to topics. |
| `routes` | Modules of routes, each with the kernel's module of routes that it stands after in documents. |
| `metrics` | A `FeatureMetrics`: families of what this server counted, gauges of what the store knows. |
| `commands` | Rows of commands, in a section of `horae --help` or under a group of the kernel's (`jobs stats`). |
| `pages` | The first parts of addresses in the UI that show it; `ui/core/pages.js` names the feature beside the page. |
| `topics` | Topics of `/stream`, each with the kind of its events. |
| `show_job` | Tells people more of a job after `horae jobs show`. |
| `open_tracer`, `open_sink` | Where a server, or a worker, sends spans: both go by settings. |
| `tables` | The module that declares its tables. |
| `holdings` | What becomes of its rows when a namespace is deleted, or erased: a `Holdings`. |
| `sweep` | Forgets rows that are older than they are kept: a `Sweep`. |
| `templates` | What jobs are made from: a `TemplateSource`. |
| `ended_counts` | How many executions ended in each hour: an `EndedCounts`. |
| `audit` | Records changes, sign-ins and refusals: an `AuditTrail`. |
| `users` | Signs users in with cookies of their own: `UserSessions`. |
| `secrets` | Refuses to delete a secret that the feature refers to: a `RefuseDeletion`. |
| `sealed` | Values that are sealed with the master key: a `SealedKind`. |
| `check_place` | Refuses places that must not be watched: a `CheckPlace`. |

A kernel route that shows something of a feature asks for a part by the kernel's own type: `node.find(ListsJobs)`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from horae.errors import BadInput, NotFound

Target = str


@dataclass(frozen=True)
class Routes:
    """A module of routes; in documents it stands after a module of the kernel, beside other features there."""

    module: str
    after: str  # the module's last name: "jobs"


@dataclass(frozen=True)
class Command:
    """A command: `path` is "alerts", or "jobs stats" for one under a group of the kernel."""

    path: str
    target: Target
    help: str = ""  # in `horae --help`
    section: str = ""  # of `horae --help`
    after: str = ""  # the kernel's command that it follows there; first without one

    @property
    def name(self) -> str:
        return self.path.rpartition(" ")[2]

    @property
    def group(self) -> str:
        return self.path.rpartition(" ")[0]


@dataclass(frozen=True, kw_only=True)
class Feature:
    """What a server can do beside running executions, and where its objects are."""

    name: str
    about: str  # in one line
    required: bool = False  # cannot be switched off
    uses: tuple[str, ...] = ()  # features that it imports, which may be off
    needs: tuple[str, ...] = ()  # those of them without which it does not work
    tables: str = ""  # the module that declares them
    holdings: Target = ""  # a `Holdings`
    sweep: Target = ""  # (ages) -> a script: `Sweep`
    templates: Target = ""  # (env, store) -> `TemplateSource`
    ended_counts: Target = ""  # an `EndedCounts`
    part: Target = ""  # made with the node, after the parts of the features it needs
    routes: tuple[Routes, ...] = ()
    metrics: Target = ""  # made with the node
    commands: tuple[Command, ...] = ()
    pages: tuple[str, ...] = ()
    topics: tuple[tuple[str, str], ...] = ()  # the topic of a stream, and the kind of its events
    show_job: Target = ""  # `async (api, job)`
    open_tracer: Target = ""  # (endpoint, environ, env) -> `Tracer | None`
    open_sink: Target = ""  # (endpoint, service, environ) -> `Sink | None`
    audit: Target = ""  # (env, store, sealer) -> `AuditTrail`
    users: Target = ""  # (env, store, settings) -> `UserSessions`
    secrets: Target = ""  # (store, namespace, name): `RefuseDeletion`
    sealed: Target = ""  # (env, store, sealer, secrets) -> `SealedKind`
    check_place: Target = ""  # (settings) -> `CheckPlace`


def load(target: Target) -> Any:
    """Import the object that a target names."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def installed() -> tuple[Feature, ...]:
    """Return every feature that this package holds, each after those that it uses."""
    found: tuple[Feature, ...] = load("horae.features:INSTALLED")
    return found


def served(settings: Sequence[str] = ()) -> tuple[Feature, ...]:
    """Return the features that are left when a setting such as `["-alerts"]` switches some off. Raises BadInput."""
    off = {_switched(text) for text in settings}
    left = tuple(feature for feature in installed() if feature.name not in off)
    for feature in left:
        if missing := sorted(off.intersection(feature.needs)):
            remedy = f'Switch it off as well with "-{feature.name}", or leave "-{missing[0]}" out.'
            raise BadInput(f"The feature {feature.name} needs {' and '.join(missing)}.", remedy, field="features")
    return left


def optional() -> list[str]:
    """Return the names of the features that can be switched off."""
    return [feature.name for feature in installed() if not feature.required]


def switched_off(name: str) -> NotFound:
    """Return the refusal of what only a feature could do that is off."""
    remedy = f'Remove "-{name}" from the setting `features` of the server, and start it again.'
    return NotFound(f"The feature {name} is switched off on this server.", remedy, feature=name)


def _switched(text: str) -> str:
    """Return the name of the feature that a part of the setting switches off."""
    name, known = text.removeprefix("-"), [feature.name for feature in installed()]
    if name not in known:
        raise BadInput(f'"{text[:60]}" names no feature.{_meant(name)}', _choices(), field="features")
    if name not in optional():
        raise BadInput(f"The feature {name} cannot be switched off.", _choices(), field="features")
    if name == text:
        remedy = f'Every feature is on by itself. To switch this one off, write "-{name}".'
        raise BadInput(f'"{text}" switches nothing.', remedy, field="features")
    return name


def _meant(name: str) -> str:
    import difflib

    close = difflib.get_close_matches(name.lower().replace("-", "_"), optional(), n=1)
    return f' Did you mean "-{close[0]}"?' if close else ""


def _choices() -> str:
    return f"Write some of: {', '.join(f'-{name}' for name in sorted(optional()))}."
