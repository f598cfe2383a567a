"""Which circuit an execution belongs to: its job's own, or that of the value of a key."""

from collections.abc import Mapping

from msgspec import structs

from horae.model.admission.keys import encode_keys, keys_of
from horae.model.base.naming import fill, scope_of
from horae.model.definitions.job import Spec
from horae.model.executions.parcel import Envelope


def circuit_of(spec: Spec, item: bytes, tags: Mapping[str, str]) -> str | None:
    """The key of an execution's circuit: empty for the job's own, None when the job has none.

    Raises BadInput when the key cannot be filled in.
    """
    if spec.circuit is None:
        return None
    if spec.circuit.key is None:
        return ""
    return fill(spec.circuit.key, scope_of(spec, item, tags), "circuit.key")


def by_circuit(envelope: Envelope, spec: Spec, item: bytes, tags: Mapping[str, str]) -> Envelope:
    """An envelope of executions that their circuit may keep from starting."""
    if spec.circuit is None:
        return envelope
    keys = structs.replace(keys_of(envelope.keys), circuit=circuit_of(spec, item, tags))
    return structs.replace(envelope, keys=encode_keys(keys))
