"""Generation of the fields of jobs and timed triggers for the UI."""

import json
from typing import Any

from horae.model.definitions.job import JOB
from horae.model.fields.table import Rows
from horae.model.triggers.decisions.schedule import KINDS, TriggerKind
from tools.sdk.plain_fields import described

HEAD = "// The fields of a job in their order. `python -m tools.sdk` writes this module from their table.\n\n"
OF_TRIGGERS = (
    "// Kinds of timed triggers, each with its fields; the first field selects the kind."
    " `python -m tools.sdk` writes this module from their tables.\n\n"
)


def text() -> str:
    """Return the module with a job's fields."""
    return f"{HEAD}export const FIELDS = [\n" + "".join(f"  {line},\n" for line in _lines(JOB)) + "];\n"


def of_triggers() -> str:
    """Return the module with triggers."""
    parts = [_of_kind(kind) for kind in KINDS.values() if kind.is_timed]
    return f"{OF_TRIGGERS}export const TIMES = {{\n{''.join(parts)}}};\n"


def _of_kind(kind: TriggerKind) -> str:
    return f"  {kind.field}: [\n" + "".join(f"    {line},\n" for line in _lines(kind.table, "example")) + "  ],\n"


def _lines(table: Rows, *wanted: str) -> list[str]:
    return [json.dumps(_shown(one, wanted)) for one in described(table)]


def _shown(field: dict[str, Any], wanted: tuple[str, ...]) -> dict[str, Any]:
    return {name: part for name, part in field.items() if name != "example" or name in wanted}
