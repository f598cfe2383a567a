"""Keys that are held, as the API shows them."""

from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta

from horae.model.base.view import View


class HeldKeyView(View, frozen=True, kw_only=True):
    """A key of a job's limits or sequence that executions hold: what it stands for, how many there are, and who."""

    kind: Annotated[
        Literal["job", "key", "sequence"],
        Meta(description="The job's own limit, a limit of each value of a key, or a sequence."),
    ]
    key: Annotated[str | None, Meta(description="The template, such as `${params.customer}`; null once it is gone.")]
    value: Annotated[str, Meta(description="What the template came to; long values by a digest.")]
    concurrency: Annotated[int | None, Meta(description="How many may hold it.")]
    rate: str | None
    used: Annotated[int, Meta(description="Executions that are queued or run.")]
    waited_for: Annotated[bool, Meta(description="Whether others wait for it.")]
    holders: Annotated[list[UUID], Meta(description="Ten of them at the most, what runs first.")]
