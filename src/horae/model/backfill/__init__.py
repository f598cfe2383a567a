"""Backfills: running nominal fires of the past that did not run, in order, a bounded number at a time.

Values and decisions, all pure: which fires a backfill is about (`plan`), and what to do with the next of them (`work`).
"""

from horae.model.backfill.plan import Outline, Place, Stretch, Version, ahead, outline, stretches
from horae.model.backfill.values import (
    BACKFILL_STATES,
    DEFAULT_CONCURRENT,
    MOST_CONCURRENT,
    MOST_FIRES,
    Backfill,
    BackfillState,
    Counts,
)
from horae.model.backfill.work import Chosen, Pick, choose, rewrite

__all__ = [
    "BACKFILL_STATES",
    "DEFAULT_CONCURRENT",
    "MOST_CONCURRENT",
    "MOST_FIRES",
    "Backfill",
    "BackfillState",
    "Chosen",
    "Counts",
    "Outline",
    "Pick",
    "Place",
    "Stretch",
    "Version",
    "ahead",
    "choose",
    "outline",
    "rewrite",
    "stretches",
]
