"""What tells two definitions apart, field by field, in the API's spelling."""

from collections.abc import Iterator
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

Kind = Literal["added", "removed", "changed"]


class Difference(Struct, frozen=True, rename="camel"):
    """One field that differs; `before` and `after` are left out where there is nothing."""

    path: str
    kind: Kind
    before: Any | UnsetType = UNSET
    after: Any | UnsetType = UNSET


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[Difference]:
    """All that differs, in the order of the fields. A field that is null is as one that is not there."""
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
    """Triggers, steps and the like are told apart by their names, wherever in the list they stand."""
    found = list(_objects(path, old, new))
    yield from found or [Difference(path, "changed", before=before, after=after)]


def _text(value: Any) -> bytes:
    """A value as it is written: true is not 1."""
    return msgspec.json.encode(value, order="deterministic")


def _by_name(values: Any) -> dict[str, Any] | None:
    """The elements of a list by their names, if all have one of their own."""
    if not isinstance(values, list) or not all(isinstance(one, dict) and "name" in one for one in values):
        return None
    named = {str(one["name"]): one for one in values}
    return named if len(named) == len(values) else None
