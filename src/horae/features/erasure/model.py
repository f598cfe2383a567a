"""Erasures: whose data goes, and what came of it."""

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
    """The executions whose data goes: all that is said must hold."""

    job: Annotated[str | None, Field(Text(256), "Only executions of this job.", metavar="JOB")] = None
    tag: Annotated[str | None, Field(Text(256), 'Those with this tag: "name" or "name=value".')] = None
    key: Annotated[str | None, Field(Text(256), "Those that were submitted with this key.", metavar="KEY")] = None
    params: Annotated[
        dict[str, Any] | None,
        Field(_PARAMS, "Those that were given these params.", flag="param", metavar="NAME=VALUE"),
    ] = None

    def check(self) -> None:
        """Refuse what would erase everything."""
        if self.tag is None and self.key is None and not self.params:
            remedy = 'Name a tag, a key or params, as {"params": {"customer": "c-17"}}.'
            raise BadInput("Nothing says whose data it is.", remedy, field="where")

    def matches_key(self, extra: Extra) -> bool:
        """Whether an execution of such a job and tag is meant, as far as its params do not matter."""
        return self.key is None or extra.key == self.key

    def matches_params(self, params: bytes) -> bool:
        """Whether it is meant by what it was given."""
        given = msgspec.json.decode(params)
        return isinstance(given, dict) and all(given.get(name) == value for name, value in (self.params or {}).items())


SELECTION = Table(ErasureSelection, "An erasure")


class ErasureView(View, frozen=True, kw_only=True):
    """What one part of an erasure did.

    `live` have not ended: cancel them or wait, and erase again. `unread` have params that are sealed with a key that
    this server does not have, so nobody can tell whether they are meant; `unreadFiles` are of the archive, and damaged
    or gone.
    """

    looked_at: int
    erased: int
    live: list[UUID]
    unread: list[UUID]
    unread_files: list[str]
    next_cursor: str | None = None


class EraseNamespace(Struct, frozen=True, kw_only=True):
    """What of a namespace is to be erased."""

    confirm: str  # its name
    cancel: bool = False
    definitions: bool = False
    before: Instant | None = None


class NamespaceErasureView(View, frozen=True, kw_only=True):
    """What one part of the erasure of a namespace did; it goes on until `done`.

    `live` were cancelled and have not ended yet. `records` are keys, ended backfills, replays, sessions and holds, and
    kept answers.
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
