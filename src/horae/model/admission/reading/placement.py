"""`needs`, `prefers`, `slots`, `resources`, `affinity` and `spread`: where a job's executions run."""

import re
from collections.abc import Mapping
from typing import Any

from msgspec import structs

from horae.env import SECOND
from horae.errors import BadInput
from horae.model.admission.placement.placement import MOST_WEIGHT, SLOTS, Affinity, Preference
from horae.model.base.duration import DAY, format_duration
from horae.model.fields.values import TAG, a_duration, a_key, a_list, a_text, an_int, an_object, kind_of, refuse_unknown

FIELDS = ("needs", "prefers", "slots", "resources", "affinity", "spread")
MOST_NEEDS = 32
MOST_PREFERS = 4
MOST_SLOTS = 100_000
MOST_RESOURCES = 16
MOST_AMOUNT = 1 << 53
PATIENCE = 10 * SECOND  # how long a preferred worker is waited for unless said
_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_UNITS |= {f"{unit}i": 1024**power for power, unit in enumerate(("", "K", "M", "G", "T")) if power}
_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]{0,3})")
_NEEDS = 'Write ["gpu=a100", "ssd"] or {"gpu": "a100", "ssd": true}.'
_PREFERS = 'Write [{"label": "zone=eu-1", "weight": 2, "patience": "30s"}], or ["zone=eu-1"].'
_RESOURCES = 'Write {"memory": "2GiB", "gpu": 1}.'
_AFFINITY = 'Write "${params.model}", or {"key": "${params.model}", "patience": "30s"}.'


def read_placement(given: Mapping[str, Any]) -> dict[str, Any]:
    """The spec's fields that say where executions run."""
    return {
        "needs": _needs(given.get("needs", [])),
        "prefers": _prefers(given.get("prefers", [])),
        "slots": an_int(given.get("slots", 1), "slots", 1, MOST_SLOTS),
        "resources": read_resources(given.get("resources", {})),
        "affinity": _affinity(given.get("affinity")),
        "spread": _flag(given.get("spread", False), "spread"),
    }


def render_placement(spec: Any) -> dict[str, Any]:
    """The same in the API's spelling."""
    affinity: Affinity | None = spec.affinity
    return {
        "needs": list(spec.needs),
        "prefers": [{**structs.asdict(one), "patience": format_duration(one.patience)} for one in spec.prefers],
        "slots": spec.slots,
        "resources": dict(spec.resources),
        "affinity": None if affinity is None else {**structs.asdict(affinity), "patience": _told(affinity)},
        "spread": spec.spread,
    }


def _told(affinity: Affinity) -> str:
    return format_duration(affinity.patience)


def a_label(value: Any, field: str, remedy: str) -> str:
    """A label that a worker may carry: a name, or a name and a value."""
    label = a_text(value, field, most=256, least=1)
    name, equals, text = label.partition("=")
    if not TAG.fullmatch(name) or (equals and not TAG.fullmatch(text)):
        raise BadInput(f"{label[:60]!r} is not a label.", remedy, field=field)
    return label


def _needs(value: Any) -> tuple[str, ...]:
    """Labels a worker must carry, sorted; an object's `true` asks for the label alone."""
    if isinstance(value, dict):
        value = [name if label is True else f"{name}={label}" for name, label in value.items()]
    labels = a_list(value, "needs", _NEEDS, MOST_NEEDS)
    return tuple(sorted({a_label(label, f"needs[{i}]", _NEEDS) for i, label in enumerate(labels)}))


def _prefers(value: Any) -> tuple[Preference, ...]:
    given = a_list(value, "prefers", _PREFERS, MOST_PREFERS)
    prefers = tuple(_preference(one, f"prefers[{i}]") for i, one in enumerate(given))
    labels = [preference.label for preference in prefers]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise BadInput(f"prefers names {twice!r} twice.", "Name each label once.", field="prefers")
    return prefers


def _preference(value: Any, field: str) -> Preference:
    given = {"label": value} if isinstance(value, str) else an_object(value, field, _PREFERS)
    refuse_unknown(given, ("label", "weight", "patience"), field, f"{field}.")
    return Preference(
        label=a_label(given.get("label", ""), f"{field}.label", _PREFERS),
        weight=an_int(given.get("weight", 1), f"{field}.weight", 1, MOST_WEIGHT),
        patience=_patience(given, field),
    )


def _patience(given: Mapping[str, Any], field: str) -> int:
    value = given.get("patience")
    return PATIENCE if value is None else a_duration(value, f"{field}.patience", 1000, DAY)


def _affinity(value: Any) -> Affinity | None:
    if value is None:
        return None
    given = {"key": value} if isinstance(value, str) else an_object(value, "affinity", _AFFINITY)
    refuse_unknown(given, ("key", "patience"), "affinity", "affinity.")
    return Affinity(key=a_key(given.get("key", ""), "affinity.key"), patience=_patience(given, "affinity"))


def read_resources(value: Any, field: str = "resources") -> dict[str, int]:
    """Amounts by name, sorted; sizes may be written as texts."""
    given = an_object(value, field, _RESOURCES)
    if len(given) > MOST_RESOURCES:
        raise BadInput(f"{field} has {len(given)} entries.", f"At most {MOST_RESOURCES} are allowed.", field=field)
    return {name: _amount(name, given[name], f"{field}.{name[:60]}") for name in sorted(given)}


def _amount(name: str, value: Any, field: str) -> int:
    if not TAG.fullmatch(name):
        raise BadInput(f"{name[:60]!r} is not a resource's name.", _RESOURCES, field=field)
    if name == SLOTS:
        raise BadInput("slots are no resource of their own.", 'Write "slots": 2 beside resources.', field=field)
    return read_amount(value, field)


def read_amount(value: Any, field: str) -> int:
    """A whole number from 1 on, or a size such as "2GiB"."""
    if not isinstance(value, str):
        return an_int(value, field, 1, MOST_AMOUNT)
    match = _AMOUNT.fullmatch(value.strip())
    unit = match[2].removesuffix("B") if match else ""
    if match is None or unit not in _UNITS:
        raise BadInput(
            f"{field} cannot be {value[:40]!r}.", 'Write a number, or a size such as "512MiB" or "2GiB".', field=field
        )
    amount = float(match[1]) * _UNITS[unit]
    if amount != int(amount):
        raise BadInput(f"{field} is {value[:40]!r}, no whole number.", "Use a smaller unit.", field=field)
    return an_int(int(amount), field, 1, MOST_AMOUNT)


def _flag(value: Any, field: str) -> bool:
    if not isinstance(value, bool):
        raise BadInput(f"{field} is {kind_of(value)}, neither true nor false.", "Write true or false.", field=field)
    return value
