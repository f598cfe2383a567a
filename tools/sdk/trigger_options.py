"""Generation of the keywords of `cron`, `every`, `once` and `client.triggers`, for type checkers and editors."""

from collections.abc import Iterator

from horae.model.fields.kinds import Choice
from horae.model.triggers.decisions.named_trigger import NAMED_TRIGGER
from horae.model.triggers.decisions.rules import RULES
from horae.model.triggers.decisions.schedule import FIELDS, KIND_NAMES, TABLES
from horae.model.triggers.decisions.values import TIMED
from tools.sdk.options import typed

HEAD = '''"""Keywords of triggers. `python -m tools.sdk` writes this module from their tables."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict

from horae.model.executions.job_exceptions import Span
'''
BY_POSITION = ("timezone",)  # parameters of `cron` itself, beside the field that selects the kind of trigger


def text() -> str:
    """Return the content of the module."""
    return "\n".join((HEAD, *_parts()))


def _parts() -> Iterator[str]:
    yield f"TriggerKind = {Choice(KIND_NAMES).python}\n"
    yield typed("TriggerRules", "The options of every kind of trigger.", (*RULES.rows, *NAMED_TRIGGER.rows))
    for struct in TIMED:
        own = [row for row in TABLES[struct].rows if not row.field.tells and row.name not in BY_POSITION]
        if own:
            doc = struct.__doc__ or ""
            yield typed(f"{struct.__name__}Options", doc.partition("\n")[0], own, base="TriggerRules")
    fields = (row for row in FIELDS.rows if row.name != "name")
    yield typed("TriggerFields", "The fields of a trigger; None resets a field to its default.", fields)
