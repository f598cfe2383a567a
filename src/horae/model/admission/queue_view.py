"""Queues as the API shows them."""

from typing import TYPE_CHECKING

from horae.model.admission.hold_view import HoldView
from horae.model.admission.queue import QUEUE
from horae.model.base.view import View
from horae.model.fields.derived import view


class LaneView(View, frozen=True, kw_only=True):
    """A part of a queue that every claim treats alike; `queued` executions wait in it."""

    needs: list[str]
    share: str
    queued: int


class _Named(View, frozen=True, kw_only=True):
    name: str


if TYPE_CHECKING:  # what Python reads of the fields that are made of the table

    class _Defined(_Named, frozen=True, kw_only=True):
        pass
else:
    _Defined = view(QUEUE, "QueueDefinition", "The fields of a queue's definition.", _Named)


class QueueView(_Defined, frozen=True, kw_only=True):
    """A named queue; its `lanes` are those with most in them, a hundred at most.

    Its `state` is active; paused until it is resumed; held while something of `holds` keeps it from starting anything;
    or draining, when it accepts nothing new.
    """

    state: str
    queued: int
    running: int
    lanes: list[LaneView]
    holds: list[HoldView]
