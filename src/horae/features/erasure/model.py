"""Erasures: the selection of executions or a namespace, and the results."""

import sys
from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.errors import BadInput
from horae.model.base.view import Time, View
from horae.model.executions.execution import Extra
from horae.model.expressions.meter import Meter
from horae.model.expressions.values import equal
from horae.model.fields.kinds import Custom, Text, as_given
from horae.model.fields.table import Field, Table

_PARAMS = Custom(as_given, dict[str, Any], "Mapping[str, Any]", option="pairs")


class ErasureSelection(Struct, frozen=True, kw_only=True):
    """A selection of executions to erase: all given conditions must hold."""

    job: Annotated[str | None, Field(Text(256), "Only executions of this job.", metavar="JOB")] = None
    tag: Annotated[str | None, Field(Text(256), 'Only executions with this tag: "name" or "name=value".')] = None
    key: Annotated[str | None, Field(Text(256), "Only executions submitted with this key.", metavar="KEY")] = None
    params: Annotated[
        dict[str, Any] | None,
        Field(_PARAMS, "Only executions submitted with these params.", flag="param", metavar="NAME=VALUE"),
    ] = None

    def check(self) -> None:
        """Refuse a selection without a tag, a key or params, because it would not be limited to a person's data.

        The same holds for a param that is null.
        """
        if self.tag is None and self.key is None and not self.params:
            remedy = 'Name a tag, a key or params, as {"params": {"customer": "c-17"}}.'
            raise BadInput("The selection has no tag, key or params.", remedy, field="where")
        if empty := [name for name, value in (self.params or {}).items() if value is None]:
            remedy = "Give the value that identifies the person, or leave this param out."
            raise BadInput(f"The param {empty[0][:60]!r} of the selection is null.", remedy, field="where")

    def matches_key(self, extra: Extra) -> bool:
        """Return whether an execution has the selected key, or no key is selected."""
        return self.key is None or extra.key == self.key

    def matches_params(self, params: bytes) -> bool:
        """Return whether these params have all selected params."""
        given = msgspec.json.decode(params)
        return isinstance(given, dict) and all(
            name in given and equal(Meter(sys.maxsize), given[name], value)
            for name, value in (self.params or {}).items()
        )


SELECTION = Table(ErasureSelection, "An erasure")


class ErasureView(View, frozen=True, kw_only=True):
    """The result of one part of an erasure.

    Cancel the executions in `notEnded` or wait for them, and then erase again. It is unknown whether the executions in
    `undecryptable` are selected, because their params are encrypted with a key that this server does not have. Archive
    files in `unreadableFiles` are damaged or missing.
    """

    examined: int
    erased: int
    not_ended: list[UUID]
    undecryptable: list[UUID]
    unreadable_files: list[str]
    next_cursor: str | None = None


class EraseNamespace(Struct, frozen=True, kw_only=True):
    """A request to erase a namespace."""

    confirm: str  # the name of the namespace
    cancel: bool = False
    definitions: bool = False
    before: Instant | None = None


class NamespaceErasureView(View, frozen=True, kw_only=True):
    """The result of one part of the erasure of a namespace; repeat the request until `complete` is true.

    `live` counts executions that were cancelled but have not ended yet. `records` counts keys, ended backfills,
    replays, sessions and holds, and stored answers.
    """

    namespace: str
    before: Time
    executions: int
    files: int
    events: int
    records: int
    definitions: int
    live: int
    complete: bool
