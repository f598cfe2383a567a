"""The outcome for a body of a queue, a policy, a namespace, a quota, a key, a hold or a circuit."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from horae.config.load import load
from horae.config.show import plain
from horae.errors import BadInput
from horae.model.admission.policy import read_policy, write_policy
from horae.model.admission.queue import QueueSpec, merge_queue, parse_queue, show_queue
from horae.model.admission.quota import QUOTA, read_quota
from horae.model.tenancy.namespace import Namespace, merge_namespace, parse_namespace, show_namespace
from horae.server.reading.bodies import decode
from horae.server.routes.admission.circuits import CircuitOpenBody
from horae.server.routes.admission.holds import HoldBody, WindowBody
from horae.server.routes.admission.queues import PauseBody
from horae.server.routes.tenancy.keys import KeyBody, Rotation
from horae.server.routes.tenancy.secrets import SecretBody

QUEUE = {
    "policy": {"kind": "fair", "by": "${params.a}", "within": "shortest", "weights": {"acme": 5}},
    "rate": "10/1m", "burst": 3, "maxQueued": 7, "preempts": True,
}  # fmt: skip
NAMESPACE = {
    "description": "Billing", "weight": 2, "retention": {"success": "7d"}, "archive": ["failed"],
    "defaults": {"retries": 3}, "queuePolicy": {"kind": "priority", "ageing": "5s"},
}  # fmt: skip


def _policy(value: Any) -> list[Any]:
    return [write_policy(read_policy(value))]


def _queue(body: Any) -> list[Any]:
    spec, default = parse_queue(body)
    return [shown_queue(spec), default]


def shown_queue(spec: QueueSpec) -> dict[str, Any]:
    """Show a queue's definition without empty limits."""
    return {name: value for name, value in show_queue(spec).items() if value is not None and value is not False}


def _changed_queue(patch: Any) -> list[Any]:
    return _queue(merge_queue(parse_queue(QUEUE)[0], patch))


def _namespace(body: Any) -> list[Any]:
    said = parse_namespace(body)
    return [show_namespace(Namespace(id=2, name="a", weight=said.weight, policy=said.queue_policy, spec=said.spec))]


def _changed_namespace(patch: Any) -> list[Any]:
    said = parse_namespace(NAMESPACE)
    before = Namespace(id=2, name="a", weight=said.weight, policy=said.queue_policy, spec=said.spec)
    return _namespace(merge_namespace(before, patch))


def _quota(body: Any) -> list[Any]:
    return [QUOTA.write(read_quota(body))]


def _setting(given: Any) -> list[Any]:
    ((name, value),) = given.items()
    environ = {f"HORAE_{name.upper()}": value} if isinstance(value, str) else {}
    loaded = load({} if environ else {name: value}, environ)
    return [plain(getattr(loaded.settings, name))]


def _decoded(type: Any) -> Callable[[Any], list[Any]]:
    """Decode a body as a route with this type does."""
    decoder = msgspec.json.Decoder(type)

    def read(body: Any) -> list[Any]:
        try:
            sent = json.dumps(body).encode()
        except TypeError:
            raise BadInput("no JSON", "") from None
        return [json.loads(msgspec.json.encode(decode(sent, decoder)))]

    return read


ANSWERS: Mapping[str, Callable[[Any], list[Any]]] = {
    "policy": _policy,
    "queue": _queue,
    "changed queue": _changed_queue,
    "namespace": _namespace,
    "changed namespace": _changed_namespace,
    "quota": _quota,
    "key": _decoded(KeyBody),
    "rotation": _decoded(Rotation),
    "hold": _decoded(HoldBody),
    "window": _decoded(WindowBody),
    "pause": _decoded(PauseBody),
    "circuit": _decoded(CircuitOpenBody),
    "secret": _decoded(SecretBody),
    "setting": _setting,
}


def answer(noun: str, body: Any) -> list[Any]:
    """Return the outcome for a body: its shown form, or the refusal."""
    try:
        return ["accepted", *ANSWERS[noun](body)]
    except BadInput as error:
        return ["refused", error.detail, error.remedy, {name: str(value) for name, value in error.fields.items()}]
