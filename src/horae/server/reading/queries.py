"""What query strings are made of; an unknown parameter is refused. Those of one noun stand beside its routes."""

from typing import Annotated

from msgspec import Meta, Struct, field

from horae.server.reading.bodies import When

Limit = Annotated[int, Meta(ge=1, le=1000, description="At most so many items: 1 to 1000.")]
Cursor = Annotated[str, Meta(max_length=512, description="`nextCursor` of the page before.")]
Text = Annotated[str, Meta(max_length=256)]


class Query(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The parameters of a read."""


class Paged(Query, frozen=True, kw_only=True):
    """A page of a list."""

    limit: Limit = 50
    cursor: Cursor | None = None


class DryRun(Query, frozen=True, kw_only=True):
    """Whether it is done, or only told."""

    dry_run: Annotated[bool, Meta(description="Write nothing; say what would be written, or why it is refused.")] = (
        False
    )


class Window(Query, frozen=True, kw_only=True):
    """A window of the past."""

    since: Annotated[When, Meta(description="Not before this.")] | None = field(default=None, name="from")
    until: Annotated[When, Meta(description="Before this; now unless said.")] | None = field(default=None, name="to")
