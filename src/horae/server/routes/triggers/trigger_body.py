"""What requests may say of a trigger; `model.definitions.reading` reads it."""

from typing import Annotated, Any, Literal

from msgspec import Meta, field

from horae.server.reading.bodies import Body, Duration, Name, When


class TriggerPatch(Body, frozen=True, kw_only=True):
    """Parts of a trigger: one kind's fields, rules and params; null takes a field back to its default."""

    name: Name | None = None
    cron: str | None = None
    timezone: str | None = None
    dialect: Literal["unix", "quartz"] | None = None
    dst_gap: Literal["shift", "skip"] | None = None
    dst_overlap: Literal["first", "second", "both"] | None = None
    every: Duration | None = None
    anchor: When | None = None
    at: When | None = None
    event: str | None = None
    filter: str | None = None
    webhook: bool | dict[str, Any] | None = None
    watch: str | None = None
    interval: Duration | None = None
    existing: Literal["ignore", "fire"] | None = None
    settle: Duration | None = None
    misfire: str | dict[str, Any] | None = None
    overlap: str | dict[str, Any] | None = None
    start_at: When | None = None
    end_at: When | None = None
    max_fires: Annotated[int, Meta(ge=1)] | None = None
    jitter: Duration | None = None
    spread: Duration | None = None
    grace: Duration | None = None
    within: (
        Annotated[Duration, Meta(description="The deadline of its executions, as a span from the nominal instant.")]
        | None
    ) = None
    params: dict[str, Any] | None = None
    paused: bool | None = None


class TriggerBody(TriggerPatch, frozen=True, kw_only=True):
    """A trigger: what tells its kind (cron, every, at, event, webhook or watch), and whatever else differs."""


class PreviewBody(TriggerPatch, frozen=True, kw_only=True):
    """A trigger to look at, or `job` and `trigger` of one that exists; from when, and how many fires."""

    job: str | None = None
    trigger: str | None = None
    from_: Annotated[When, Meta(description="Fires strictly after this; now otherwise.")] | None = field(
        default=None, name="from"
    )
    count: Annotated[int, Meta(ge=1, le=1000)] = 10
