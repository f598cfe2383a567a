"""How the steps of workflows stand, for executions beside one another."""

from collections.abc import Sequence
from uuid import UUID

from horae.store.base.shelves import ITEM
from horae.store.script import ForEach, Script, Statement

STATES = Statement(
    "step_states",
    "SELECT s.parcel, s.item, s.step, s.state FROM given JOIN flow_steps s ON s.parcel = given.parcel"
    " AND s.item = given.item",
)

Place = tuple[UUID, int]


def states_of(places: Sequence[Place]) -> Script[dict[Place, dict[str, str]]]:
    """The steps of these executions by name, and how each stands; nothing of one that is no workflow."""
    found: dict[Place, dict[str, str]] = {place: {} for place in places}
    for parcel, item, step, state in (yield ForEach(STATES, ITEM, list(found))):
        found[parcel, item][step] = state
    return found
