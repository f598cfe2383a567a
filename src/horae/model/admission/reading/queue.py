"""A queue's definition as users write it, and how it is shown."""

from typing import Any

from horae.errors import BadInput
from horae.model.admission.limits import LIMIT
from horae.model.admission.queue import QueueSpec
from horae.model.admission.reading.limits import OF_QUEUES, read_limit
from horae.model.admission.reading.policy import parse_policy, show_policy
from horae.model.fields.values import an_int, an_object, kind_of, refuse_unknown

FIELDS = ("policy", "default", "maxQueued", "preempts", *OF_QUEUES)
EXAMPLE = 'Send an object such as {"policy": "fair"}.'


def parse_queue(body: Any) -> tuple[QueueSpec, bool | None]:
    """Read a queue's definition, and whether it is to be the namespace's default; null stands for what is left out."""
    given = an_object(body, "body", EXAMPLE)
    refuse_unknown(given, FIELDS, "A queue")
    given = {name: value for name, value in given.items() if value is not None}
    default, preempts = given.get("default"), given.get("preempts", False)
    for name, value in (("default", default), ("preempts", preempts)):
        if value is not None and not isinstance(value, bool):
            raise BadInput(f"{name} is {kind_of(value)}.", "It is true or false.", field=name)
    limit = read_limit(given)
    most = given.get("maxQueued")
    bound = None if most is None else an_int(most, "maxQueued", 0, 10**9)
    policy = parse_policy(given.get("policy", "priority"))
    return QueueSpec(policy=policy, limit=limit, max_queued=bound, preempts=preempts), default


def show_queue(spec: QueueSpec) -> dict[str, Any]:
    """A definition as it could be written."""
    limit = {name: value for name, value in LIMIT.write(spec.limit).items() if value is not None}
    bound = {} if spec.max_queued is None else {"maxQueued": spec.max_queued}
    sequence = {"sequence": True} if spec.limit.sequence else {}
    preempts = {"preempts": True} if spec.preempts else {}
    return {"policy": show_policy(spec.policy), **limit, **sequence, **bound, **preempts}


def merge_queue(spec: QueueSpec, patch: Any) -> dict[str, Any]:
    """The definition with what a patch names; null takes a field back to its default."""
    given = an_object(patch, "body", EXAMPLE)
    merged = {**show_queue(spec), **given}
    return {name: value for name, value in merged.items() if value is not None}
