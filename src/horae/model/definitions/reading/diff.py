"""The differences between two definitions, field by field, in API form."""

from collections.abc import Iterator
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

Kind = Literal["added", "removed", "changed"]


class Difference(Struct, frozen=True, rename="camel"):
    """One field that differs; `before` or `after` is left out when the field is missing there."""

    path: str
    kind: Kind
    before: Any | UnsetType = UNSET
    after: Any | UnsetType = UNSET


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[Difference]:
    """Return all differences, in the order of the fields. A null field equals a missing one."""
    return list(_objects("", before, after))


def _objects(path: str, before: dict[str, Any], after: dict[str, Any]) -> Iterator[Difference]:
    for name in dict.fromkeys([*before, *after]):
        place = f"{path}.{name}" if path else name
        yield from _values(place, before.get(name), after.get(name))


def _values(path: str, before: Any, after: Any) -> Iterator[Difference]:
    if _text(before) == _text(after):
        return
    if before is None:
        yield Difference(path, "added", after=after)
    elif after is None:
        yield Difference(path, "removed", before=before)
    elif isinstance(before, dict) and isinstance(after, dict):
        yield from _objects(path, before, after)
    elif (old := _by_name(before)) is not None and (new := _by_name(after)) is not None and (old or new):
        yield from _named(path, before, after, old, new)
    else:
        yield Difference(path, "changed", before=before, after=after)


def _named(
    path: str, before: list[Any], after: list[Any], old: dict[str, Any], new: dict[str, Any]
) -> Iterator[Difference]:
    """Compare triggers, steps and other named elements by name. If only their order differs, the list has changed."""
    found = list(_objects(path, old, new))
    yield from found or [Difference(path, "changed", before=before, after=after)]


def _text(value: Any) -> bytes:
    """Encode a value to compare it; unlike in Python, true differs from 1."""
    return msgspec.json.encode(value, order="deterministic")


def _by_name(values: Any) -> dict[str, Any] | None:
    """Return the elements of a list by name, or None if an element has no unique name."""
    if not isinstance(values, list) or not all(isinstance(one, dict) and "name" in one for one in values):
        return None
    named = {str(one["name"]): one for one in values}
    return named if len(named) == len(values) else None
