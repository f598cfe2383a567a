"""A queue: a named line of executions, with a policy that orders them."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import Struct

from horae.errors import BadInput
from horae.model.admission.limits import AT_ONCE, BURST, LIMIT, NO_LIMIT, Limit
from horae.model.admission.policy import KINDS, POLICY, PRIORITY, Policy
from horae.model.admission.rate import RATE_TEXT, remove_lone_burst
from horae.model.fields.kinds import Flag, Integer
from horae.model.fields.table import Document, Field, Group, Table
from horae.model.fields.values import an_object

DEFAULT_QUEUE = "default"  # the default queue of a namespace in which no other queue is its default
QueueState = Literal["active", "draining"]


class ServedQueues(Struct, frozen=True):
    """The queues that a worker serves, and its choice between them."""

    queues: tuple[str, ...]
    weights: dict[str, float] = {}
    strict: bool = False


def read_served(given: Sequence[str]) -> ServedQueues:
    """Read a worker's queues: "critical=5" for each queue and its weight; or "critical,default" for a strict order.

    "critical>default" is another way to write the order.
    """
    if len(given) == 1 and ("," in given[0] or ">" in given[0]):
        names = tuple(name.strip() for name in given[0].replace(">", ",").split(","))
        if any("=" in name for name in names):
            raise BadInput(f"{given[0]!r} has both an order and weights.", _SERVED, field="queues")
        return ServedQueues(_checked(names), strict=True)
    weights: dict[str, float] = {}
    names = tuple(entry.partition("=")[0].strip() for entry in given)
    for entry in given:
        name, equals, weight = entry.partition("=")
        if equals:
            weights[name.strip()] = _weight(weight, entry)
    return ServedQueues(_checked(names), weights)


_SERVED = "Write --queue critical=5 --queue default=1 for weights, or --queue critical,default for an order."


def _checked(names: tuple[str, ...]) -> tuple[str, ...]:
    if not all(names) or len(set(names)) < len(names) or any("," in name or ">" in name for name in names):
        raise BadInput(f"{', '.join(names)!r} is not a list of different queues.", _SERVED, field="queues")
    return names


def _weight(text: str, entry: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = 0.0
    if not 0.001 <= weight <= 1000:
        raise BadInput(f"{entry!r} has no weight from 0.001 to 1000.", _SERVED, field="queues")
    return weight


def _read_limit(given: Document, prefix: str) -> dict[str, Any]:
    """Read the concurrency, rate and sequence of a queue."""
    limit = LIMIT.read(given, prefix)
    ordered = given.get("sequence") is not None and _SEQUENCE.read(given["sequence"], f"{prefix}sequence")
    at_once = limit.get("concurrency")
    if ordered and at_once is not None and at_once > 1:
        detail = f"A queue that is a sequence runs one execution at a time, not {at_once}."
        raise BadInput(detail, "Remove `concurrency` or `sequence`.", field=f"{prefix}concurrency")
    return {"limit": Limit(**limit, sequence=ordered)}


def _write_limit(spec: "QueueSpec") -> dict[str, Any]:
    return {**LIMIT.write(spec.limit), "sequence": spec.limit.sequence}


_SEQUENCE = Flag(off="no-sequence")
_LIMIT = Group(_read_limit, _write_limit)
_EXAMPLE = 'Send an object such as {"policy": "fair"}.'


class QueueSpec(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The fields of a queue's definition; a field that is left out has its default."""

    policy: Annotated[
        Policy,
        Field(
            POLICY,
            f"The order of executions: {', '.join(KINDS)}, or an object with the kind and its fields.",
            example={"kind": "fair", "by": "${params.customer}"},
            metavar="KIND",
        ),
    ] = PRIORITY
    limit: Annotated[
        Limit,
        _LIMIT,
        Field(AT_ONCE, "How many of its executions run at once.", name="concurrency"),
        Field(RATE_TEXT, "How often they start.", name="rate", example="100/1m", metavar="N/SPAN"),
        Field(BURST, "How many may start at once after a pause.", name="burst"),
        Field(_SEQUENCE, "Whether they run one at a time, in order, also through retries.", name="sequence"),
    ] = NO_LIMIT
    max_queued: Annotated[
        int | None, Field(Integer(0, 10**9), "How many executions it holds at most, queued or waiting.")
    ] = None
    preempts: Annotated[
        bool, Field(Flag(off="no-preempts"), "Whether executions that wait here preempt preemptible ones.")
    ] = False


class QueueDefinition(QueueSpec, frozen=True, kw_only=True):
    """A queue's definition, and whether it is the default of its namespace."""

    default: Annotated[bool | None, Field(Flag(off="no-default"), "Whether jobs that name no queue go here.")] = None


QUEUE = Table(QueueDefinition, "A queue")


def parse_queue(body: Any) -> tuple[QueueSpec, bool | None]:
    """Read a queue's definition, and whether it becomes the namespace's default. A null field counts as left out."""
    given = an_object(body, "body", _EXAMPLE)
    QUEUE.refuse_unknown(given)
    read = QUEUE.read(given)
    default = read.pop("default", None)
    return QueueSpec(**read), default


def show_queue(spec: QueueSpec, default: bool | None = None) -> dict[str, Any]:
    """Write a definition in the form in which users write it."""
    return QUEUE.write(
        QueueDefinition(**{name: getattr(spec, name) for name in spec.__struct_fields__}, default=default)
    )


def merge_queue(spec: QueueSpec, patch: Any) -> dict[str, Any]:
    """Apply a patch to a definition; null resets a field to its default."""
    merged = {**show_queue(spec), **an_object(patch, "body", _EXAMPLE)}
    remove_lone_burst(merged, patch)
    return merged


class Queue(Struct, frozen=True, kw_only=True):
    """A queue. `ranked` is the revision whose policy last ordered the queued executions."""

    id: int
    namespace: int
    name: str
    spec: QueueSpec = QueueSpec()
    state: QueueState = "active"  # draining: it accepts no new requests
    is_default: bool = False
    revision: int = 1
    ranked: int = 1

    @property
    def policy(self) -> Policy:
        return self.spec.policy
