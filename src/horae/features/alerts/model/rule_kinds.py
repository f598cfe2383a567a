"""Kinds of fields that only alert rules have, with the functions that read and check them."""

import re
from typing import Annotated, Any

from msgspec import Meta

from horae.env import Micros
from horae.errors import BadInput
from horae.model.admission.rate import Rate, parse_rate
from horae.model.base.duration import MINUTE
from horae.model.fields.kinds import Custom
from horae.model.fields.values import a_list, a_text

MOST_SUBJECTS = 100
MOST_CHANNELS = 20
MOST_NOTICES = 10_000
MOST_IN_A_ROW = 1000
LONGEST: Micros = 365 * 24 * 60 * MINUTE
_PERCENT = re.compile(r"\s*(\d{1,3})\s*%\s*")
_SUBJECT = re.compile(r"[A-Za-z0-9*?\[\]!._/:@-]{1,200}")


def _read_subjects(value: Any, at: str) -> tuple[str, ...]:
    given = a_list([value] if isinstance(value, str) else value, at, 'Write ["report", "etl-*"].', MOST_SUBJECTS)
    if not given:
        raise BadInput(f"{at} is empty.", 'Give at least one, or ["*"] for all.', field=at)
    for i, name in enumerate(given):
        if not _SUBJECT.fullmatch(a_text(name, f"{at}[{i}]", most=200, least=1)):
            raise BadInput(f"{at}[{i}] is not a name.", "Write a name, or a pattern with * and ?.", field=f"{at}[{i}]")
    return tuple(dict.fromkeys(given))


def _read_channels(value: Any, at: str) -> tuple[str, ...]:
    given = a_list([value] if isinstance(value, str) else value, at, 'Write ["ops"].', MOST_CHANNELS)
    return tuple(dict.fromkeys(a_text(name, at, most=128, least=1) for name in given))


def _read_notices(value: Any, at: str) -> Rate:
    """Read a rate limit of notices, such as "20/1h".

    All of its notices may be sent at once, because the first notices of many are the most important.
    """
    rate = parse_rate(value, at)
    if not rate.count <= MOST_NOTICES or rate.per < MINUTE:
        raise BadInput(
            f"{at} cannot be {value!r}.",
            f'Write "20/1h": at most {MOST_NOTICES} notices, in a span of at least one minute.',
            field=at,
        )
    return Rate(rate.count, rate.per, rate.count)


def percent(least: int, most: int) -> Custom:
    """Return the kind of field for a percentage from `least` to `most`: written as "95%", stored as the number 95."""

    def read(value: Any, at: str) -> int:
        found = _PERCENT.fullmatch(value) if isinstance(value, str) else None
        if found is None or not least <= int(found[1]) <= most:
            remedy = f'Write it as a percentage, from "{least}%" to "{most}%".'
            raise BadInput(f"{at} is {str(value)[:40]!r}, not a percentage.", remedy, field=at)
        return int(found[1])

    wire = Annotated[str, Meta(pattern=r"^\s*\d{1,3}\s*%\s*$", description='"95%".')]
    return Custom(read, wire, "str", lambda share: f"{share}%")


_NAMES = list[str] | str
SUBJECTS = Custom(_read_subjects, _NAMES, "str | Sequence[str]", list, out=list[str], option="repeated")
CHANNELS = Custom(_read_channels, _NAMES, "str | Sequence[str]", list, out=list[str], option="repeated")
NOTICES = Custom(_read_notices, str, "str", str)
