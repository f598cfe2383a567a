"""`calendar`, `calendars` and `outside`: by which calendars a trigger goes, and what becomes of fires beside them."""

from typing import Any, get_args

from horae.errors import BadInput
from horae.model.fields.values import NAME, a_list, a_name, one_of
from horae.model.triggers.decisions.rules import Outside, Rules

MOST_CALENDARS = 16
_ACCEPTED = 'Write "calendar": "work-days", or "calendars": ["work-days", "office-hours"] that must all be open.'


def parse_calendars(given: dict[str, Any]) -> dict[str, Any]:
    """The fields of the rules that say it; none when a trigger goes by no calendar."""
    names = _names(given)
    if not names:
        if "outside" in given:
            raise BadInput("outside says nothing without a calendar.", _ACCEPTED, field="schedule.outside")
        return {}
    outside = one_of(given.get("outside", "skip"), "schedule.outside", get_args(Outside))
    return {"calendars": names, "outside": outside}


def _names(given: dict[str, Any]) -> tuple[str, ...]:
    if "calendar" in given and "calendars" in given:
        raise BadInput("Both calendar and calendars are given.", _ACCEPTED, field="schedule.calendars")
    if "calendar" in given:
        return (_name(given["calendar"], "calendar"),)
    listed = a_list(given.get("calendars", []), "schedule.calendars", _ACCEPTED, MOST_CALENDARS)
    if "calendars" in given and not listed:
        raise BadInput("schedule.calendars is empty.", _ACCEPTED, field="schedule.calendars")
    return tuple(dict.fromkeys(_name(each, f"calendars[{i}]") for i, each in enumerate(listed)))


def _name(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise BadInput(f"schedule.{place} is not a calendar's name.", _ACCEPTED, field=f"schedule.{place}")
    try:
        return a_name(value, "calendar", NAME)
    except BadInput as error:
        raise BadInput(error.detail, error.remedy, field=f"schedule.{place}") from None


def describe_outside(rules: Rules) -> str:
    """What the calendars mean for a trigger, to be added to what it is in words."""
    if not rules.calendars:
        return ""
    names = " and ".join(f'"{name}"' for name in rules.calendars)
    words = {
        "skip": f", only while {names} is open",
        "postpone": f", or when {names} opens next",
        "advance": f", or when {names} was open last",
    }
    return words[rules.outside]


def render_calendars(rules: Rules) -> dict[str, Any]:
    """The fields that read as these rules; None for those that say nothing."""
    names = list(rules.calendars)
    return {
        "calendar": names[0] if len(names) == 1 else None,
        "calendars": names if len(names) > 1 else None,
        "outside": None if rules.outside == "skip" else rules.outside,
    }
