"""The keys of an execution: the limits, sequence, circuit and affinity of its job, filled in from params and tags."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from uuid import UUID

import msgspec
from msgspec import Struct, structs

from horae.errors import BadInput
from horae.model.admission.keys import EnvelopeKeys, encode_keys, keys_of
from horae.model.admission.limits import KeyTemplates, plain_param, value_of, with_own
from horae.model.base.key_templates import MOST_KEY, fill, scope_of
from horae.model.definitions.job import Spec
from horae.model.executions.parcel import Envelope

UNFILLED = ""  # the value of a key that cannot be filled in, when there is no caller to report it to


def is_keyed(spec: Spec) -> bool:
    """Return whether executions of a job have keys of limits or a sequence."""
    return bool(spec.limits or spec.sequence or spec.concurrency is not None or spec.rate is not None)


def envelope_keys(
    base: str | None, job: UUID, spec: Spec, item: bytes, tags: Mapping[str, str], *, lenient: bool = False
) -> str | None:
    """Add the keys of the job's limits and sequence to an envelope's keys.

    Raises BadInput for a key that cannot be filled in. With `lenient`, for executions without a caller who could get
    the error, the value of such a key is UNFILLED, so that these executions share the key.
    """
    keys = _keys(job, spec, item, tags, lenient=lenient)
    mine = structs.replace(keys_of(base), limits=keys.limits, rated=keys.rated, sequence=keys.sequence)
    return encode_keys(mine)


def _keys(job: UUID, spec: Spec, item: bytes, tags: Mapping[str, str], *, lenient: bool) -> EnvelopeKeys:
    params: Mapping[str, object] | None = None

    def value(template: str, field: str) -> str:
        nonlocal params
        name = plain_param(template)
        if name is not None:
            params = (msgspec.json.decode(item) or {}) if params is None else params
            plain = value_of(params, name) if name in params else value_of(spec.params, name)
            if plain is not None and len(plain) <= MOST_KEY and "\0" not in plain:
                return plain
        try:
            return fill(template, scope_of(spec, item, tags), field)
        except BadInput:
            if not lenient:
                raise
            return UNFILLED

    return KeyTemplates(job, with_own(spec.limits, spec.concurrency, spec.rate), spec.sequence).keys(value)


def common_keys(base: str | None, job: UUID, spec: Spec, items: Sequence[bytes], tags: Mapping[str, str]) -> str | None:
    """Return the keys of many items if they are all the same, else None."""
    found: str | None = None
    for item in items[:1] if _are_alike(spec, items) else items:
        keys = envelope_keys(base, job, spec, item, tags)
        if found is None:
            found = keys
        elif keys != found:
            return None
    return found


def _are_alike(spec: Spec, items: Sequence[bytes]) -> bool:
    """Return whether all items have the same values in the params that the job's keys use.

    All items are decoded at once. This needs keys that are plain params (`${params.NAME}`) and values that are texts or
    whole numbers. Otherwise the function returns False, so that the caller computes the keys of each item.
    """
    templates = [template for template in (*(one.key for one in spec.limits), spec.sequence) if "${" in template]
    plain = [plain_param(template) for template in templates]
    names = tuple(dict.fromkeys(name for name in plain if name is not None))
    if None in plain:
        return False
    try:
        return len(set(_decoder(names)(b"[%b]" % b",".join(items)))) == 1
    except (ValueError, RecursionError):
        return False


@lru_cache(maxsize=256)
def _decoder(names: tuple[str, ...]) -> Callable[[bytes], list[Struct]]:
    """Return a decoder that reads only these params of many items."""
    fields = [(f"param_{i}", str | int, msgspec.field(name=name)) for i, name in enumerate(names)]
    some = msgspec.defstruct("SomeParams", fields, frozen=True)
    return msgspec.json.Decoder(list[some]).decode  # type: ignore[valid-type]


def with_circuit_key(
    envelope: Envelope, spec: Spec, item: bytes, tags: Mapping[str, str], *, lenient: bool = False
) -> Envelope:
    """Add the key of the circuit that can keep an execution from starting: empty if the job has one circuit.

    Raises BadInput when the key cannot be filled in; with `lenient` it is UNFILLED instead.
    """
    if spec.circuit is None:
        return envelope
    try:
        key = "" if spec.circuit.key is None else fill(spec.circuit.key, scope_of(spec, item, tags), "circuit.key")
    except BadInput:
        if not lenient:
            raise
        key = UNFILLED
    return structs.replace(envelope, keys=encode_keys(structs.replace(keys_of(envelope.keys), circuit=key)))


def with_affinity_key(
    envelope: Envelope, spec: Spec, item: bytes, tags: Mapping[str, str], *, lenient: bool = False
) -> Envelope:
    """Add the affinity key, by which an execution prefers the worker that ran its key last.

    Raises BadInput when the key cannot be filled in; with `lenient` the execution gets no affinity instead.
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
