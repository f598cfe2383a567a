"""Generation of the keywords of features' requests, for type checkers and editors."""

from collections.abc import Iterable
from pathlib import Path

from horae.features.alerts.model.channel import CHANNEL
from horae.features.alerts.model.rule import RULE
from horae.features.backfills.model.request import BACKFILL
from horae.features.dead_letters.model import LETTER_FILTER
from horae.features.erasure.model import SELECTION
from horae.features.rollouts.model.read import ROLLOUT
from horae.features.templates.model.values import FIELDS as TEMPLATE
from horae.model.fields.table import Row, Rows
from tools.sdk.options import typed

HEAD = '''"""Keyword arguments of the client. `python -m tools.sdk` writes this module from the tables of the fields."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict

from horae.model.executions.job_exceptions import Span
'''


def _given(table: Rows) -> Iterable[Row]:
    """Return the fields of a request that are keywords; others, such as the name, are positional."""
    return (row for row in table.rows if row.field.sdk)


# For each feature: the class, its description and its fields.
OPTIONS: dict[str, tuple[tuple[str, str, Rows], ...]] = {
    "alerts": (
        ("AlertRuleFields", "The fields of a rule; each kind has its own fields.", RULE),
        ("AlertChannelFields", "The fields of a channel; secret fields that are not given stay unchanged.", CHANNEL),
    ),
    "templates": (("TemplateFields", "The fields of a template.", TEMPLATE),),
    "rollouts": (("RolloutOptions", "The shares of versions in new executions.", ROLLOUT),),
    "erasure": (("ErasureOptions", "The executions to erase: all given conditions must hold.", SELECTION),),
    "backfills": (("BackfillOptions", "The options of a backfill.", BACKFILL),),
}


LETTER_OPTIONS = ("DeadLetterFilters", "A selection of dead letters: all given conditions must hold.", LETTER_FILTER)


def files(source: Path) -> dict[Path, str]:
    """Return the modules; the keywords of the SDK's own dead letters are beside their resource."""
    found = {source / "features" / name / "options.py": _text(parts) for name, parts in OPTIONS.items()}
    return {**found, source / "client" / "dead_letter_options.py": _text((LETTER_OPTIONS,))}


def _text(parts: tuple[tuple[str, str, Rows], ...]) -> str:
    return "\n".join((HEAD, *(typed(name, doc, _given(table)) for name, doc, table in parts)))
