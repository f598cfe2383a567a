"""The key by which an execution belongs to the worker that had it last."""

from collections.abc import Mapping

from msgspec import structs

from horae.errors import BadInput
from horae.model.admission.keys import encode_keys, keys_of
from horae.model.base.naming import fill, scope_of
from horae.model.definitions.job import Spec
from horae.model.executions.parcel import Envelope


def by_affinity(
    envelope: Envelope, spec: Spec, item: bytes, tags: Mapping[str, str], *, lenient: bool = False
) -> Envelope:
    """An envelope of executions that go where their key was last.

    Raises BadInput when the key cannot be filled in; if nobody can be told, they go anywhere.
    """
    if spec.affinity is None:
        return envelope
    try:
        key = fill(spec.affinity.key, scope_of(spec, item, tags), "affinity")
    except BadInput:
        if not lenient:
            raise
        return envelope
    return structs.replace(envelope, keys=encode_keys(structs.replace(keys_of(envelope.keys), affinity=key)))
