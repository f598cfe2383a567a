"""Queues as the API shows them."""

from typing import TYPE_CHECKING

from horae.model.admission.hold_view import HoldView
from horae.model.admission.queue import QUEUE
from horae.model.base.view import View
from horae.model.fields.derived import view


class LaneView(View, frozen=True, kw_only=True):
    """A part of a queue that every claim treats alike, with the number of executions queued in it."""

    needs: list[str]
    share: str
    queued: int


class _Named(View, frozen=True, kw_only=True):
    name: str


if TYPE_CHECKING:  # at run time the fields are derived from the table

    class _Defined(_Named, frozen=True, kw_only=True):
        pass
else:
    _Defined = view(QUEUE, "QueueDefinition", "The fields of a queue's definition.", _Named)


class QueueView(_Defined, frozen=True, kw_only=True):
    """A named queue; `lanes` has at most its 100 longest lanes.

    `state` is active; paused (until it is resumed); held (by one of `holds`); or draining (it accepts nothing new).
    """

    state: str
    queued: int
    running: int
    lanes: list[LaneView]
    holds: list[HoldView]
