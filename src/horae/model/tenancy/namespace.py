"""A namespace: a tenant. What it is called, how much it weighs beside others, and what holds for all that is in it."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct

from horae.env import Instant, Micros
from horae.model.admission.policy import Policy
from horae.model.definitions.job import JOB

FOREVER: Micros = 10**17  # longer than anything is kept
DEFAULT_NAMESPACE = "default"  # the one that every store begins with
NamespaceState = Literal["active", "erasing", "deleted"]
Outcome = Literal["success", "failed", "cancelled", "skipped"]
OUTCOMES: tuple[Outcome, ...] = ("success", "failed", "cancelled", "skipped")
# What a namespace may say for jobs that do not say it themselves.
DEFAULTS = JOB.where(lambda field: field.namespaced)
_TRIES = frozenset({"retries", "retry"})
_OF_WORKERS = _TRIES | {"timeout", "grace"}  # says nothing of a workflow, or something else
# A default stands back where the job says the same in another way; how often and how soon it is tried go together.
_INSTEAD = {"retries": ("retry",), "retry": ("retries",), "timeout": ("timeouts",)}


class NamespaceSpec(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What a user says about a namespace beside its name, its weight and its queues' policy."""

    description: str = ""
    retention: dict[Outcome, Micros] = {}  # how long ended executions are kept, where it is not as everywhere
    defaults: dict[str, Any] = {}  # of jobs, as a job would say it
    archive: tuple[Outcome, ...] = ()  # what goes to the archive when it is not kept any more


class Namespace(Struct, frozen=True, kw_only=True):
    """A namespace as it stands."""

    id: int
    name: str
    weight: float = 1.0  # of what servers do for all namespaces, against that of others
    policy: Policy | None = None  # of its queues that say nothing of one
    spec: NamespaceSpec = NamespaceSpec()
    state: NamespaceState = "active"
    created_at: Instant = 0
    updated_at: Instant = 0


def with_defaults(body: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """A job's definition with what its namespace says where the job says nothing; tags are added to the job's own."""
    given = dict(body)
    for name, value in defaults.items():
        if name == "tags":
            given["tags"] = _tags(value) | _tags(given.get("tags"))
        elif body.get(name) is None and _says(body, name):
            given[name] = value
    return given


def _says(given: Mapping[str, Any], name: str) -> bool:
    """Whether a default means something for this job."""
    if any(given.get(other) is not None for other in _INSTEAD.get(name, ())):
        return False
    if name in _TRIES and given.get("delivery") == "at-most-once":
        return False
    return not (name in _OF_WORKERS and given.get("workflow") is not None)


def _tags(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    return dict.fromkeys(value, "") if isinstance(value, Iterable) and not isinstance(value, str) else {}


class Retention(Struct, frozen=True):
    """How long ended executions are kept: everywhere, and where namespaces say otherwise."""

    everywhere: Micros
    rules: Mapping[int, Mapping[Outcome, Micros]] = {}

    def leaving_out(self, namespaces: Iterable[int]) -> "Retention":
        """The same, but what these namespaces hold is never over."""
        forever = dict.fromkeys(OUTCOMES, FOREVER)
        return Retention(self.everywhere, {**self.rules, **dict.fromkeys(namespaces, forever)})

    def only(self, namespace: int) -> "Retention":
        """The same for one namespace; what others hold is never over."""
        return Retention(FOREVER, {namespace: {outcome: self.of(namespace, outcome) for outcome in OUTCOMES}})

    def of(self, namespace: int, outcome: Outcome) -> Micros:
        return self.rules.get(namespace, {}).get(outcome, self.everywhere)

    @property
    def spans(self) -> list[Micros]:
        return [self.everywhere, *(span for rules in self.rules.values() for span in rules.values())]

    @property
    def is_plain(self) -> bool:
        """Whether all is kept equally long."""
        return all(span == self.everywhere for span in self.spans)

    def shortest_of(self, namespace: int) -> Micros:
        """What is older than this may be gone."""
        return min(self.of(namespace, outcome) for outcome in OUTCOMES)

    def longer(self, now: Instant) -> list["Longer"]:
        """What is kept for longer than everywhere else, and since when it ended."""
        return [
            (namespace, outcome, max(now - span, 0))
            for namespace, rules in sorted(self.rules.items())
            for outcome, span in sorted(rules.items())
            if span > self.everywhere
        ]

    def is_over(self, ends: Iterable["Ends"], now: Instant) -> bool:
        """Whether executions that were made together are all kept long enough: they go together."""
        return all(at < now - self.of(namespace, outcome) for namespace, outcome, at in ends)


Longer = tuple[int, Outcome, Instant]
Ends = tuple[int, Outcome, Instant]  # executions of a namespace that ended so, the last of them then
