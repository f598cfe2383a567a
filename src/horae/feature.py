"""The sockets of a feature: everything by which it joins the kernel, declared once in the feature's `__init__`.

Targets are named as "module:object" and imported when they are needed, so that a list of features costs no start-up.
*Installed is not enabled*: a feature that is switched off keeps its tables, and backups, moves and deletions of
namespaces still cover them; its services, routes and metrics are absent.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

Target = str


@dataclass(frozen=True, kw_only=True)
class Feature:
    """What a server can do beside running executions, and where its objects are."""

    name: str
    about: str  # in one line
    required: bool = False  # cannot be switched off
    uses: tuple[str, ...] = ()  # features that it imports
    part: Target = ""  # a `Part`, made with the node; the parts of the features it uses are made before
    users: Target = ""  # who signs in with cookies of their own: `UserSessions` for an environment, a store, settings
    sealed: Target = ""  # a `SealedKind`: values that are sealed with the master key
    check_place: Target = ""  # refuses places that must not be watched: a `CheckPlace` for settings


def load(target: Target) -> Any:
    """Import the object that a target names."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def installed() -> tuple[Feature, ...]:
    """Return every feature that this package holds, each after those that it uses."""
    found: tuple[Feature, ...] = load("horae.features:INSTALLED")
    return found


def served(settings: tuple[str, ...] = ()) -> tuple[Feature, ...]:
    """Return the features that are left when settings such as `-alerts` switch some off."""
    off = {name.removeprefix("-") for name in settings}
    return tuple(feature for feature in installed() if feature.name not in off)
