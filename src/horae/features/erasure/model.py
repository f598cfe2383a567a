"""Erasures: the selection of executions, and the result."""

from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.errors import BadInput
from horae.model.base.view import Time, View
from horae.model.executions.execution import Extra
from horae.model.fields.kinds import Custom, Text, as_given
from horae.model.fields.table import Field, Table

_PARAMS = Custom(as_given, dict[str, Any], "Mapping[str, Any]", option="pairs")


class ErasureSelection(Struct, frozen=True, kw_only=True):
    """A selection of executions to erase: all given conditions must hold."""

    job: Annotated[str | None, Field(Text(256), "Only executions of this job.", metavar="JOB")] = None
    tag: Annotated[str | None, Field(Text(256), 'Those with this tag: "name" or "name=value".')] = None
    key: Annotated[str | None, Field(Text(256), "Those that were submitted with this key.", metavar="KEY")] = None
    params: Annotated[
        dict[str, Any] | None,
        Field(_PARAMS, "Those that were given these params.", flag="param", metavar="NAME=VALUE"),
    ] = None

    def check(self) -> None:
        """Refuse a selection of all executions."""
        if self.tag is None and self.key is None and not self.params:
            remedy = 'Name a tag, a key or params, as {"params": {"customer": "c-17"}}.'
            raise BadInput("Nothing says whose data it is.", remedy, field="where")

    def matches_key(self, extra: Extra) -> bool:
        """Return whether an execution of the selected job and tag has the selected key."""
        return self.key is None or extra.key == self.key

    def matches_params(self, params: bytes) -> bool:
        """Return whether an execution with these params is selected."""
        given = msgspec.json.decode(params)
        return isinstance(given, dict) and all(given.get(name) == value for name, value in (self.params or {}).items())


SELECTION = Table(ErasureSelection, "An erasure")


class ErasureView(View, frozen=True, kw_only=True):
    """The result of one part of an erasure.

    Executions in `live` have not ended: cancel them or wait, and erase again. The params of those in `unread` are
    sealed with a key that this server does not have, so it is unknown whether they are selected. Archive files in
    `unreadFiles` are damaged or gone.
    """

    looked_at: int
    erased: int
    live: list[UUID]
    unread: list[UUID]
    unread_files: list[str]
    next_cursor: str | None = None


class EraseNamespace(Struct, frozen=True, kw_only=True):
    """A request to erase a namespace."""

    confirm: str  # the name of the namespace
    cancel: bool = False
    definitions: bool = False
    before: Instant | None = None


class NamespaceErasureView(View, frozen=True, kw_only=True):
    """The result of one part of the erasure of a namespace; repeat the request until `done`.

    `live` counts executions that were cancelled and have not ended yet. `records` counts keys, ended backfills,
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
    done: bool
