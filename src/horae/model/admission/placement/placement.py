"""Placement: the requirements of a job on its worker, encoded as the needs of its lane.

The needs of a lane are texts. Most are capabilities that a worker must have: a label, a function, a kind of work. A
text with one of these prefixes encodes another requirement: the cost of an execution (`cost:slots=2`), a preferred
label with its patience in microseconds and its weight (`prefer:5000000:1:zone=eu`), affinity to the worker that ran its
key last, with the patience (`affinity:5000000`), and spreading of a job over workers (`spread:report`). Two executions
are in one lane exactly if every claim may treat them alike. If a need is removed, more workers can serve the lane.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Annotated

from msgspec import Struct

from horae.env import SECOND, Micros
from horae.errors import BadInput
from horae.model.admission.placement.labels import SLOTS, a_label
from horae.model.base.duration import DAY
from horae.model.fields.kinds import Custom, Duration, Integer, Key, ListOf
from horae.model.fields.table import Field, Object

MOST_WEIGHT = 1000  # the highest weight of a preference
AFFINE_WEIGHT = MOST_WEIGHT + 1  # the preference for the last worker of a key; no job can write this weight
COUNTS_COSTS = "protocol:2"  # the capability of a worker whose protocol version supports costs
_COST, _PREFER, _AFFINITY = "cost:", "prefer:", "affinity:"
_SPREAD = "spread:"
_CAPACITY = "capacity:"
PATIENCE = Field(Duration(1000, DAY), "How long an execution waits for such a worker.", default=10 * SECOND)
_PREFERS = 'Write [{"label": "zone=eu-1", "weight": 2, "patience": "30s"}], or ["zone=eu-1"].'
_AFFINE = 'Write "${params.model}", or {"key": "${params.model}", "patience": "30s"}.'
_LABEL = Custom(lambda value, at: a_label(value, at, _PREFERS), str, "str")


class Cost(Struct, frozen=True):
    """The slots, and amounts of resources by name, that one execution takes of its worker while it runs."""

    slots: int = 1
    resources: tuple[tuple[str, int], ...] = ()

    def __bool__(self) -> bool:
        return self.slots != 1 or bool(self.resources)

    def times(self, slots: int, room: Mapping[str, int]) -> int:
        """Return how many such executions fit into `slots` and `room`, the free amounts of resources by name."""
        most = slots // self.slots
        for name, amount in self.resources:
            most = min(most, room.get(name, 0) // amount)
        return max(0, most)

    def left_of(self, room: Mapping[str, int], count: int) -> dict[str, int]:
        """Return the free amounts of resources that `count` such executions leave of `room`."""
        left = dict(room)
        for name, amount in self.resources:
            left[name] = left.get(name, 0) - count * amount
        return left


PLAIN = Cost()  # one slot and nothing else


class Preference(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A label that an execution waits for, for a limited time.

    If no worker has the labels of two preferences, the preference with the greater weight wins.
    """

    label: Annotated[str, Field(_LABEL, "A label that workers carry.")]
    weight: Annotated[int, Field(Integer(1, MOST_WEIGHT), "Its weight against other preferences.")] = 1
    patience: Annotated[Micros, PATIENCE]


class Affinity(Struct, frozen=True, kw_only=True):
    """Executions with the same key prefer the worker that ran the key last, if it becomes free within the patience."""

    key: Annotated[str, Field(Key(), "A template.")]
    patience: Annotated[Micros, PATIENCE]


def _each_once(prefers: Sequence[Preference], at: str) -> None:
    labels = [preference.label for preference in prefers]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise BadInput(f"{at} names {twice!r} twice.", "Name each label once.", field=at)


PREFERS = ListOf(Object(Preference, _PREFERS, short=((str, "label"),), main="label"), 4, _PREFERS, check=_each_once)
AFFINITY = Object(Affinity, _AFFINE, short=((str, "key"),), main="key")


class Requirements(Struct, frozen=True, kw_only=True):
    """The requirements of a lane on a worker, decoded from its needs."""

    must: frozenset[str]  # required capabilities; in this lane, they include the labels of `prefers`
    cost: Cost = PLAIN
    prefers: tuple[Preference, ...] = ()  # preferences in the order in which they expire
    affinity: Micros | None = None  # patience of an affinity; no worker may claim until its worker is found
    spread: bool = False

    @property
    def is_temporary(self) -> bool:
        """Return whether executions leave this lane by themselves.

        They do when the worker of an affinity is found, or when a preference expires.
        """
        return bool(self.prefers) or self.affinity is not None

    @property
    def patience(self) -> Micros:
        """Return how long an execution stays in this lane at most."""
        return 0 if self.affinity is not None or not self.prefers else self.prefers[0].patience


def encode_needs(
    cost: Cost, prefers: Iterable[Preference] = (), affinity: Affinity | None = None, spread: str = ""
) -> Iterator[str]:
    """Yield the needs that encode these requirements.

    `spread` is the name of a job that is spread over workers, which gives the job a lane of its own.
    """
    if cost.slots != 1:
        yield f"{_COST}{SLOTS}={cost.slots}"
    for name, amount in cost.resources:
        yield f"{_COST}{name}={amount}"
    yield from map(_preferring, prefers)
    if affinity is not None:
        yield f"{_AFFINITY}{affinity.patience}"
    if spread:
        yield f"{_SPREAD}{spread}"


def _preferring(preference: Preference) -> str:
    return f"{_PREFER}{preference.patience}:{preference.weight}:{preference.label}"


@lru_cache(maxsize=8192)
def read_needs(needs: frozenset[str]) -> Requirements:
    """Decode the needs of a lane."""
    must: set[str] = set()
    costs: dict[str, int] = {}
    prefers: list[Preference] = []
    affinity: Micros | None = None
    spread = False
    for need in needs:
        if need.startswith(_COST):
            name, _, amount = need.removeprefix(_COST).rpartition("=")
            costs[name] = int(amount)
        elif need.startswith(_PREFER):
            patience, weight, label = need.removeprefix(_PREFER).split(":", 2)
            prefers.append(Preference(label=label, weight=int(weight), patience=int(patience)))
        elif need.startswith(_AFFINITY):
            affinity = int(need.removeprefix(_AFFINITY))
            must.add(need)
        elif need.startswith(_SPREAD):
            spread = True
        else:
            must.add(need)
    cost = Cost(costs.pop(SLOTS, 1), tuple(sorted(costs.items())))
    must.update(preference.label for preference in prefers)
    if cost:
        must.add(COUNTS_COSTS)
    prefers.sort(key=lambda p: (p.patience, p.weight, p.label))
    return Requirements(
        must=frozenset(must), cost=cost, prefers=tuple(prefers), affinity=affinity, spread=spread
    )  # fmt: skip


def capacity_entries(slots: int, resources: Mapping[str, int]) -> Iterator[str]:
    """Yield the capabilities that encode a worker's capacity."""
    yield f"{_CAPACITY}{SLOTS}={slots}"
    for name, amount in resources.items():
        yield f"{_CAPACITY}{name}={amount}"


@lru_cache(maxsize=8192)
def capacity_of(capabilities: frozenset[str]) -> Mapping[str, int]:
    """Return a worker's total slots and resources."""
    entries = (entry.removeprefix(_CAPACITY) for entry in capabilities if entry.startswith(_CAPACITY))
    return {name: int(amount) for name, _, amount in (entry.rpartition("=") for entry in entries)}


def fits(terms: Requirements, capabilities: frozenset[str]) -> bool:
    """Return whether a worker could ever run an execution of the lane: it has all capabilities and enough capacity."""
    if not terms.must <= capabilities:
        return False
    if not terms.cost:
        return True
    capacity = capacity_of(capabilities)
    return terms.cost.times(capacity.get(SLOTS, 0), capacity) > 0


def relax_needs(needs: frozenset[str], waited: Micros, is_there: Callable[[Requirements], bool]) -> frozenset[str]:
    """Return the needs of an execution that has waited this long.

    A preference is dropped when its patience is over. While no live worker meets the remaining needs, the preference
    with the least weight is dropped at once. `is_there` tells whether a live worker meets given requirements.
    """
    left = needs.difference(map(_preferring, (p for p in read_needs(needs).prefers if p.patience <= waited)))
    while (prefers := read_needs(left).prefers) and not is_there(read_needs(left)):
        lightest = min(prefers, key=lambda p: (p.weight, p.patience, p.label))
        left = left - {_preferring(lightest)}
    return left


def resolve_affinity(needs: frozenset[str], worker: str | None) -> frozenset[str]:
    """Replace the affinity by a preference for `worker`, which ran the key last; remove it if `worker` is None."""
    patience = read_needs(needs).affinity
    if patience is None:
        return needs
    left = needs - {f"{_AFFINITY}{patience}"}
    if worker is None:
        return left
    return left | {_preferring(Preference(label=f"worker={worker}", weight=AFFINE_WEIGHT, patience=patience))}


def without_preferences(needs: frozenset[str]) -> frozenset[str]:
    """Return the needs without preferences and affinity."""
    return frozenset(need for need in needs if not need.startswith((_PREFER, _AFFINITY)))


def missing_from(terms: Requirements, offers: Collection[frozenset[str]]) -> list[str]:
    """Return each requirement that none of these workers meets, in words for users."""
    lacking = sorted(need for need in terms.must if not any(need in offer for offer in offers))
    for name, amount in _parts(terms.cost):
        if not any(capacity_of(offer).get(name, 0) >= amount for offer in offers):
            lacking.append(f"{amount} {name}")
    return lacking


def amounts(cost: Cost) -> list[str]:
    """Return the parts of a cost in words for users, such as "2 slots"."""
    return [f"{amount} {name}" for name, amount in _parts(cost)]


def _parts(cost: Cost) -> list[tuple[str, int]]:
    return [(SLOTS, cost.slots), *cost.resources] if cost else []
