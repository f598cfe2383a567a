"""Placement in a definition: read, shown in a form that reads back, and refused with precise errors."""

import pytest

from horae.errors import BadInput
from horae.model.admission.placement.placement import Affinity, Cost, Preference
from horae.model.definitions.reading.read import parse_definition
from horae.model.definitions.reading.write import render_definition

SECOND = 1_000_000


def read(**fields):
    body = {"name": "job", "command": "true", **fields}
    return parse_definition(body, namespace_name="default", created_at=0).spec


def test_valid_placements_are_read_and_shown():
    spec = read(
        needs={"zone": "eu", "ssd": True, "rack": 7},
        prefers=["gpu", {"label": "zone=eu-1", "weight": 3, "patience": "1m"}],
        slots=2,
        resources={"memory": "1.5GiB", "gpu": 1, "disk": "2TB", "tokens": "1.001k"},
        affinity="${params.model}-${tags.team}",
        spread=True,
    )

    assert spec.needs == ("rack=7", "ssd", "zone=eu")
    assert spec.prefers == (
        Preference(label="gpu", patience=10 * SECOND),
        Preference(label="zone=eu-1", weight=3, patience=60 * SECOND),
    )
    assert spec.cost == Cost(2, (("disk", 2 * 10**12), ("gpu", 1), ("memory", 3 << 29), ("tokens", 1001)))
    assert spec.affinity == Affinity(key="${params.model}-${tags.team}", patience=10 * SECOND)
    assert spec.spread
    shown = render_definition(spec)
    assert shown["prefers"][1] == {"label": "zone=eu-1", "weight": 3, "patience": "1m"}
    assert shown["affinity"] == {"key": "${params.model}-${tags.team}", "patience": "10s"}
    body = {field: value for field, value in shown.items() if value is not None}
    assert parse_definition(body, namespace_name="default", created_at=0).spec == spec


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"needs": ["a b"]}, "needs[0]"),
        ({"needs": ["cost:slots=9"]}, "needs[0]"),
        ({"needs": {"gpu": None}}, "needs.gpu"),
        ({"needs": {"ssd": False}}, "needs.ssd"),
        ({"needs": {"zone": ["eu"]}}, "needs.zone"),
        ({"prefers": ["prefer:1:1:x"]}, "prefers[0].label"),
        ({"prefers": [{"weight": 2}]}, "prefers[0].label"),
        ({"prefers": [{"label": "a", "weight": 0}]}, "prefers[0].weight"),
        ({"prefers": [{"label": "a", "weight": 1001}]}, "prefers[0].weight"),
        ({"prefers": [{"label": "a", "patience": 0}]}, "prefers[0].patience"),
        ({"prefers": [{"label": "a", "patience": "2d"}]}, "prefers[0].patience"),
        ({"prefers": ["a", "a"]}, "prefers"),
        ({"prefers": ["a", "b", "c", "d", "e"]}, "prefers"),
        ({"prefers": [{"label": "a", "when": 1}]}, "prefers[0].when"),
        ({"slots": 0}, "slots"),
        ({"slots": 1.5}, "slots"),
        ({"resources": {"memory": 0}}, "resources.memory"),
        ({"resources": {"memory": "2 parsecs"}}, "resources.memory"),
        ({"resources": {"memory": "0.3KiB"}}, "resources.memory"),
        ({"resources": {"memory": "9" * 400}}, "resources.memory"),
        ({"resources": {"memory": "1.00000000000001TiB"}}, "resources.memory"),
        ({"resources": {"memory": "9007199254740993"}}, "resources.memory"),
        ({"resources": {"slots": 2}}, "resources.slots"),
        ({"resources": {"a b": 2}}, "resources.a b"),
        ({"resources": ["gpu"]}, "resources"),
        ({"affinity": ""}, "affinity.key"),
        ({"affinity": "${worker}"}, "affinity.key"),
        ({"affinity": {"key": "a", "weight": 2}}, "affinity.weight"),
        ({"spread": "yes"}, "spread"),
    ],
)
def test_invalid_placements_are_refused_with_their_field(fields, field):
    with pytest.raises(BadInput) as refused:
        read(**fields)

    assert refused.value.fields["field"] == field
    assert refused.value.remedy
