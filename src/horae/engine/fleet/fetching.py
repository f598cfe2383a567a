"""Fetching ahead: whether a worker without an idle slot may be given more of short jobs."""

from collections.abc import Collection, Mapping

from horae.model.admission.placement.ahead import goes_before
from horae.store.admission.lanes import Lane

_NOWHERE = (0, "")


def may_fetch(
    theirs: Collection[int],
    may: frozenset[int],
    heads: Mapping[int, int],
    lanes: Mapping[int, Lane],
    costs: Collection[int],
) -> bool:
    """Whether no other lane that the worker may take from goes before one of these, which hold its short jobs.

    Ranks are told from each other within a queue and a share; what takes more than a slot waits for room of its own.
    """
    waiting: dict[tuple[int, str], int] = {}
    for lane, head in heads.items():
        if lane in may and lane not in theirs and lane not in costs:
            line = _line(lane, lanes)
            waiting[line] = min(head, waiting.get(line, head))
    firsts = ((heads[lane], waiting.get(_line(lane, lanes))) for lane in theirs)
    return any(first is None or not goes_before(first, head) for head, first in firsts)


def _line(lane: int, lanes: Mapping[int, Lane]) -> tuple[int, str]:
    known = lanes.get(lane)
    return (known.queue, known.share) if known else _NOWHERE
