"""Placement: what a job asks of the worker that runs it, spelled as the needs of its lane and read from them.

A lane's needs are texts. A bare one is something that a worker must offer: a label, a function, a kind of work. The
others say what an execution takes (`cost:slots=2`), which label it waits for and how long (`prefer:5000000:1:zone=eu`),
that it goes where its key ran last (`affinity:5000000`), and that it is spread over workers (`spread:report`). So two
executions stand in one lane exactly if every claim may treat them alike, and a wider lane is the same one with an entry
less.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Annotated

from msgspec import Struct

from horae.env import SECOND, Micros
from horae.errors import BadInput
from horae.model.admission.reading.placement import SLOTS, a_label
from horae.model.base.duration import DAY
from horae.model.fields.kinds import Custom, Duration, Integer, Key, Listed
from horae.model.fields.table import Field, Object

MOST_WEIGHT = 1000  # of a preference
AFFINE_WEIGHT = MOST_WEIGHT + 1  # of one for the worker that had a key last: no job's own lane is spelled so
COUNTS_COSTS = "protocol:2"  # what a worker that knows of costs offers
_COST, _PREFER, _AFFINITY = "cost:", "prefer:", "affinity:"
_SPREAD = "spread:"
_CAPACITY = "capacity:"
PATIENCE = Field(Duration(1000, DAY), "How long it waits for such a worker.", default=10 * SECOND)
_PREFERS = 'Write [{"label": "zone=eu-1", "weight": 2, "patience": "30s"}], or ["zone=eu-1"].'
_AFFINE = 'Write "${params.model}", or {"key": "${params.model}", "patience": "30s"}.'
_LABEL = Custom(lambda value, at: a_label(value, at, _PREFERS), str, "str")


class Cost(Struct, frozen=True):
    """What one execution takes of its worker while it runs: slots, and amounts of resources by name."""

    slots: int = 1
    resources: tuple[tuple[str, int], ...] = ()

    def __bool__(self) -> bool:
        return self.slots != 1 or bool(self.resources)

    def times(self, slots: int, room: Mapping[str, int]) -> int:
        """How many such executions fit into so many slots and so much room."""
        most = slots // self.slots
        for name, amount in self.resources:
            most = min(most, room.get(name, 0) // amount)
        return max(0, most)

    def left_of(self, room: Mapping[str, int], count: int) -> dict[str, int]:
        """What so many of them leave of the room."""
        left = dict(room)
        for name, amount in self.resources:
            left[name] = left.get(name, 0) - count * amount
        return left


PLAIN = Cost()  # one slot and nothing else


class Preference(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A label that an execution waits for, at most so long; of two that cannot be had together the heavier counts."""

    label: Annotated[str, Field(_LABEL, "A label that workers carry.")]
    weight: Annotated[int, Field(Integer(1, MOST_WEIGHT), "How much it counts beside others.")] = 1
    patience: Annotated[Micros, PATIENCE]


class Affinity(Struct, frozen=True, kw_only=True):
    """Executions whose key reads alike go to the worker that had the last one, if it is free within the patience."""

    key: Annotated[str, Field(Key(), "A template.")]
    patience: Annotated[Micros, PATIENCE]


def _each_once(prefers: Sequence[Preference], at: str) -> None:
    labels = [preference.label for preference in prefers]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise BadInput(f"{at} names {twice!r} twice.", "Name each label once.", field=at)


PREFERS = Listed(Object(Preference, _PREFERS, short=((str, "label"),), main="label"), 4, _PREFERS, check=_each_once)
AFFINITY = Object(Affinity, _AFFINE, short=((str, "key"),), main="key")


class Requirements(Struct, frozen=True, kw_only=True):
    """What a lane asks of a worker, read from its needs."""

    must: frozenset[str]  # preferred labels too, for as long as it stands in this lane
    cost: Cost = PLAIN
    prefers: tuple[Preference, ...] = ()  # in the order they are given up, if only time passes
    affinity: Micros | None = None  # it is still to be looked up who had its key last: nobody takes it before
    spread: bool = False

    @property
    def is_passing(self) -> bool:
        """Whether an execution does not stay in this lane for ever: something is to be looked up, or given up."""
        return bool(self.prefers) or self.affinity is not None

    @property
    def patience(self) -> Micros:
        """How long an execution stays in this lane at most."""
        return 0 if self.affinity is not None or not self.prefers else self.prefers[0].patience


def spell(
    cost: Cost, prefers: Iterable[Preference] = (), affinity: Affinity | None = None, spread: str = ""
) -> Iterator[str]:
    """The needs that say all this, beside what a worker must offer; a job to be `spread` has a lane of its own."""
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
    """What a lane asks for."""
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
    """A worker's capacity among its capabilities."""
    yield f"{_CAPACITY}{SLOTS}={slots}"
    for name, amount in resources.items():
        yield f"{_CAPACITY}{name}={amount}"


@lru_cache(maxsize=8192)
def capacity_of(capabilities: frozenset[str]) -> Mapping[str, int]:
    """What a worker has in all: its slots, and its resources."""
    entries = (entry.removeprefix(_CAPACITY) for entry in capabilities if entry.startswith(_CAPACITY))
    return {name: int(amount) for name, _, amount in (entry.rpartition("=") for entry in entries)}


def fits(terms: Requirements, capabilities: frozenset[str]) -> bool:
    """Whether a worker could ever take what stands in a lane: it offers all that is asked for, and is large enough."""
    if not terms.must <= capabilities:
        return False
    if not terms.cost:
        return True
    capacity = capacity_of(capabilities)
    return terms.cost.times(capacity.get(SLOTS, 0), capacity) > 0


def settle_for(needs: frozenset[str], waited: Micros, is_there: Callable[[Requirements], bool]) -> frozenset[str]:
    """What an execution that has waited so long asks for now.

    A preference is given up when its patience is over. When no live worker has all that is left, the lightest is given
    up at once, and so on: `is_there` tells whether some worker does.
    """
    left = needs.difference(map(_preferring, (p for p in read_needs(needs).prefers if p.patience <= waited)))
    while (prefers := read_needs(left).prefers) and not is_there(read_needs(left)):
        lightest = min(prefers, key=lambda p: (p.weight, p.patience, p.label))
        left = left - {_preferring(lightest)}
    return left


def directed(needs: frozenset[str], worker: str | None) -> frozenset[str]:
    """The needs of an execution whose key this worker had last, or nobody: a preference like any other."""
    patience = read_needs(needs).affinity
    if patience is None:
        return needs
    left = needs - {f"{_AFFINITY}{patience}"}
    if worker is None:
        return left
    return left | {_preferring(Preference(label=f"worker={worker}", weight=AFFINE_WEIGHT, patience=patience))}


def widest(needs: frozenset[str]) -> frozenset[str]:
    """The same with every preference given up: what must be, and what it takes."""
    return frozenset(need for need in needs if not need.startswith((_PREFER, _AFFINITY)))


def missing_from(terms: Requirements, offers: Collection[frozenset[str]]) -> list[str]:
    """What a lane asks for and none of these workers has, amounts as people read them; empty if each is somewhere."""
    lacking = sorted(need for need in terms.must if not any(need in offer for offer in offers))
    for name, amount in _parts(terms.cost):
        if not any(capacity_of(offer).get(name, 0) >= amount for offer in offers):
            lacking.append(f"{amount} {name}")
    return lacking


def amounts(cost: Cost) -> list[str]:
    """What is taken, as a person reads it."""
    return [f"{amount} {name}" for name, amount in _parts(cost)]


def _parts(cost: Cost) -> list[tuple[str, int]]:
    return [(SLOTS, cost.slots), *cost.resources] if cost else []
