"""A namespace as users write it, and how it is shown."""

from typing import Any

from msgspec import Struct

from horae.errors import BadInput
from horae.model.admission.policy import Policy, read_policy, write_policy
from horae.model.base.duration import DAY, HOUR, format_duration
from horae.model.definitions.reading.read import parse_definition
from horae.model.fields.values import a_duration, a_number, a_text, an_object, refuse_unknown
from horae.model.tenancy.namespace import DEFAULTS, OUTCOMES, Namespace, NamespaceSpec

FIELDS = ("description", "weight", "retention", "archive", "defaults", "queuePolicy")
MOST_DESCRIPTION = 4096
LEAST_WEIGHT, MOST_WEIGHT = 0.01, 1000.0
LONGEST = 4000 * DAY
_EXAMPLE = 'Send an object such as {"description": "Billing", "retention": {"success": "7d"}}.'
_RETENTION = 'Write "30d" for all, or {"success": "7d", "failed": "90d"}.'


class Said(Struct, frozen=True, kw_only=True):
    """What a user says about a namespace."""

    weight: float = 1.0
    policy: Policy | None = None
    spec: NamespaceSpec = NamespaceSpec()


def parse_namespace(body: Any) -> Said:
    """Read what is said about a namespace; null stands for what is left out. Raises BadInput."""
    given = an_object(body, "body", _EXAMPLE)
    refuse_unknown(given, FIELDS, "A namespace")
    given = {name: value for name, value in given.items() if value is not None}
    spec = NamespaceSpec(
        description=a_text(given.get("description", ""), "description", most=MOST_DESCRIPTION),
        retention=_retention(given.get("retention", {})),
        archive=_archive(given.get("archive", False)),
        defaults=_defaults(given.get("defaults", {})),
    )
    weight = a_number(given.get("weight", 1.0), "weight", LEAST_WEIGHT, MOST_WEIGHT)
    policy = read_policy(given["queuePolicy"], "queuePolicy") if "queuePolicy" in given else None
    return Said(weight=weight, policy=policy, spec=spec)


def merge_namespace(before: Namespace, patch: Any) -> dict[str, Any]:
    """What is said of a namespace with what a patch names; null takes a field back to its default."""
    given = an_object(patch, "body", _EXAMPLE)
    return {**show_namespace(before), **given}


def show_namespace(namespace: Namespace) -> dict[str, Any]:
    """A namespace as it could be written."""
    spec = namespace.spec
    return {
        "description": spec.description,
        "weight": namespace.weight,
        "retention": {outcome: format_duration(span) for outcome, span in spec.retention.items()},
        "archive": list(spec.archive),
        "defaults": spec.defaults,
        "queuePolicy": None if namespace.policy is None else write_policy(namespace.policy),
    }


def _retention(value: Any) -> dict[Any, int]:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        value = dict.fromkeys(OUTCOMES, value)
    given = an_object(value, "retention", _RETENTION)
    refuse_unknown(given, OUTCOMES, "retention", "retention.")
    spans = {name: span for name, span in given.items() if span is not None}
    return {name: a_duration(span, f"retention.{name}", HOUR, LONGEST) for name, span in sorted(spans.items())}


def _archive(value: Any) -> tuple[Any, ...]:
    if isinstance(value, bool):
        return OUTCOMES if value else ()
    if not isinstance(value, list | tuple) or not all(one in OUTCOMES for one in value):
        remedy = f"Write true for all, or a list of {', '.join(OUTCOMES)}."
        raise BadInput("archive does not say which executions are archived.", remedy, field="archive")
    return tuple(outcome for outcome in OUTCOMES if outcome in value)


def _defaults(value: Any) -> dict[str, Any]:
    """What jobs take that say nothing of it; each is read as a job's own would be."""
    given = an_object(value, "defaults", 'Write {"retries": 3, "timeout": "1h"}.')
    refuse_unknown(given, DEFAULTS, "defaults", "defaults.")
    said = {name: part for name, part in given.items() if part is not None}
    try:
        parse_definition({"name": "any", "command": "true", **said}, namespace_name="", created_at=0)
    except BadInput as error:
        error.fields["field"] = f"defaults.{error.fields.get('field', '')}".removesuffix(".")
        raise
    return said
