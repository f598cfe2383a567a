"""Parsing of a cron expression of either dialect into a `CronExpression`."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Literal

from horae.errors import BadInput
from horae.model.triggers.cron.quartz import parse_quartz
from horae.model.triggers.cron.unix import parse_unix
from horae.model.triggers.cron.wall import CronExpression

Dialect = Literal["unix", "quartz"]

LONGEST_TEXT = 1000

_DIALECTS: Mapping[str, Callable[[str, str], CronExpression]] = {"unix": parse_unix, "quartz": parse_quartz}
_SPREAD = re.compile(r"(?<![A-Z])H(?![A-Z])", re.IGNORECASE)


@lru_cache(maxsize=16_384)
def parse_cron(text: str, dialect: str = "unix", job_key: str = "") -> CronExpression:
    """Parse an expression or refuse it with the reason and a suggestion.

    `H` in an expression stands for a value computed from a hash of `job_key` ("namespace/job"), so that jobs with the
    same expression fire at different times.
    """
    if dialect not in _DIALECTS:
        raise BadInput(
            f"There is no cron dialect {dialect[:40]!r}.",
            f"Choose one of: {', '.join(_DIALECTS)}.",
            field="schedule.dialect",
        )
    clean = " ".join(text.split())
    if not clean:
        raise BadInput("An empty cron expression never fires.", 'For example "0 9 * * MON-FRI".', field="schedule")
    if len(text) > LONGEST_TEXT or not (clean.isascii() and clean.isprintable()):
        reason = f"A cron expression has at most {LONGEST_TEXT} printable ASCII characters."
        raise BadInput(reason, 'For example "*/5 * * * *".', field="schedule")
    if clean.upper().startswith(("TZ=", "CRON_TZ=")):
        remedy = 'Write {"cron": "0 9 * * *", "timezone": "Europe/Paris"}.'
        raise BadInput("A time zone does not belong inside the expression.", remedy, field="schedule")
    return _DIALECTS[dialect](clean, job_key)


def needs_key(text: str) -> bool:
    """Return whether an expression uses `H`. If it does not, all jobs share one parsed expression."""
    return _SPREAD.search(text) is not None
