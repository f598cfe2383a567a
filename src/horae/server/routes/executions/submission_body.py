"""What requests may say to have executions made: one, many of one job, or many."""

from typing import Annotated, Any

from msgspec import Meta, Raw, field

from horae.model.fleet.protocol import ABSENT
from horae.server.reading.bodies import Body, Duration, Key, Params, Priority, When

MOST_ITEMS = 10_000  # in one bulk submission


class Span(Body, frozen=True, kw_only=True):
    """A data interval, from its start up to its end."""

    start: When
    end: When


class Trigger(Body, frozen=True, kw_only=True):
    """How to run a job now or later; every field may be left out."""

    params: Params = ABSENT
    delay: Duration | None = None
    at: When | None = None
    key: Key | None = None
    key_for: Duration | None = None
    priority: Priority | None = None
    deadline: Annotated[When, Meta(description="When it should have ended; queues by deadline order by it.")] | None = (
        None
    )
    within: Annotated[Duration, Meta(description="The same, from when it is due.")] | None = None
    tags: dict[str, str] = field(default_factory=dict)
    interval: Annotated[
        Span | None, Meta(description="The data it is about; jobs that depend on this one inherit it.")
    ] = None
    propagate: Annotated[bool, Meta(description="Whether its end is told to jobs that depend on this one.")] = True
    wait_for_dependencies: Annotated[
        bool, Meta(description="Wait for what the job depends on, instead of running at once.")
    ] = False


class NewExecution(Trigger, frozen=True, kw_only=True):
    """One execution asked for."""

    job: Annotated[str, Meta(min_length=1, max_length=128, description="The job's name or id.")]


class ManyOfOneJob(Trigger, frozen=True, kw_only=True):
    """Many executions of one job: `items` are their params, the rest is common to all."""

    job: Annotated[str, Meta(min_length=1, max_length=128)]
    items: Annotated[list[dict[str, Any]], Meta(min_length=1, max_length=MOST_ITEMS)]
    atomic: Annotated[bool, Meta(description="All or nothing; otherwise each item is accepted or refused alone.")] = (
        False
    )


class ManyExecutions(Body, frozen=True, kw_only=True):
    """Many executions, each on its own terms."""

    items: Annotated[list[NewExecution], Meta(min_length=1, max_length=MOST_ITEMS)]
    atomic: bool = False


class Submission(Trigger, frozen=True, kw_only=True):
    """Whichever of the three forms of a submission came."""

    job: Annotated[str, Meta(min_length=1, max_length=128)] | None = None
    items: list[Raw] | None = None
    atomic: bool = False
