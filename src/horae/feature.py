"""The sockets of a feature: all points at which it connects to the kernel, declared once in the feature's `__init__`.

A socket names its target as "module:object". Targets are imported when needed, so that the list of features costs
nothing at start-up.

*Installed is not enabled.* The setting `features` switches features off, as in `["-alerts"]`. An installed feature
always has its tables, its documentation and its commands. So backups and moves of the store, the deletion and erasure
of namespaces, and re-sealing include its rows even while it is switched off. Its part, sweep, routes, metrics and pages
exist only while it is enabled.

| socket | content |
|---|---|
| `part` | A `ServerPart`: objects, services, subscribers to topics. It is created with the node. |
| `routes` | Modules of routes, each with the kernel's module of routes after which the API documentation lists it. |
| `metrics` | A `FeatureMetrics`: counters of this server, and gauges of values in the store. |
| `commands` | Commands, in a section of `horae --help` or in a group of the kernel (`jobs stats`). |
| `pages` | The first path segments of its UI pages; `ui/core/pages.js` names the feature beside the page. |
| `topics` | Topics of `/stream`, each with the kind of its events. |
| `show_job` | Adds output to `horae jobs show`. |
| `open_tracer`, `open_sink` | The destination of a server's or worker's spans, from settings. |
| `tables` | The module that declares its tables. |
| `holdings` | The handling of its rows when a namespace is deleted or erased: a `Holdings`. |
| `sweep` | Deletes rows after their retention: a `Sweep`. |
| `templates` | The templates of jobs: a `TemplateSource`. |
| `ended_counts` | The number of executions that ended in each hour: an `EndedCounts`. |
| `audit` | Records changes, sign-ins and refusals: an `AuditTrail`. |
| `users` | Signs users in with its own cookies: `UserSessions`. |
| `secrets` | Refuses to delete a secret that the feature uses: a `RefuseDeletion`. |
| `sealed` | Values that are sealed with the master key: a `SealedKind`. |
| `check_place` | Refuses folders and buckets that must not be watched: a `CheckPlace`. |

A kernel route that shows data of a feature finds the feature's part by a type that the kernel declares, as in
`node.find(JobStatisticsPart)`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from horae.errors import BadInput, NotFound

Target = str


@dataclass(frozen=True)
class Routes:
    """A module of routes, and the kernel's module after which the API documentation lists it."""

    module: str
    after: str  # last part of the name of the kernel's module: "jobs"


@dataclass(frozen=True)
class Command:
    """A command of the CLI. `path` is "alerts", or "jobs stats" for a command in a group of the kernel."""

    path: str
    target: Target
    help: str = ""  # in `horae --help`
    section: str = ""  # the section of `horae --help` that lists it
    after: str = ""  # the kernel's command that it follows in that section; empty: it is the first

    @property
    def name(self) -> str:
        return self.path.rpartition(" ")[2]

    @property
    def group(self) -> str:
        return self.path.rpartition(" ")[0]


@dataclass(frozen=True, kw_only=True)
class Feature:
    """A part of Horae outside the kernel, such as alerts, and the objects by which it joins the kernel."""

    name: str
    about: str  # description in one line
    required: bool = False  # cannot be switched off
    uses: tuple[str, ...] = ()  # features that it imports; they may be switched off
    needs: tuple[str, ...] = ()  # the features among them that must be enabled
    tables: str = ""  # the module that declares its tables
    holdings: Target = ""  # a `Holdings`
    sweep: Target = ""  # (cutoffs) -> a script: `Sweep`
    templates: Target = ""  # (env, store) -> `TemplateSource`
    ended_counts: Target = ""  # an `EndedCounts`
    part: Target = ""  # created with the node, after the parts of the features it needs
    routes: tuple[Routes, ...] = ()
    metrics: Target = ""  # created with the node
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
    """Return every feature of this package, each after the features that it uses."""
    found: tuple[Feature, ...] = load("horae.features:INSTALLED")
    return found


def enabled(settings: Sequence[str] = ()) -> tuple[Feature, ...]:
    """Return the features that a setting such as `["-alerts"]` leaves enabled.

    Raises BadInput for an entry that is not valid, or if an enabled feature needs one that is switched off.
    """
    off = {_switched(text) for text in settings}
    left = tuple(feature for feature in installed() if feature.name not in off)
    for feature in left:
        if missing := sorted(off.intersection(feature.needs)):
            remedy = f'Switch it off as well with "-{feature.name}", or remove "-{missing[0]}".'
            raise BadInput(f"The feature {feature.name} needs {' and '.join(missing)}.", remedy, field="features")
    return left


def optional() -> list[str]:
    """Return the names of the features that can be switched off."""
    return [feature.name for feature in installed() if not feature.required]


def switched_off(name: str) -> NotFound:
    """Return the error for a request that needs a feature that is switched off."""
    remedy = f'Remove "-{name}" from the setting `features` of the server, and start it again.'
    return NotFound(f"The feature {name} is switched off on this server.", remedy, feature=name)


def _switched(text: str) -> str:
    """Return the name of the feature that one entry of the setting switches off."""
    name, known = text.removeprefix("-"), [feature.name for feature in installed()]
    if name not in known:
        raise BadInput(f'"{text[:60]}" names no feature.{_meant(name)}', _choices(), field="features")
    if name not in optional():
        raise BadInput(f"The feature {name} cannot be switched off.", _choices(), field="features")
    if name == text:
        remedy = f'Every feature is on by default. To switch this one off, write "-{name}".'
        raise BadInput(f'"{text}" switches nothing.', remedy, field="features")
    return name


def _meant(name: str) -> str:
    import difflib

    close = difflib.get_close_matches(name.lower().replace("-", "_"), optional(), n=1)
    return f' Did you mean "-{close[0]}"?' if close else ""


def _choices() -> str:
    return f"Write some of: {', '.join(f'-{name}' for name in sorted(optional()))}."
