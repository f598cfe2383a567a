"""References in an unparsed calendar definition, found without validating it."""

from typing import Any


def references_in(definition: Any) -> set[str]:
    """Return the names of calendars that a definition mentions."""
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
