"""A namespace (a tenant): its name, its weight against others, and the defaults of its jobs and queues."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, get_args

from msgspec import Struct

from horae.env import Instant, Micros
from horae.errors import BadInput
from horae.model.admission.policy import POLICY, Policy
from horae.model.base.duration import DAY, HOUR, format_duration
from horae.model.definitions.job import JOB
from horae.model.definitions.reading.read import parse_definition
from horae.model.fields.kinds import Custom, Number, Text
from horae.model.fields.table import Field, Table
from horae.model.fields.values import a_duration, an_object, refuse_unknown

FOREVER: Micros = 10**17  # longer than any retention
DEFAULT_NAMESPACE = "default"  # exists in every store
NamespaceState = Literal["active", "erasing", "deleted"]
Outcome = Literal["success", "failed", "cancelled", "skipped"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
LONGEST = 4000 * DAY
_EXAMPLE = 'Send an object such as {"description": "Billing", "retention": {"success": "7d"}}.'
_RETENTION = 'Write "30d" for all, or {"success": "7d", "failed": "90d"}.'
# Fields of jobs for which a namespace may set defaults.
DEFAULTS = JOB.where(lambda field: field.namespaced)
_TRIES = frozenset({"retries", "retry"})
_OF_WORKERS = _TRIES | {"timeout", "grace"}  # these have no meaning, or another meaning, for a workflow
# A default does not apply when the job sets a field with the same meaning; `retries` and `retry` belong together.
_INSTEAD = {"retries": ("retry",), "retry": ("retries",), "timeout": ("timeouts",)}


def _read_retention(value: Any, at: str) -> dict[str, int]:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        value = dict.fromkeys(OUTCOMES, value)
    given = an_object(value, at, _RETENTION)
    refuse_unknown(given, OUTCOMES, at, f"{at}.")
    spans = {name: span for name, span in given.items() if span is not None}
    return {name: a_duration(span, f"{at}.{name}", HOUR, LONGEST) for name, span in sorted(spans.items())}


def _write_retention(spans: dict[str, int]) -> dict[str, str]:
    return {outcome: format_duration(span) for outcome, span in spans.items()}


def _read_archive(value: Any, at: str) -> tuple[Outcome, ...]:
    if isinstance(value, bool):
        return OUTCOMES if value else ()
    if not isinstance(value, list | tuple) or not all(one in OUTCOMES for one in value):
        remedy = f"Write true for all, or a list of {', '.join(OUTCOMES)}."
        raise BadInput(f"{at} does not say which executions are archived.", remedy, field=at)
    return tuple(outcome for outcome in OUTCOMES if outcome in value)


def _read_defaults(value: Any, at: str) -> dict[str, Any]:
    """Read defaults for jobs; each default is checked like a job's own field."""
    given = an_object(value, at, 'Write {"retries": 3, "timeout": "1h"}.')
    refuse_unknown(given, DEFAULTS, at, f"{at}.")
    said = {name: part for name, part in given.items() if part is not None}
    try:
        parse_definition({"name": "any", "command": "true", **said}, namespace_name="", created_at=0)
    except BadInput as error:
        error.fields["field"] = f"{at}.{error.fields.get('field', '')}".removesuffix(".")
        raise
    return said


class NamespaceSpec(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The description, retention, archiving and job defaults of a namespace."""

    description: Annotated[str, Field(Text(4096), "What it is for.", example="Billing")] = ""
    retention: Annotated[
        dict[Outcome, int],
        Field(
            Custom(
                _read_retention,
                str | dict[str, str],
                "Span | Mapping[str, Span]",
                _write_retention,
                out=dict[str, str],
                option="repeated",
            ),
            "How long ended executions are kept: one span, or one for each outcome; by default, the servers' setting.",
            example={"success": "7d", "failed": "90d"},
            metavar="SPAN",
        ),
    ] = {}
    archive: Annotated[
        tuple[Outcome, ...],
        Field(
            Custom(_read_archive, bool | list[str], "bool | Sequence[str]", list, out=list[str], option="repeated"),
            "Executions that are archived when their retention ends: true for all, or outcomes.",
            example=["failed"],
            metavar="OUTCOME",
        ),
    ] = ()
    defaults: Annotated[
        dict[str, Any],
        Field(
            Custom(_read_defaults, dict[str, Any], "Mapping[str, Any]", option="pairs"),
            "Values for fields that jobs do not set themselves.",
            example={"retries": 3},
            flag="default",
        ),
    ] = {}


class NamespaceDefinition(NamespaceSpec, frozen=True, kw_only=True):
    """The fields of a namespace's definition, besides its name."""

    weight: Annotated[
        float,
        Field(Number(0.01, 1000), "Its weight against other namespaces, by which servers divide their own work."),
    ] = 1.0
    queue_policy: Annotated[
        Policy | None,
        Field(POLICY, "The policy of queues that set none.", example="fair", metavar="KIND"),
    ] = None

    @property
    def spec(self) -> NamespaceSpec:
        return NamespaceSpec(**{name: getattr(self, name) for name in NamespaceSpec.__struct_fields__})


NAMESPACE = Table(NamespaceDefinition, "A namespace")


class Namespace(Struct, frozen=True, kw_only=True):
    """A stored namespace."""

    id: int
    name: str
    weight: float = 1.0  # its weight against other namespaces, by which servers divide their own work
    policy: Policy | None = None  # the policy of queues that set none
    spec: NamespaceSpec = NamespaceSpec()
    state: NamespaceState = "active"
    created_at: Instant = 0
    updated_at: Instant = 0


def parse_namespace(body: Any) -> NamespaceDefinition:
    """Read a namespace's definition. A null field counts as left out. Raises BadInput."""
    given = an_object(body, "body", _EXAMPLE)
    NAMESPACE.refuse_unknown(given)
    return NamespaceDefinition(**NAMESPACE.read(given))


def merge_namespace(before: Namespace, patch: Any) -> dict[str, Any]:
    """Apply a patch to a namespace's definition; null resets a field to its default."""
    return {**show_namespace(before), **an_object(patch, "body", _EXAMPLE)}


def show_namespace(namespace: Namespace) -> dict[str, Any]:
    """Write a namespace's definition in the form in which users write it."""
    said = {name: getattr(namespace.spec, name) for name in NamespaceSpec.__struct_fields__}
    return NAMESPACE.write(NamespaceDefinition(**said, weight=namespace.weight, queue_policy=namespace.policy))


def with_defaults(body: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Add the namespace's defaults to a job's definition where the job sets nothing; tags are merged."""
    given = dict(body)
    for name, value in defaults.items():
        if name == "tags":
            given["tags"] = _tags(value) | _tags(given.get("tags"))
        elif body.get(name) is None and _default_applies(body, name):
            given[name] = value
    return given


def _default_applies(given: Mapping[str, Any], name: str) -> bool:
    """Return whether a default applies to this job."""
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
    """How long ended executions are kept: `everywhere`, except where a namespace has a rule for an outcome."""

    everywhere: Micros
    rules: Mapping[int, Mapping[Outcome, Micros]] = {}

    def excluding(self, namespaces: Iterable[int]) -> "Retention":
        """Return a retention that keeps everything in these namespaces."""
        forever = dict.fromkeys(OUTCOMES, FOREVER)
        return Retention(self.everywhere, {**self.rules, **dict.fromkeys(namespaces, forever)})

    def only(self, namespace: int) -> "Retention":
        """Return a retention that keeps everything outside this namespace."""
        return Retention(FOREVER, {namespace: {outcome: self.of(namespace, outcome) for outcome in OUTCOMES}})

    def of(self, namespace: int, outcome: Outcome) -> Micros:
        return self.rules.get(namespace, {}).get(outcome, self.everywhere)

    @property
    def spans(self) -> list[Micros]:
        return [self.everywhere, *(span for rules in self.rules.values() for span in rules.values())]

    @property
    def is_plain(self) -> bool:
        """Return whether all ended executions are kept equally long."""
        return all(span == self.everywhere for span in self.spans)

    def shortest_of(self, namespace: int) -> Micros:
        """Return the age from which ended executions of a namespace may have been deleted."""
        return min(self.of(namespace, outcome) for outcome in OUTCOMES)

    def longer_rules(self, now: Instant) -> list["Longer"]:
        """Return the namespaces and outcomes with a longer retention than `everywhere`.

        Each has its cutoff: executions that ended before that instant are past their retention.
        """
        return [
            (namespace, outcome, max(now - span, 0))
            for namespace, rules in sorted(self.rules.items())
            for outcome, span in sorted(rules.items())
            if span > self.everywhere
        ]

    def is_over(self, ends: Iterable["Ends"], now: Instant) -> bool:
        """Return whether all executions of a group that is deleted together are past their retention."""
        return all(at < now - self.of(namespace, outcome) for namespace, outcome, at in ends)


Longer = tuple[int, Outcome, Instant]  # (namespace, outcome, cutoff)
Ends = tuple[int, Outcome, Instant]  # (namespace, outcome, time at which the last execution ended)
