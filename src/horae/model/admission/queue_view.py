"""Queues as the API shows them."""

from typing import Annotated, Any

from msgspec import Meta

from horae.model.admission.hold_view import HoldView
from horae.model.base.view import View


class LaneView(View, frozen=True, kw_only=True):
    """A part of a queue that every claim treats alike; `queued` executions wait in it."""

    needs: list[str]
    share: str
    queued: int


class QueueView(View, frozen=True, kw_only=True):
    """A named queue; its `lanes` are those with most in them, a hundred at most.

    Its `state` is active; paused until it is resumed; held while something of `holds` keeps it from starting anything;
    or draining, when it accepts nothing new.
    """

    name: str
    policy: Annotated[dict[str, Any], Meta(description="Its kind, and what that takes.")]
    default: Annotated[bool, Meta(description="Jobs that name no queue go here.")] = False
    max_queued: Annotated[int, Meta(description="How many executions it takes.")] | None = None
    preempts: Annotated[bool, Meta(description="Whether what waits here takes the place of preemptible work.")] = False
    concurrency: Annotated[int | None, Meta(description="How many run at once.")] = None
    rate: Annotated[str | None, Meta(description="How often they start.")] = None
    burst: int | None = None
    sequence: Annotated[bool, Meta(description="They run one at a time, in order.")] = False
    state: str
    queued: int
    running: int
    lanes: list[LaneView]
    holds: list[HoldView]
