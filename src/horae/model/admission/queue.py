"""A queue: a named line of executions, with a policy that says who is next."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from horae.errors import BadInput
from horae.model.admission.limits import Limit
from horae.model.admission.policy import Policy

DEFAULT_QUEUE = "default"  # of a namespace that named no other
QueueState = Literal["active", "draining"]


class Served(Struct, frozen=True):
    """Which queues a worker takes from, and how it chooses between them."""

    queues: tuple[str, ...]
    weights: dict[str, float] = {}
    strict: bool = False


def read_served(given: Sequence[str]) -> Served:
    """Queues as a worker names them: "critical=5" with weights, "critical,default" or "critical>default" in order."""
    if len(given) == 1 and ("," in given[0] or ">" in given[0]):
        names = tuple(name.strip() for name in given[0].replace(">", ",").split(","))
        if any("=" in name for name in names):
            raise BadInput(f"{given[0]!r} has both an order and weights.", _SERVED, field="queues")
        return Served(_checked(names), strict=True)
    weights: dict[str, float] = {}
    names = tuple(entry.partition("=")[0].strip() for entry in given)
    for entry in given:
        name, equals, weight = entry.partition("=")
        if equals:
            weights[name.strip()] = _weight(weight, entry)
    return Served(_checked(names), weights)


_SERVED = "Write --queue critical=5 --queue default=1 for weights, or --queue critical,default for an order."


def _checked(names: tuple[str, ...]) -> tuple[str, ...]:
    if not all(names) or len(set(names)) < len(names) or any("," in name or ">" in name for name in names):
        raise BadInput(f"{', '.join(names)!r} does not name queues, each once.", _SERVED, field="queues")
    return names


def _weight(text: str, entry: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = 0.0
    if not 0 < weight <= 1000:
        raise BadInput(f"{entry!r} has no weight from 0.001 to 1000.", _SERVED, field="queues")
    return weight


class QueueSpec(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What a user says about a queue; each field that is left out takes its default."""

    policy: Policy = Policy()
    limit: Limit = Limit()
    max_queued: int | None = None  # executions that it takes: queued, or to be
    preempts: bool = False  # what waits here takes the place of less urgent work that is preemptible


class Queue(Struct, frozen=True, kw_only=True):
    """A queue as it stands. `ranked` is the revision by whose policy what is queued was ordered last."""

    id: int
    namespace: int
    name: str
    spec: QueueSpec = QueueSpec()
    state: QueueState = "active"  # draining: it accepts nothing new by request
    is_default: bool = False
    revision: int = 1
    ranked: int = 1

    @property
    def policy(self) -> Policy:
        return self.spec.policy
