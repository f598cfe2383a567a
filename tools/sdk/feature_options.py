"""Write the keywords of features' requests, as type checkers and editors see them."""

from collections.abc import Iterable
from pathlib import Path

from horae.features.alerts.model.channel import CHANNEL
from horae.features.alerts.model.rule import RULE
from horae.features.backfills.model.request import BACKFILL
from horae.features.dead_letters.model.replay import LETTERS
from horae.features.erasure.model import SELECTION
from horae.features.rollouts.model.read import ROLLOUT
from horae.features.templates.model.values import FIELDS as TEMPLATE
from horae.model.fields.table import Row, Rows
from tools.sdk.options import typed

HEAD = '''"""Keywords of requests. `python -m tools.sdk` writes this module from the tables of their fields."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict

from horae.model.executions.job_exceptions import Span
'''


def _given(table: Rows) -> Iterable[Row]:
    """The fields of a request that are keywords: not the name or what else is given by position."""
    return (row for row in table.rows if row.field.sdk)


# By feature: the class, what it is, and its fields.
OPTIONS: dict[str, tuple[tuple[str, str, Rows], ...]] = {
    "alerts": (
        ("AlertRuleFields", "What a rule says; each kind has fields of its own.", RULE),
        ("AlertChannelFields", "What a channel says; what is secret and left out stays as it was.", CHANNEL),
    ),
    "templates": (("TemplateFields", "What a template says.", TEMPLATE),),
    "rollouts": (("RolloutOptions", "Which versions new executions go to.", ROLLOUT),),
    "erasure": (("ErasureOptions", "Whose data goes: all that is said must hold.", SELECTION),),
    "backfills": (("BackfillOptions", "How fires of the past are run.", BACKFILL),),
}


LETTER_OPTIONS = ("DeadLetterFilters", "Which dead letters: all that is said must hold.", LETTERS)


def files(source: Path) -> dict[Path, str]:
    """Return the modules; the SDK's own resource of dead letters has its keywords beside it."""
    found = {source / "features" / name / "options.py": _text(parts) for name, parts in OPTIONS.items()}
    return {**found, source / "client" / "dead_letter_options.py": _text((LETTER_OPTIONS,))}


def _text(parts: tuple[tuple[str, str, Rows], ...]) -> str:
    return "\n".join((HEAD, *(typed(name, doc, _given(table)) for name, doc, table in parts)))
