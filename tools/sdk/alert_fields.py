"""Generation of the fields of alert rules and channels for the UI's forms."""

import json
from collections.abc import Callable, Iterable
from typing import Any

from horae.features.alerts.model.channel import CHANNEL
from horae.features.alerts.model.rule import RULE
from horae.model.fields.kinds import Custom
from horae.model.fields.table import Row
from horae.model.fields.variants import Variants
from tools.sdk.plain_fields import described

HEAD = (
    "// The fields of alert rules and of channels, by their kinds."
    " `python -m tools.sdk` writes this module from their tables.\n"
)


def text() -> str:
    """Return the content of the module."""
    return HEAD + listed("RULES", kinds(RULE, _of_rule)) + listed("CHANNELS", kinds(CHANNEL, _of_channel))


def listed(name: str, values: Iterable[Any]) -> str:
    """Return a list as the module exports it."""
    return f"\nexport const {name} = [\n" + "".join(f"  {json.dumps(one)},\n" for one in values) + "];\n"


def kinds(noun: Variants, more: Callable[[Row], dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """Yield each kind with its fields and their additional properties."""
    for kind, table in noun.tables.items():
        known = {one["name"]: one for one in described(table)}
        fields = [{**known[row.name], "flag": f"--{row.flag}", **more(row)} for row in noun.own(kind)]
        yield {"kind": kind, "about": noun.about(kind), "fields": fields}


def _of_rule(row: Row) -> dict[str, Any]:
    return {"isSubject": True} if row.attribute == "subjects" else {}


def _of_channel(row: Row) -> dict[str, Any]:
    return {
        "isPrivate": row.field.private,
        "isRequired": row.is_needed,
        "given": row.kind.option if isinstance(row.kind, Custom) else "once",
    }
