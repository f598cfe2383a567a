"""The `circuit` of a job's definition."""

import re
from typing import Any

from horae.env import SECOND
from horae.errors import BadInput
from horae.model.admission.circuit import Circuit
from horae.model.base.duration import HOUR, format_duration
from horae.model.fields.values import a_duration, a_key, an_int, an_object, refuse_unknown

FIELDS = ("circuit",)
PARTS = ("failures", "window", "minimum", "openFor", "probes", "key")
MOST_PROBES = 100
MOST_MINIMUM = 1_000_000
_PERCENT = re.compile(r"\s*(\d{1,3})\s*%\s*")
_EXAMPLE = 'Write {"failures": "50%", "window": "1m", "minimum": 10, "openFor": "30s", "probes": 1}.'


def read_circuit(given: dict[str, Any]) -> dict[str, Any]:
    """The fields of a spec that a definition's `circuit` makes."""
    if "circuit" not in given:
        return {}
    value = given["circuit"]
    if value is True:
        return {"circuit": Circuit()}
    if isinstance(value, str):
        return {"circuit": Circuit(failures=_percent(value))}
    parts = an_object(value, "circuit", _EXAMPLE)
    refuse_unknown(parts, PARTS, "A circuit", "circuit.")
    usual = Circuit()
    return {
        "circuit": Circuit(
            failures=_percent(parts.get("failures", "50%")),
            window=a_duration(parts.get("window", "1m"), "circuit.window", SECOND, HOUR),
            minimum=an_int(parts.get("minimum", usual.minimum), "circuit.minimum", 1, MOST_MINIMUM, _EXAMPLE),
            open_for=a_duration(parts.get("openFor", "30s"), "circuit.openFor", SECOND, 24 * HOUR),
            probes=an_int(parts.get("probes", usual.probes), "circuit.probes", 1, MOST_PROBES, _EXAMPLE),
            key=a_key(parts["key"], "circuit.key") if parts.get("key") is not None else None,
        )
    }


def _percent(value: Any) -> int:
    found = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if found is None or not 1 <= int(found[1]) <= 100:
        raise BadInput(
            f"circuit.failures is {str(value)[:40]!r}, not a share of the attempts.",
            'Write the percentage from which on it opens, from "1%" to "100%".',
            field="circuit.failures",
        )
    return int(found[1])


def render_circuit(circuit: Circuit | None) -> dict[str, Any] | None:
    """A circuit in the API's spelling."""
    if circuit is None:
        return None
    return {
        "failures": f"{circuit.failures}%",
        "window": format_duration(circuit.window),
        "minimum": circuit.minimum,
        "openFor": format_duration(circuit.open_for),
        "probes": circuit.probes,
        "key": circuit.key,
    }
