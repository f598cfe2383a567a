"""Keys that executions hold, as the API shows them."""

from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta

from horae.model.base.view import View


class HeldKeyView(View, frozen=True, kw_only=True):
    """A key of a job's limits or sequence, with the executions that hold it."""

    kind: Annotated[
        Literal["job", "key", "sequence"],
        Meta(description="The job's own limit, a limit of each value of a key, or a sequence."),
    ]
    key: Annotated[
        str | None, Meta(description="The template, such as `${params.customer}`; null if the job no longer has it.")
    ]
    value: Annotated[str, Meta(description="The value of the template; a digest of it when it is long.")]
    concurrency: Annotated[int | None, Meta(description="How many executions may hold it at once.")]
    rate: str | None
    used: Annotated[int, Meta(description="Executions that are queued or running.")]
    has_waiters: Annotated[bool, Meta(description="Whether other executions wait for it.")]
    holders: Annotated[list[UUID], Meta(description="Ten of the executions at most, running ones first.")]
