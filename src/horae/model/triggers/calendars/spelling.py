"""What a calendar's definition, as people write it, refers to, without judging whether it is right."""

from typing import Any


def references_in(definition: Any) -> set[str]:
    """The names of calendars that a definition mentions."""
    if isinstance(definition, str):
        return {definition}
    if not isinstance(definition, dict):
        return set()
    found = {definition["calendar"]} if isinstance(definition.get("calendar"), str) else set()
    for name in ("any", "all", "except", "definition"):
        inner = definition.get(name)
        for each in inner if isinstance(inner, list) else [inner]:
            found |= references_in(each)
    return found
