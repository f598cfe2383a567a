"""Readers of worker labels and resource amounts in definitions."""

import re
from typing import Any

from horae.errors import BadInput
from horae.model.fields.values import TAG, a_list, a_text, an_int, an_object, kind_of

SLOTS = "slots"  # every execution takes slots of its worker; this name is not a resource
MOST_NEEDS = 32
MOST_RESOURCES = 16
MOST_AMOUNT = 1 << 53
_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_UNITS |= {f"{unit}i": 1024**power for power, unit in enumerate(("", "K", "M", "G", "T")) if power}
_AMOUNT = re.compile(r"([0-9]{1,16})(?:\.([0-9]{1,16}))? ?([A-Za-z]{0,3})")
_NEEDS = 'Write ["gpu=a100", "ssd"] or {"gpu": "a100", "ssd": true}.'
_RESOURCES = 'Write {"memory": "2GiB", "gpu": 1}.'


def a_label(value: Any, field: str, remedy: str) -> str:
    """Read a label that a worker may carry: a name, or a name and a value."""
    label = a_text(value, field, most=256, least=1)
    name, equals, text = label.partition("=")
    if not TAG.fullmatch(name) or (equals and not TAG.fullmatch(text)):
        raise BadInput(f"{label[:60]!r} is not a label.", remedy, field=field)
    return label


def read_needs(value: Any, field: str = "needs") -> tuple[str, ...]:
    """Read the labels that a worker must carry, sorted; in an object, `true` stands for a label without a value."""
    if isinstance(value, dict):
        value = [
            _label_of(name, of_name, f"{field}.{name[:60]}")
            for name, of_name in an_object(value, field, _NEEDS).items()
        ]
    labels = a_list(value, field, _NEEDS, MOST_NEEDS)
    return tuple(sorted({a_label(label, f"{field}[{i}]", _NEEDS) for i, label in enumerate(labels)}))


def _label_of(name: str, value: Any, field: str) -> str:
    if value is True:
        return name
    if value is False or not isinstance(value, str | int | float):
        remedy = "Give it a value or true, or remove it if a worker need not carry it."
        raise BadInput(f"{field} is {kind_of(value)}.", remedy, field=field)
    return f"{name}={value}"


def read_resources(value: Any, field: str = "resources") -> dict[str, int]:
    """Read the amounts of resources by name, sorted by name; an amount may be written as a size such as "2GiB"."""
    given = an_object(value, field, _RESOURCES)
    if len(given) > MOST_RESOURCES:
        raise BadInput(f"{field} has {len(given)} entries.", f"At most {MOST_RESOURCES} are allowed.", field=field)
    return {name: _amount(name, given[name], f"{field}.{name[:60]}") for name in sorted(given)}


def _amount(name: str, value: Any, field: str) -> int:
    if not TAG.fullmatch(name):
        raise BadInput(f"{name[:60]!r} is not a resource's name.", _RESOURCES, field=field)
    if name == SLOTS:
        raise BadInput("slots is not a resource.", 'Write "slots": 2 beside resources.', field=field)
    return read_amount(value, field)


def read_amount(value: Any, field: str) -> int:
    """Read a whole number from 1, or a size such as "2GiB"."""
    if not isinstance(value, str):
        return an_int(value, field, 1, MOST_AMOUNT)
    match = _AMOUNT.fullmatch(value.strip())
    unit = match[3].removesuffix("B") if match else ""
    if match is None or unit not in _UNITS:
        raise BadInput(
            f"{field} cannot be {value[:40]!r}.", 'Write a number, or a size such as "512MiB" or "2GiB".', field=field
        )
    fraction = match[2] or ""
    amount, rest = divmod(int(match[1] + fraction) * _UNITS[unit], 10 ** len(fraction))
    if rest:
        raise BadInput(f"{field} is {value[:40]!r}, not a whole number.", "Use a smaller unit.", field=field)
    return an_int(amount, field, 1, MOST_AMOUNT)
