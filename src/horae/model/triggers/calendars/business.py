"""Working days, from the `holidays` package: holidays, weekends and moved working days of countries and exchanges.

The package is an optional extra of Horae. It is imported only here, when a calendar first needs it.
"""

from collections.abc import Iterable
from datetime import date, timedelta
from difflib import get_close_matches
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

from horae.errors import BadInput
from horae.model.triggers.calendars.values import Business

REMEDY = "Install it on every server with `pip install 'horae[calendar]'` and start them again."


def package() -> Any:
    """Return the package `holidays`, or raise an error with the command that installs it."""
    try:
        return import_module("holidays")
    except ImportError:
        raise BadInput("Calendars of a country or an exchange need the package holidays.", REMEDY) from None


def check(days: Business, field: str) -> None:
    """Refuse an unknown country, subdivision or exchange, and suggest the nearest known ones."""
    if days.exchange:
        if days.exchange not in _exchanges():
            raise BadInput(
                f"There is no exchange {days.exchange[:40]!r}.", _nearest(days.exchange, _exchanges()), field=field
            )
        return
    if days.country not in _countries():
        raise BadInput(f"There is no country {days.country[:40]!r}.", _nearest(days.country, _countries()), field=field)
    known = _subdivisions(days.country)
    if days.subdivision and days.subdivision not in known:
        place = f"{days.country} has no subdivision {days.subdivision[:40]!r}."
        remedy = _nearest(days.subdivision, known) if known else "Remove `subdivision`."
        raise BadInput(place, remedy, field=f"{field.rpartition('.')[0]}.subdivision".lstrip("."))


@lru_cache(maxsize=1024)
def working_days(days: Business, year: int) -> tuple[bool, ...]:
    """Return one boolean per day of a year: true if it is a working day."""
    known = package()
    # A holiday of one year may be observed in the year before or after it, so those years are computed too.
    years = range(year - 1, year + 2)
    if days.exchange:
        calendar = known.financial_holidays(days.exchange, years=years)
    else:
        calendar = known.country_holidays(days.country, subdiv=days.subdivision or None, years=years)
    first = date(year, 1, 1)
    length = (date(year + 1, 1, 1) - first).days
    return tuple(bool(calendar.is_working_day(first + timedelta(days=n))) for n in range(length))


@cache
def _countries() -> dict[str, str]:
    """Return all country codes with their names."""
    registry = package().registry
    return {code: names[0] for names in registry.COUNTRIES.values() for code in names[1:3]}


@cache
def _exchanges() -> dict[str, str]:
    registry = package().registry
    return {code: names[0] for names in registry.FINANCIAL.values() for code in names[1:]}


@cache
def _subdivisions(country: str) -> dict[str, str]:
    kind = getattr(package(), country)
    kind = kind.get_entity() if hasattr(kind, "get_entity") else kind
    return {**{code: code for code in kind.subdivisions}, **kind.subdivisions_aliases}


def _nearest(given: str, known: dict[str, str]) -> str:
    """Suggest codes with a similar spelling or a similar name."""
    folded = given.casefold().replace(" ", "")
    by_name = {name.casefold(): code for code, name in reversed(known.items())}
    found = [by_name[name] for name in get_close_matches(folded, by_name, n=2, cutoff=0.7)]
    found += get_close_matches(given.upper(), known, n=3, cutoff=0.5)
    found = found or get_close_matches(given, known, n=3, cutoff=0.4)
    if not found:
        return f"Use a code such as {_listed(sorted(known)[:3])}."
    return f"Did you mean {_listed(dict.fromkeys(found[:3]))}?"


def _listed(codes: Iterable[str]) -> str:
    return " or ".join(f'"{code}"' for code in codes)
